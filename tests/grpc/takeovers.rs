//! Phone numbers that change hands: a new verification takes one whose verification is old.

use std::time::{Duration, SystemTime};

use polynym_proto::v1;
use prost_types::Timestamp;
use tonic::{Code, Request, Status};

use super::{fresh, user};
use crate::support::calls::{Client, email, phone};
use crate::support::status::status_details;

const OPERATION: &str = "sign-up-7";
const DAY: i64 = 86_400;

fn number() -> v1::Identifier {
    phone("+14155552671", "")
}

fn now() -> Timestamp {
    SystemTime::now().into()
}

/// A user who verified the number, and an email, this many days ago.
fn verified(name: &str, days: u64) -> v1::User {
    let time = SystemTime::now() - Duration::from_secs(days * 86_400);
    let mut new = user(name, vec![number(), email(&format!("{name}@example.com"))]);
    for identity in &mut new.identities {
        identity.verify_time = Some(time.into());
    }
    new
}

/// Links the number, verified, to a user by an operation.
async fn verify(client: &mut Client, user_id: &str) -> Result<v1::User, Status> {
    let mut request = Request::new(v1::LinkIdentityRequest {
        user_id: user_id.to_owned(),
        identifier: Some(number()),
        verified: true,
        request_id: "0b1b8a2e-7c4f-4c55-9d0e-2f6f3f1d7a10".to_owned(),
        ..Default::default()
    });
    request.metadata_mut().insert("polynym-operation-id", OPERATION.parse().unwrap());
    Ok(client.registry.link_identity(request).await?.into_inner().user.unwrap())
}

/// Lets a phone change hands after 90 days, with notices.
async fn let_phones_lapse(client: &mut Client) {
    let phone_takeover_after = Some(prost_types::Duration { seconds: 90 * DAY, nanos: 0 });
    let policies = v1::Policies { phone_takeover_after, rule_notices: true, ..Default::default() };
    client.govern(policies).await.unwrap();
}

/// The owner of the number, now or at a time.
async fn owner_at(client: &mut Client, as_of: Option<Timestamp>) -> String {
    let request =
        v1::ResolveIdentityRequest { identifier: Some(number()), as_of, ..Default::default() };
    let found = client.directory.resolve_identity(request).await.unwrap().into_inner();
    found.user.unwrap().user_id
}

async fn newest_event(client: &mut Client, user_id: &str) -> v1::Event {
    let subject = Some(v1::list_history_request::User::UserId(user_id.to_owned()));
    let request = v1::ListHistoryRequest { user: subject, ..Default::default() };
    let page = client.directory.list_history(request).await.unwrap().into_inner();
    page.events.into_iter().next().unwrap()
}

/// The number of users that undoing the operation reverts, and that it cannot revert.
async fn undo(client: &mut Client) -> (i64, usize) {
    let request =
        v1::UndoOperationRequest { operation_id: OPERATION.to_owned(), ..Default::default() };
    let mut answers = client.admin.undo_operation(request).await.unwrap().into_inner();
    let (mut reverted, mut failures) = (0, 0);
    while let Some(answer) = answers.message().await.unwrap() {
        reverted = answer.reverted;
        failures += answer.kept.len();
    }
    (reverted, failures)
}

