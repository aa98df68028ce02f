//! Who owned an identifier, and what a caller or an operation did, over gRPC.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use polynym_proto::v1;
use tonic::{Code, Request};

use super::{fresh, user};
use crate::support::calls::{Client, email, handle};
use crate::support::status::status_details;

async fn owners(client: &mut Client, identifier: v1::Identifier) -> v1::ListOwnersResponse {
    let request = v1::ListOwnersRequest { identifier: Some(identifier), ..Default::default() };
    client.directory.list_owners(request).await.unwrap().into_inner()
}

fn ids(answer: &v1::ListOwnersResponse) -> Vec<&str> {
    answer.owners.iter().map(|owner| owner.user_id.as_str()).collect()
}

/// Checks that periods are in order, that none overlaps, and that the last one is open if the
/// identifier has an owner.
fn check_periods(answer: &v1::ListOwnersResponse, is_owned: bool) {
    let time = |time: &Option<prost_types::Timestamp>| time.map(|time| (time.seconds, time.nanos));
    assert_eq!(answer.owners.first().is_some_and(|owner| owner.to.is_none()), is_owned);
    for pair in answer.owners.windows(2) {
        assert!(time(&pair[1].to).unwrap() <= time(&pair[0].from).unwrap(), "{pair:?}");
    }
    for owner in answer.owners.iter().filter(|owner| owner.to.is_some()) {
        assert!(time(&owner.from) < time(&owner.to), "{owner:?}");
    }
}

#[tokio::test]
async fn owners_are_listed_with_their_periods() {
    let (_server, mut client) = fresh().await;
    client.hold_nothing().await;
    let none = owners(&mut client, handle("Joe")).await;
    assert!(none.owners.is_empty());
    assert_eq!(none.identifier, Some(handle("joe")));
    assert!(none.known_since.is_some());

    let one = client.create(user("One", vec![handle("joe")])).await.unwrap().user_id;
    let two = client.create(user("Two", vec![email("two@example.com")])).await.unwrap().user_id;
    assert_eq!(ids(&owners(&mut client, handle("joe")).await), [&one]);
    client.link(&one, email("one@example.com")).await.unwrap();
    client.unlink(&one, handle("joe")).await.unwrap();
    let free = owners(&mut client, handle("joe")).await;
    assert_eq!(ids(&free), [&one]);
    check_periods(&free, false);
    assert_eq!(free.owners[0].identity.as_ref().unwrap().identifier, Some(handle("joe")));

    client.link(&two, handle("@JOE")).await.unwrap();
    let both = owners(&mut client, handle("joe")).await;
    assert_eq!(ids(&both), [&two, &one]);
    check_periods(&both, true);
    // A former owner who is purged has no id any more, but the period stays.
    client.delete(&one).await.unwrap();
    client.purge(&one).await.unwrap();
    let purged = owners(&mut client, handle("joe")).await;
    assert_eq!(purged.owners[0], both.owners[0]);
    for owner in &purged.owners[1..] {
        assert_eq!((&*owner.user_id, &owner.identity), ("", &None));
    }
    check_periods(&purged, true);
}

#[tokio::test]
async fn a_merge_ends_a_period_and_begins_another() {
    let (_server, mut client) = fresh().await;
    let one = client.create(user("One", vec![handle("joe")])).await.unwrap().user_id;
    let two = client.create(user("Two", vec![email("two@example.com")])).await.unwrap().user_id;
    client.merge(&two, &one).await.unwrap();
    let merged = owners(&mut client, handle("joe")).await;
    assert_eq!(ids(&merged), [&two, &one]);
    check_periods(&merged, true);
}

#[tokio::test]
async fn at_most_33_owners_are_listed() {
    let (_server, mut client) = fresh().await;
    client.hold_nothing().await;
    let one = client.create(user("One", vec![email("one@example.com")])).await.unwrap().user_id;
    for _ in 0..35 {
        client.link(&one, handle("joe")).await.unwrap();
        client.unlink(&one, handle("joe")).await.unwrap();
    }
    let full = owners(&mut client, handle("joe")).await;
    assert_eq!(full.owners.len(), 32);
    assert_eq!(full.known_since, full.owners[31].from);
    let wrong = v1::ListOwnersRequest { identifier: Some(email("x")), ..Default::default() };
    let error = client.directory.list_owners(wrong).await.unwrap_err();
    let details = status_details(error);
    assert_eq!((details.code, &*details.reason), (Code::InvalidArgument, "IDENTIFIER_INVALID"));
    assert_eq!(details.fields, ["identifier"]);
}

