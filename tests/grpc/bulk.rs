//! Bulk changes.

use std::time::Instant;

use polynym_proto::v1;
use polynym_proto::v1::bulk_action::{Action, Attributes, Delete, Undelete};
use polynym_proto::v1::start_bulk_change_request::Users;
use polynym_proto::v1::{BulkAction, BulkChangeState, StartBulkChangeRequest};
use tonic::{Code, Request};

use super::{fresh, fresh_with, user};
use crate::support::calls::{Client, handle};
use crate::support::scenarios::bulk::{
    changed, create_users, disable, get, start, until_changed, until_ended, user_ids,
};
use crate::support::scenarios::histories::{events, of};
use crate::support::status::{StatusDetails, status_details};

const ID: &str = "bulk-1";
/// The id of no user.
const NOBODY: &str = "20be0ffc-314a-bd53-7a50-013a65ca76d2";
/// A UUID with a time in the far future, as far as UUIDs have one.
const FUTURE: &str = "fffffffe-0000-7000-8000-000000000000";

fn request(filter: &str) -> StartBulkChangeRequest {
    StartBulkChangeRequest {
        bulk_id: ID.to_owned(),
        filter: filter.to_owned(),
        action: disable(),
        ..Default::default()
    }
}

fn listed(ids: &[&str]) -> StartBulkChangeRequest {
    let user_ids = ids.iter().map(ToString::to_string).collect();
    StartBulkChangeRequest { users: Some(Users { user_ids }), ..request("") }
}