#[tokio::test]
async fn an_old_number_goes_to_the_user_who_verifies_it() {
    let (_server, mut client) = fresh().await;
    let former = client.create(verified("former", 91)).await.unwrap();
    let ann = client.create(user("Ann", vec![email("ann@example.com")])).await.unwrap();
    let refusal = status_details(verify(&mut client, &ann.user_id).await.unwrap_err());
    assert_eq!((refusal.code, &*refusal.reason), (Code::AlreadyExists, "IDENTITY_TAKEN"));

    let_phones_lapse(&mut client).await;
    let before = now();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let winner = verify(&mut client, &ann.user_id).await.unwrap();
    assert_eq!(verify(&mut client, &ann.user_id).await.unwrap(), winner, "the same request");
    let left = client.get(&former.user_id).await.unwrap();
    assert_eq!((winner.identities.len(), left.identities.len()), (2, 1));
    assert_eq!(owner_at(&mut client, None).await, ann.user_id);
    assert_eq!(owner_at(&mut client, Some(before)).await, former.user_id);

    let lost = newest_event(&mut client, &former.user_id).await;
    let won = newest_event(&mut client, &ann.user_id).await;
    for (event, kind, other) in [
        (&lost, v1::EventType::IdentityTakenOver, &ann.user_id),
        (&won, v1::EventType::IdentityLinked, &former.user_id),
    ] {
        let (found, changes) = change(event);
        assert_eq!((found, &changes.other_user_id), (kind, other));
        assert_eq!(event.operation_id, OPERATION);
    }

    let request = v1::ListNoticesRequest { user_id: former.user_id.clone(), ..Default::default() };
    let notices = client.inbox.list_notices(request).await.unwrap().into_inner().notices;
    let [notice] = &notices[..] else { panic!("{notices:?}") };
    assert!(notice.body.contains("kind phone, not verified lately"), "{}", notice.body);
    assert!(!notice.body.contains("4155552671"), "{}", notice.body);

    let taken = now();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(undo(&mut client).await, (2, 0));
    assert_eq!(owner_at(&mut client, None).await, former.user_id);
    assert_eq!(owner_at(&mut client, Some(taken)).await, ann.user_id);
    let back = client.get(&former.user_id).await.unwrap();
    let of_phone = |user: &v1::User| {
        user.identities.iter().find(|identity| identity.identifier == Some(number())).cloned()
    };
    let [back, before] = [&back, &former].map(|user| of_phone(user).unwrap().verify_time);
    assert_eq!(back, before);
    assert_eq!(client.get(&ann.user_id).await.unwrap().identities, ann.identities);
}

fn change(event: &v1::Event) -> (v1::EventType, &v1::ChangeSet) {
    (event.event_type(), event.change_set().unwrap())
}

#[tokio::test]
async fn a_number_that_was_verified_lately_or_is_held_stays() {
    let (_server, mut client) = fresh().await;
    let_phones_lapse(&mut client).await;
    let owner = client.create(verified("owner", 91)).await.unwrap();
    let ann = client.create(user("Ann", vec![])).await.unwrap();
    // A verification counts by its time, not by that of the call.
    let refusal = status_details(client.create(verified("backdated", 2)).await.unwrap_err());
    assert_eq!(refusal.reason, "IDENTITY_TAKEN");
    client.verify(&owner.user_id, number(), true, "a code").await.unwrap();
    let refusal = status_details(verify(&mut client, &ann.user_id).await.unwrap_err());
    assert_eq!(refusal.reason, "IDENTITY_TAKEN");

    let phone = Some(prost_types::Duration { seconds: DAY, nanos: 0 });
    let holds = Some(v1::Holds { phone, ..Default::default() });
    client.govern(v1::Policies { holds, ..Default::default() }).await.unwrap();
    client.unlink(&owner.user_id, number()).await.unwrap();
    let refusal = status_details(verify(&mut client, &ann.user_id).await.unwrap_err());
    assert_eq!(refusal.reason, "IDENTITY_HELD");
}

#[tokio::test]
async fn restoring_and_unmerging_leave_the_number_with_its_new_owner() {
    for is_merged in [false, true] {
        let (_server, mut client) = fresh().await;
        let_phones_lapse(&mut client).await;
        let former = client.create(verified("former", 91)).await.unwrap();
        let primary = client.create(user("Primary", vec![])).await.unwrap();
        let ann = client.create(user("Ann", vec![])).await.unwrap();
        match is_merged {
            true => drop(client.merge(&primary.user_id, &former.user_id).await.unwrap()),
            false => drop(client.delete(&former.user_id).await.unwrap()),
        }
        let winner = verify(&mut client, &ann.user_id).await.unwrap();
        if is_merged {
            let answer = client.unmerge(&primary.user_id, &former.user_id).await.unwrap();
            assert_eq!(answer.not_restored.len(), 1, "{answer:?}");
        } else {
            client.undelete(&former.user_id).await.unwrap();
        }
        let restored = client.get(&former.user_id).await.unwrap();
        let names: Vec<_> =
            restored.identities.into_iter().map(|identity| identity.identifier).collect();
        assert_eq!(names, [Some(email("former@example.com"))], "merged: {is_merged}");
        assert_eq!(client.get(&ann.user_id).await.unwrap(), winner);
    }
}