/// All events of a request, page by page.
async fn events(client: &mut Client, mut request: v1::ListEventsRequest) -> Vec<v1::Event> {
    let mut all = Vec::new();
    loop {
        let page = client.directory.list_events(request.clone()).await.unwrap().into_inner();
        assert!(request.page_size == 0 || page.events.len() <= request.page_size as usize);
        all.extend(page.events);
        if page.next_page_token.is_empty() {
            return all;
        }
        request.page_token = page.next_page_token;
    }
}

#[tokio::test]
async fn events_of_all_users_are_listed_by_operation_and_time() {
    let (_server, mut client) = fresh().await;
    let mut ids = Vec::new();
    for n in 0..300 {
        let name = format!("user{n}");
        ids.push(client.create(user(&name, vec![handle(&name)])).await.unwrap().user_id);
    }
    for id in &ids[..7] {
        let message = v1::DisableUserRequest { user_id: id.clone(), ..Default::default() };
        let mut request = Request::new(message);
        request.metadata_mut().insert("polynym-operation-id", "leavers-7".parse().unwrap());
        client.registry.disable_user(request).await.unwrap();
    }
    let of_operation =
        v1::ListEventsRequest { operation_id: "leavers-7".to_owned(), ..Default::default() };
    for page_size in [0, 1, 3, 7, 1_000] {
        let request = v1::ListEventsRequest { page_size, ..of_operation.clone() };
        let found = events(&mut client, request).await;
        let users: BTreeSet<_> = found.iter().map(|event| event.user_id.clone()).collect();
        assert_eq!((found.len(), users), (7, ids[..7].iter().cloned().collect()), "{page_size}");
        assert!(found.iter().all(|event| event.method == "DisableUser"));
    }

    let everything = v1::ListEventsRequest { page_size: 40, ..Default::default() };
    let all = events(&mut client, everything.clone()).await;
    assert_eq!(all.len(), 307);
    let time = |event: &v1::Event| event.time.map(|time| (time.seconds, time.nanos));
    let order: Vec<_> = all.iter().map(time).collect();
    assert!(order.iter().rev().is_sorted(), "the newest first");
    let caller = "anonymous".to_owned();
    let own = v1::ListEventsRequest { caller, ..everything.clone() };
    assert_eq!(events(&mut client, own).await, all);
    let caller = "somebody".to_owned();
    let others = v1::ListEventsRequest { caller, ..everything.clone() };
    assert_eq!(events(&mut client, others).await, []);
    let types = vec![v1::EventType::UserDisabled.into()];
    let disabled = v1::ListEventsRequest { types, ..everything.clone() };
    assert_eq!(events(&mut client, disabled).await.len(), 7);

    let times: Vec<_> = all.iter().map(|event| event.time.unwrap()).collect();
    let last = times.into_iter().max_by_key(|time| (time.seconds, time.nanos));
    let before = v1::ListEventsRequest { to: last, ..everything.clone() };
    let since = v1::ListEventsRequest { from: last, ..everything.clone() };
    let (before, since) = (events(&mut client, before).await, events(&mut client, since).await);
    assert_eq!(before.len() + since.len(), 307);
    assert!(!since.is_empty() && since.iter().all(|event| event.time == last));
}

#[tokio::test]
async fn a_page_token_is_of_its_request() {
    let (_server, mut client) = fresh().await;
    for name in ["one", "two"] {
        client.create(user(name, vec![handle(name)])).await.unwrap();
    }
    let request = v1::ListEventsRequest { page_size: 1, ..Default::default() };
    let page = client.directory.list_events(request.clone()).await.unwrap().into_inner();
    let other = v1::ListEventsRequest {
        caller: "ana".to_owned(),
        page_token: page.next_page_token,
        ..request
    };
    let error = client.directory.list_events(other).await.unwrap_err();
    assert_eq!(status_details(error).reason, "PAGE_TOKEN_INVALID");
}

/// The id of an operation that begins now, as commands choose it.
fn timed_operation() -> String {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let digits = format!("{:012x}", since_epoch.as_millis());
    format!("import-{}-{}-7000-8000-000000000000", &digits[..8], &digits[8..])
}

