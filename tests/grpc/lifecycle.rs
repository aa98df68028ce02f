//! User states, holds and look-alikes, as answered over gRPC.

use std::time::{Duration, Instant};

use polynym_proto::v1;
use tonic::{Code, Status};

use super::{fresh, user};
use crate::support::calls::{Client, email, handle};
use crate::support::status::{StatusDetails, outcome, status_details};

fn refused<T: std::fmt::Debug>(outcome: Result<T, Status>) -> StatusDetails {
    status_details(outcome.unwrap_err())
}

async fn shown(client: &mut Client, identifier: v1::Identifier) -> Result<v1::User, Status> {
    let request = v1::ResolveIdentityRequest {
        identifier: Some(identifier),
        show_disabled: true,
        ..Default::default()
    };
    Ok(client.directory.resolve_identity(request).await?.into_inner().user.unwrap())
}

#[tokio::test]
async fn a_disabled_user_resolves_only_on_request() {
    let (_server, mut client) = fresh().await;
    let joe =
        client.create(user("Joe", vec![email("joe@example.com"), handle("joe")])).await.unwrap();
    let disabled = client.disable(&joe.user_id).await.unwrap();
    assert_eq!((disabled.state(), &disabled.identities), (v1::State::Disabled, &joe.identities));

    let status = refused(client.resolve(handle("joe")).await);
    assert_eq!(status, StatusDetails::new(Code::FailedPrecondition, "USER_DISABLED"));
    assert_eq!(shown(&mut client, handle("joe")).await.unwrap(), disabled);
    assert_eq!(client.get(&joe.user_id).await.unwrap(), disabled);

    for (show_disabled, expected) in [(true, "OK"), (false, "USER_DISABLED")] {
        let identifiers = vec![handle("joe")];
        let request =
            v1::BatchResolveIdentitiesRequest { identifiers, show_disabled, ..Default::default() };
        let results =
            client.directory.batch_resolve_identities(request).await.unwrap().into_inner().results;
        let item = results.into_iter().map(outcome).next().unwrap();
        assert_eq!(item.map_or_else(|(_, reason, _)| reason, |_| "OK".to_owned()), expected);
    }
    assert_eq!(client.enable(&joe.user_id).await.unwrap().state(), v1::State::Active);

    client.resolve(handle("joe")).await.unwrap();
}

#[tokio::test]
async fn a_deleted_user_can_be_restored() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let deleted = client.delete(&joe.user_id).await.unwrap();
    let (from, until) = (deleted.delete_time.unwrap(), deleted.purge_time.unwrap());
    assert_eq!(
        (deleted.state(), until.seconds - from.seconds),
        (v1::State::Deleted, 30 * 24 * 60 * 60)
    );
    assert_eq!(client.get(&joe.user_id).await.unwrap(), deleted);

    let not_found = StatusDetails::new(Code::NotFound, "IDENTITY_NOT_FOUND");
    assert_eq!(refused(client.resolve(handle("joe")).await), not_found);
    assert_eq!(refused(shown(&mut client, handle("joe")).await), not_found);
    assert_eq!(
        refused(client.delete(&joe.user_id).await),
        StatusDetails::new(Code::NotFound, "USER_NOT_FOUND")
    );

    let changed = client.link(&joe.user_id, email("joe@example.com")).await;
    let user_deleted =
        StatusDetails::new(Code::FailedPrecondition, "USER_DELETED").with("user_id", &joe.user_id);
    assert_eq!(refused(changed), user_deleted);

    let other = client.create(user("Joe II", vec![handle("joe")])).await;
    let taken = StatusDetails::new(Code::AlreadyExists, "IDENTITY_TAKEN")
        .field("user.identities[0].identifier");
    assert_eq!(refused(other), taken.with("owner", &joe.user_id));

    let restored = client.undelete(&joe.user_id).await.unwrap();
    assert_eq!(
        (restored.state(), restored.delete_time, restored.purge_time),
        (v1::State::Active, None, None)
    );
    assert_eq!(
        refused(client.undelete(&joe.user_id).await),
        StatusDetails::new(Code::AlreadyExists, "USER_NOT_DELETED")
    );

    client.resolve(handle("joe")).await.unwrap();
}

#[tokio::test]
async fn a_purged_user_is_gone_and_its_handle_is_held() {
    let (_server, mut client) = fresh().await;
    let joe =
        client.create(user("Joe", vec![email("joe@example.com"), handle("joe")])).await.unwrap();
    let preview = v1::PurgeUserRequest {
        user_id: joe.user_id.clone(),
        validate_only: true,
        ..Default::default()
    };
    assert_eq!(
        client.admin.purge_user(preview).await.unwrap().into_inner().user_ids.concat(),
        joe.user_id
    );
    assert_eq!(client.get(&joe.user_id).await.unwrap(), joe);
    assert_eq!(client.purge(&joe.user_id).await.unwrap().concat(), joe.user_id);

    let gone = StatusDetails::new(Code::NotFound, "USER_NOT_FOUND");
    assert_eq!(refused(client.get(&joe.user_id).await), gone);
    assert_eq!(refused(client.purge(&joe.user_id).await), gone);
    let eve = client.create(user("Eve", vec![email("joe@example.com")])).await.unwrap();
    let held = refused(client.link(&eve.user_id, handle("joe")).await);
    assert_eq!((held.code, held.reason.as_str()), (Code::FailedPrecondition, "IDENTITY_HELD"));
    assert_eq!(held.fields, ["identifier"]);
    assert!(held.metadata["until"].ends_with('Z'), "{held:?}");

    let check = v1::CheckIdentityRequest { identifier: Some(handle("joe")), ..Default::default() };
    let checked = client.directory.check_identity(check).await.unwrap().into_inner();
    assert_eq!((checked.available, checked.reason.as_str()), (false, "IDENTITY_HELD"));
    assert_eq!(client.release(handle("@Joe")).await.unwrap().identifier, Some(handle("joe")));
    assert_eq!(
        refused(client.release(handle("joe")).await),
        StatusDetails::new(Code::NotFound, "HOLD_NOT_FOUND")
    );

    client.link(&eve.user_id, handle("joe")).await.unwrap();
}