/// The error of a start.
async fn refused(client: &mut Client, request: StartBulkChangeRequest) -> StatusDetails {
    status_details(client.registry.start_bulk_change(request).await.unwrap_err())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_change_changes_the_users_that_match_and_can_be_undone() {
    let (_server, mut client) = fresh().await;
    create_users(&mut client, 250).await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let dry = StartBulkChangeRequest {
        bulk_id: String::new(),
        validate_only: true,
        ..request("attributes.n < 120")
    };
    let dry = start(&mut client, dry).await;
    assert_eq!(dry.bulk_id.len(), 36);
    let dry = until_ended(&mut client, &dry.bulk_id).await;
    let mut starting = Request::new(request("attributes.n < 120"));
    starting.metadata_mut().insert("polynym-reason", "cleaning".parse().unwrap());
    let started = client.registry.start_bulk_change(starting).await.unwrap().into_inner();
    let started = started.bulk_change.unwrap();
    assert_eq!((&*started.caller, &*started.reason), ("anonymous", "cleaning"));
    let ended = until_ended(&mut client, ID).await;
    assert_eq!(ended.state(), BulkChangeState::Completed);
    assert_eq!(changed(&ended), 120);
    assert_eq!(ended.counts, dry.counts, "what the dry run counts");
    assert!(ended.end_time.is_some() && ended.end_time == ended.update_time);

    let (mut disabled, mut active) = (0, 0);
    for id in user_ids(&mut client).await {
        let events = events(&mut client, of(&id)).await;
        let own: Vec<_> = events.iter().filter(|event| event.operation_id == ID).collect();
        match client.get(&id).await.unwrap().state() {
            v1::State::Disabled => {
                disabled += 1;
                assert_eq!(own.len(), 1);
                assert_eq!((&*own[0].method, &*own[0].reason), ("StartBulkChange", "cleaning"));
                assert_eq!(own[0].caller, "anonymous");
            }
            _ => {
                active += 1;
                assert!(own.is_empty());
            }
        }
    }
    assert_eq!((disabled, active), (120, 131));
    assert_eq!(client.get(&joe.user_id).await.unwrap(), joe);

    let undo = v1::UndoOperationRequest { operation_id: ID.to_owned(), ..Default::default() };
    let mut answers = client.admin.undo_operation(undo).await.unwrap().into_inner();
    let mut reverted = 0;
    while let Some(answer) = answers.message().await.unwrap() {
        reverted = answer.reverted;
    }
    assert_eq!(reverted, 120);

    // The newest first, by pages.
    let (mut ids, mut page_token) = (Vec::new(), String::new());
    loop {
        let list = v1::ListBulkChangesRequest { page_size: 1, page_token, ..Default::default() };
        let page = client.registry.list_bulk_changes(list).await.unwrap().into_inner();
        ids.extend(page.bulk_changes.into_iter().map(|change| change.bulk_id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(ids, [ID.to_owned(), dry.bulk_id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_bulk_change_resumes() {
    let (_server, mut client) = fresh().await;
    create_users(&mut client, 1_000).await;
    start(&mut client, request("state = ACTIVE")).await;
    until_changed(&mut client, ID, 100).await;
    let stop = || v1::StopBulkChangeRequest { bulk_id: ID.to_owned(), ..Default::default() };
    let stopped = client.registry.stop_bulk_change(stop()).await.unwrap().into_inner();
    let stopped = stopped.bulk_change.unwrap();
    let again = client.registry.stop_bulk_change(stop()).await.unwrap().into_inner();
    assert_eq!(again.bulk_change.unwrap().state, stopped.state);
    if stopped.state() == BulkChangeState::Stopped {
        assert_eq!(stopped.end_reason, "anonymous");
        let at_rest = get(&mut client, ID).await;
        assert_eq!(at_rest.state(), BulkChangeState::Stopped);
        assert!(changed(&at_rest) < 1_000, "{at_rest:?}");
    }
    let resume = v1::ResumeBulkChangeRequest { bulk_id: ID.to_owned(), ..Default::default() };
    client.registry.resume_bulk_change(resume).await.unwrap();
    let ended = until_ended(&mut client, ID).await;
    assert_eq!((ended.state(), changed(&ended)), (BulkChangeState::Completed, 1_000));
    assert_eq!(ended.end_reason, "");
    for id in user_ids(&mut client).await {
        let events = events(&mut client, of(&id)).await;
        assert_eq!(events.iter().filter(|event| event.operation_id == ID).count(), 1);
    }
}

/// Prints the rate and the memory of the server. `POLYNYM_BULK_USERS` sets the number of users.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_a_bulk_change_of_many_users_is_stopped_and_resumed() {
    let users = std::env::var("POLYNYM_BULK_USERS").map_or(100_000, |text| text.parse().unwrap());
    let (fresh, mut client) = fresh().await;
    create_users(&mut client, users as usize).await;
    let before = fresh.server.memory() >> 20;
    let began = Instant::now();
    start(&mut client, request("state = ACTIVE")).await;
    until_changed(&mut client, ID, users / 3).await;
    let stop = v1::StopBulkChangeRequest { bulk_id: ID.to_owned(), ..Default::default() };
    client.registry.stop_bulk_change(stop).await.unwrap();
    let resume = v1::ResumeBulkChangeRequest { bulk_id: ID.to_owned(), ..Default::default() };
    client.registry.resume_bulk_change(resume).await.unwrap();
    until_changed(&mut client, ID, users * 2 / 3).await;
    let within = fresh.server.memory() >> 20;
    let ended = until_ended(&mut client, ID).await;
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!((ended.state(), changed(&ended)), (BulkChangeState::Completed, users));
    let rate = users as f64 / seconds;
    println!("{rate:.0} users a second; {before} MiB before, {within} MiB within");

    // Each of them is found in the histories by the one id.
    let undo = v1::UndoOperationRequest {
        operation_id: ID.to_owned(),
        validate_only: true,
        ..Default::default()
    };
    let mut answers = client.admin.undo_operation(undo).await.unwrap().into_inner();
    let mut reverted = 0;
    while let Some(answer) = answers.message().await.unwrap() {
        reverted = answer.reverted;
    }
    assert_eq!(reverted, users);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_that_cannot_be_changed_are_listed() {
    let (_server, mut client) = fresh_with(&["--max-attributes", "1"]).await;
    create_users(&mut client, 3).await;
    let value = |text: &str| v1::AttributeValue {
        kind: Some(v1::attribute_value::Kind::StringValue(text.to_owned())),
    };
    let mut full = user("Full", vec![handle("full")]);
    full.attributes = [("a".to_owned(), value("x"))].into();
    let full = client.create(full).await.unwrap();
    let set = [("b".to_owned(), value("x"))].into();
    let attributes = Attributes { set, remove: vec!["n".to_owned()] };
    let action = Some(BulkAction { action: Some(Action::Attributes(attributes)) });
    start(&mut client, StartBulkChangeRequest { action, ..request("") }).await;
    let ended = until_ended(&mut client, ID).await;
    assert_eq!(ended.state(), BulkChangeState::Completed, "{ended:?}");
    let counts = ended.counts.unwrap();
    assert_eq!((counts.checked, counts.changed), (4, 3));
    assert_eq!((&*counts.failed[0].reason, counts.failed[0].users), ("LIMIT_EXCEEDED", 1));
    let failure = &ended.failures[0];
    assert_eq!((&failure.user_id, &*failure.reason), (&full.user_id, "LIMIT_EXCEEDED"));
    let list = client.registry.list_bulk_changes(v1::ListBulkChangesRequest::default()).await;
    assert!(list.unwrap().into_inner().bulk_changes[0].failures.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_repeated_by_its_id() {
    let (_server, mut client) = fresh().await;
    create_users(&mut client, 1).await;
    let request_id = "20be0ffc-314a-bd53-7a50-013a65ca76d2";
    let by_request = StartBulkChangeRequest {
        bulk_id: String::new(),
        request_id: request_id.to_owned(),
        ..request("")
    };
    let first = start(&mut client, by_request.clone()).await;
    assert_eq!(first.bulk_id, request_id);
    let ended = until_ended(&mut client, request_id).await;
    assert_eq!(start(&mut client, by_request.clone()).await, ended);
    let other = StartBulkChangeRequest { filter: "state = ACTIVE".to_owned(), ..by_request };
    let exists = StatusDetails::new(Code::AlreadyExists, "BULK_CHANGE_EXISTS").field("bulk_id");
    assert_eq!(refused(&mut client, other).await, exists);

    let operation = StartBulkChangeRequest { bulk_id: String::new(), ..request("") };
    let mut starting = Request::new(operation);
    starting.metadata_mut().insert("polynym-operation-id", "cleanup-7".parse().unwrap());
    let started = client.registry.start_bulk_change(starting).await.unwrap().into_inner();
    assert_eq!(started.bulk_change.unwrap().bulk_id, "cleanup-7");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_run_is_refused() {
    let (_server, mut client) = fresh().await;
    create_users(&mut client, 1).await;
    let invalid = |field: &str| StatusDetails {
        fields: vec![field.to_owned()],
        ..StatusDetails::new(Code::InvalidArgument, "FIELD_INVALID")
    };
    let with = |action: Option<Action>| StartBulkChangeRequest {
        action: action.map(|action| BulkAction { action: Some(action) }),
        ..request("")
    };
    let attributes = |set: &[&str], remove: &[&str]| {
        let value = v1::AttributeValue {
            kind: Some(v1::attribute_value::Kind::StringValue("x".to_owned())),
        };
        let set = set.iter().map(|name| (name.to_string(), value.clone())).collect();
        let remove = remove.iter().map(ToString::to_string).collect();
        Some(Action::Attributes(Attributes { set, remove }))
    };
    let many: Vec<_> = (0..101).map(|n| n.to_string()).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    for (request, expected) in [
        (with(None), invalid("action")),
        (with(attributes(&[], &[])), invalid("action.attributes")),
        (with(attributes(&["a"], &["a"])), invalid("action.attributes.remove[0]")),
        (with(attributes(&many, &[])), invalid("action.attributes")),
        (
            StartBulkChangeRequest { bulk_id: "two words".to_owned(), ..request("") },
            invalid("bulk_id"),
        ),
        (StartBulkChangeRequest { bulk_id: "x".repeat(65), ..request("") }, invalid("bulk_id")),
        (StartBulkChangeRequest { bulk_id: FUTURE.to_owned(), ..request("") }, invalid("bulk_id")),
        (
            StartBulkChangeRequest { bulk_id: "import-1".to_owned(), ..request("") },
            invalid("bulk_id"),
        ),
        (
            StartBulkChangeRequest {
                bulk_id: String::new(),
                request_id: FUTURE.to_owned(),
                ..request("")
            },
            invalid("request_id"),
        ),
        (listed(&[]), invalid("users.user_ids")),
        (listed(&vec![NOBODY; 50_001]), invalid("users.user_ids")),
        (
            StartBulkChangeRequest { filter: "n = 1".to_owned(), ..listed(&[NOBODY]) },
            invalid("users"),
        ),
    ] {
        assert_eq!(refused(&mut client, request).await, expected);
    }
    let id = refused(&mut client, listed(&[NOBODY, "joe"])).await;
    assert_eq!((&*id.reason, &*id.fields[0]), ("USER_ID_INVALID", "users.user_ids[1]"));
    let filter = refused(&mut client, request("state = GONE")).await;
    assert_eq!((filter.code, &*filter.reason), (Code::InvalidArgument, "FILTER_INVALID"));
    let request_id =
        StartBulkChangeRequest { request_id: "7".to_owned(), ..request("state = ACTIVE") };
    assert_eq!(refused(&mut client, request_id).await.reason, "REQUEST_ID_INVALID");

    let missing = v1::GetBulkChangeRequest { bulk_id: "none".to_owned(), ..Default::default() };
    let missing = client.registry.get_bulk_change(missing).await.unwrap_err();
    let not_found = StatusDetails::new(Code::NotFound, "BULK_CHANGE_NOT_FOUND").field("bulk_id");
    assert_eq!(status_details(missing), not_found);
    let list = v1::ListBulkChangesRequest { page_token: "x".to_owned(), ..Default::default() };
    let list = client.registry.list_bulk_changes(list).await.unwrap_err();
    assert_eq!(status_details(list).reason, "PAGE_TOKEN_INVALID");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_users_are_skipped_or_already_deleted() {
    let (_server, mut client) = fresh().await;
    create_users(&mut client, 4).await;
    let ids = user_ids(&mut client).await;
    let delete = v1::DeleteUserRequest { user_id: ids[0].clone(), ..Default::default() };
    client.registry.delete_user(delete).await.unwrap();
    start(&mut client, request("")).await;
    let counts = until_ended(&mut client, ID).await.counts.unwrap();
    assert_eq!((counts.changed, counts.skipped, counts.checked), (3, 1, 4));

    let action = Some(BulkAction { action: Some(Action::Delete(Delete {})) });
    let delete = StartBulkChangeRequest { action, bulk_id: "delete".to_owned(), ..request("") };
    start(&mut client, delete).await;
    let counts = until_ended(&mut client, "delete").await.counts.unwrap();
    assert_eq!((counts.changed, counts.unchanged, counts.checked), (3, 1, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_users_are_restored() {
    let (_server, mut client) = fresh().await;
    create_users(&mut client, 4).await;
    let ids = user_ids(&mut client).await;
    client.disable(&ids[0]).await.unwrap();
    for id in &ids[..3] {
        client.delete(id).await.unwrap();
    }
    let action = Some(BulkAction { action: Some(Action::Undelete(Undelete {})) });
    let restore = StartBulkChangeRequest { action, bulk_id: "restore".to_owned(), ..request("") };
    start(&mut client, restore).await;
    let counts = until_ended(&mut client, "restore").await.counts.unwrap();
    assert_eq!((counts.changed, counts.unchanged, counts.checked), (3, 1, 4));
    let mut states = Vec::new();
    for id in &ids {
        states.push(client.get(id).await.unwrap().state());
    }
    let active = v1::State::Active;
    assert_eq!(states, [v1::State::Disabled, active, active, active]);
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_users_change_in_their_order() {
    let (_server, mut client) = fresh().await;
    create_users(&mut client, 310).await;
    let ids = user_ids(&mut client).await;
    let mut names: Vec<_> = ids.iter().map(String::as_str).take(250).collect();
    names.extend([NOBODY, names[0]]);
    let delete = v1::DeleteUserRequest { user_id: ids[1].clone(), ..Default::default() };
    client.registry.delete_user(delete).await.unwrap();

    let dry =
        StartBulkChangeRequest { bulk_id: "dry".to_owned(), validate_only: true, ..listed(&names) };
    start(&mut client, dry).await;
    let dry = until_ended(&mut client, "dry").await;
    assert_eq!(start(&mut client, listed(&names)).await.listed_users, 251);
    let ended = until_ended(&mut client, ID).await;
    assert_eq!(ended.state(), BulkChangeState::Completed);
    assert_eq!(ended.counts, dry.counts, "what the dry run counts");
    let counts = ended.counts.unwrap();
    assert_eq!((counts.changed, counts.skipped, counts.checked), (249, 1, 251));
    let failure = &ended.failures[0];
    assert_eq!((&*failure.user_id, &*failure.reason), (NOBODY, "USER_NOT_FOUND"));
    for (n, id) in ids.iter().enumerate().skip(2) {
        let expected = if n < 250 { v1::State::Disabled } else { v1::State::Active };
        assert_eq!(client.get(id).await.unwrap().state(), expected, "user {n}");
    }

    let again = start(&mut client, listed(&names)).await;
    assert_eq!(again.state(), BulkChangeState::Completed, "the same list");
    let other = refused(&mut client, listed(&names[1..])).await;
    assert_eq!(other.reason, "BULK_CHANGE_EXISTS");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_list_is_accepted() {
    let (_server, mut client) = fresh().await;
    let ids: Vec<_> = (0..50_000).map(|n| format!("{}{n:06x}", &NOBODY[..30])).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    assert_eq!(start(&mut client, listed(&ids)).await.listed_users, 50_000);
    let stop = v1::StopBulkChangeRequest { bulk_id: ID.to_owned(), ..Default::default() };
    let stopped = client.registry.stop_bulk_change(stop).await.unwrap().into_inner();
    assert_eq!(stopped.bulk_change.unwrap().state(), BulkChangeState::Stopped);
}