#[tokio::test]
async fn an_import_of_users_with_older_times_is_found_and_undone() {
    let (_server, mut client) = fresh().await;
    let options = v1::import_users_request::Options::default();
    let first = v1::ImportUsersRequest { options: Some(options), ..Default::default() };
    let past = Some(prost_types::Timestamp { seconds: 1_600_000_000, nanos: 0 });
    let line = |line, identities| {
        let user = v1::User { create_time: past, update_time: past, ..user("Old", identities) };
        v1::ImportUsersRequest { line, user: Some(user), ..Default::default() }
    };
    let lines = [first, line(1, vec![handle("old")]), line(2, Vec::new())];
    let operation_id = timed_operation();
    let mut request = Request::new(tokio_stream::iter(lines));
    request.metadata_mut().insert("polynym-operation-id", operation_id.parse().unwrap());
    let mut answers = client.admin.import_users(request).await.unwrap().into_inner();
    while answers.message().await.unwrap().is_some() {}

    let old = client.resolve(handle("old")).await.unwrap().user.unwrap();
    assert_eq!(old.update_time, past);
    let request =
        v1::ListEventsRequest { operation_id: operation_id.clone(), ..Default::default() };
    let found = events(&mut client, request).await;
    assert_eq!(found.len(), 2, "{found:?}");
    let undo = v1::UndoOperationRequest { operation_id, ..Default::default() };
    let mut answers = client.admin.undo_operation(undo).await.unwrap().into_inner();
    let mut reverted = 0;
    while let Some(answer) = answers.message().await.unwrap() {
        reverted = answer.reverted;
    }
    assert_eq!(reverted, 2);
}

/// Changes made while pages are read are newer than all that is left to read, and the events of a
/// user who is purged meanwhile are gone.
#[tokio::test]
async fn a_page_token_outlives_changes_and_purges() {
    let (_server, mut client) = fresh().await;
    let mut ids = Vec::new();
    for name in ["one", "two", "three"] {
        ids.push(client.create(user(name, vec![handle(name)])).await.unwrap().user_id);
        for _ in 0..2 {
            client.disable(ids.last().unwrap()).await.unwrap();
            client.enable(ids.last().unwrap()).await.unwrap();
        }
    }
    let mut request = v1::ListEventsRequest { page_size: 7, ..Default::default() };
    let page = client.directory.list_events(request.clone()).await.unwrap().into_inner();
    request.page_token = page.next_page_token;
    client.create(user("four", vec![handle("four")])).await.unwrap();
    client.disable(&ids[0]).await.unwrap();
    client.delete(&ids[1]).await.unwrap();
    client.purge(&ids[1]).await.unwrap();
    let mut listed = page.events;
    listed.extend(events(&mut client, request).await);
    let count = |id: &String| listed.iter().filter(|event| event.user_id == *id).count();
    assert_eq!([&ids[0], &ids[1], &ids[2]].map(count), [5, 2, 5]);
    assert_eq!(listed.len(), 12);
}

/// Lists find changes by a part of their reason, and name the users with the others that they name.
#[tokio::test]
async fn changes_are_found_by_their_reason_and_name_users() {
    let (_server, mut client) = fresh().await;
    let one = client.create(user("One", vec![handle("one")])).await.unwrap().user_id;
    let two = client.create(user("Two", vec![handle("two")])).await.unwrap().user_id;
    let message = v1::MergeUsersRequest {
        primary_user_id: one.clone(),
        secondary_user_id: two.clone(),
        ..Default::default()
    };
    let mut request = Request::new(message);
    request.metadata_mut().insert("polynym-reason", "Ticket%20CRM-4711".parse().unwrap());
    client.registry.merge_users(request).await.unwrap();

    let of_ticket = v1::ListEventsRequest { reason: "crm-47".to_owned(), ..Default::default() };
    let page = client.directory.list_events(of_ticket).await.unwrap().into_inner();
    let users: BTreeSet<_> = page.events.iter().map(|event| event.user_id.clone()).collect();
    assert_eq!(users, BTreeSet::from([one.clone(), two.clone()]));
    // What the secondary had is the primary's.
    let names = [(one, "One".to_owned()), (two, String::new())];
    assert_eq!(page.display_names, BTreeMap::from(names).into_iter().collect());
    assert_eq!(page.events_read, 4);
    let reason = "x".repeat(257);
    let long = v1::ListEventsRequest { reason, ..Default::default() };
    let error = client.directory.list_events(long).await.unwrap_err();
    assert_eq!(status_details(error).fields, ["reason"]);
}