#[tokio::test]
async fn a_held_identifier_is_free_only_for_its_former_owner() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    client.unlink(&joe.user_id, handle("joe")).await.unwrap();
    let check = |user_id: &str| v1::CheckIdentityRequest {
        identifier: Some(handle("joe")),
        user_id: user_id.to_owned(),
        ..Default::default()
    };
    let anybody = client.directory.check_identity(check("")).await.unwrap().into_inner();
    assert!(!anybody.available && anybody.held_until.is_some(), "{anybody:?}");

    let owner = client.directory.check_identity(check(&joe.user_id)).await.unwrap().into_inner();
    assert!(owner.available && owner.held_until.is_none(), "{owner:?}");
    let eve = client.create(user("Eve", vec![handle("joe")])).await;
    let status = refused(eve);
    assert_eq!(
        (status.reason.as_str(), status.fields),
        ("IDENTITY_HELD", vec!["user.identities[0].identifier".to_owned()])
    );

    client.link(&joe.user_id, handle("joe")).await.unwrap();
    client.resolve(handle("joe")).await.unwrap();
}

#[tokio::test]
async fn a_look_alike_handle_is_refused() {
    let (_server, mut client) = fresh().await;
    client.create(user("ASCII", vec![handle("scope")])).await.unwrap();
    let status = refused(client.create(user("Cyrillic", vec![handle("ѕсоре")])).await);
    let confusable = StatusDetails::new(Code::FailedPrecondition, "IDENTITY_CONFUSABLE");
    assert_eq!(status, confusable.field("user.identities[0].identifier"));
    let check =
        v1::CheckIdentityRequest { identifier: Some(handle("ѕсоре")), ..Default::default() };
    let checked = client.directory.check_identity(check).await.unwrap().into_inner();
    assert_eq!((checked.available, checked.reason.as_str()), (false, "IDENTITY_CONFUSABLE"));
}

/// Returns the number of users of the default tenant; a deleted user counts until it is purged.
async fn count_users(client: &mut Client) -> i64 {
    let mut answers =
        client.admin.renormalize(v1::RenormalizeRequest::default()).await.unwrap().into_inner();
    let mut users = 0;
    while let Some(answer) = answers.message().await.unwrap() {
        users = answer.users;
    }
    users
}

#[tokio::test]
async fn the_server_purges_deleted_users() {
    let (_server, mut client) = fresh().await;
    let seconds = Some(prost_types::Duration { seconds: 2, nanos: 0 });
    client.govern(v1::Policies { restore_window: seconds, ..Default::default() }).await.unwrap();
    let joe = client.create(user("Joe", vec![email("joe@example.com")])).await.unwrap();
    client.create(user("Eve", vec![])).await.unwrap();
    let started = Instant::now();
    client.delete(&joe.user_id).await.unwrap();

    while count_users(&mut client).await > 1 {
        assert!(started.elapsed() < Duration::from_secs(60), "the user is not purged");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(started.elapsed() >= Duration::from_secs(2), "too early");
    assert_eq!(
        refused(client.undelete(&joe.user_id).await),
        StatusDetails::new(Code::NotFound, "USER_NOT_FOUND")
    );
    client.create(user("Joe II", vec![email("joe@example.com")])).await.unwrap();
}

#[tokio::test]
async fn a_mutation_with_a_request_id_takes_effect_once() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let (user_id, request_id) =
        (joe.user_id.clone(), "20be0ffc-314a-bd53-7a50-013a65ca76d2".to_owned());
    let delete =
        v1::DeleteUserRequest { user_id, request_id, etag: joe.etag.clone(), ..Default::default() };
    let deleted = client.registry.delete_user(delete.clone()).await.unwrap().into_inner();
    assert_eq!(client.registry.delete_user(delete.clone()).await.unwrap().into_inner(), deleted);

    let reused = client
        .registry
        .delete_user(v1::DeleteUserRequest { etag: String::new(), ..delete.clone() })
        .await;
    assert_eq!(
        refused(reused),
        StatusDetails::new(Code::InvalidArgument, "REQUEST_ID_REUSED").field("request_id")
    );

    // The method is part of the idempotency key.
    let v1::DeleteUserRequest { user_id, request_id, .. } = delete;
    let undelete =
        v1::UndeleteUserRequest { user_id, request_id, etag: joe.etag, ..Default::default() };
    assert_eq!(
        refused(client.registry.undelete_user(undelete).await),
        StatusDetails::new(Code::Aborted, "ETAG_MISMATCH")
    );
}
