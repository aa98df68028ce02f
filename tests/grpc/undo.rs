//! Undoing operations: each user is as before, or stays as it is with a reason.

use std::collections::BTreeMap;
use std::time::Duration;

use polynym_proto::v1;
use tonic::Request;

use super::{fresh, fresh_with_clock, user};
use crate::support::calls::{Client, handle, text};
use crate::support::scenarios::bulk::{create_users, until_ended, user_ids};
use crate::support::scenarios::histories::{events, of};
use crate::support::scenarios::watching::Watching;

const OPERATION: &str = "crm-2026-11";

/// A request of the operation.
fn part<M>(message: M) -> Request<M> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("polynym-operation-id", OPERATION.parse().unwrap());
    request
}

fn mask(path: &str) -> Option<prost_types::FieldMask> {
    Some(prost_types::FieldMask { paths: vec![path.to_owned()] })
}

/// Undoes an operation. Returns the number of users as before, and why others stay.
async fn undo(client: &mut Client, id: &str, validate_only: bool) -> (i64, Vec<(String, String)>) {
    let operation_id = id.to_owned();
    let request = v1::UndoOperationRequest { operation_id, validate_only, ..Default::default() };
    let mut answers = client.admin.undo_operation(request).await.unwrap().into_inner();
    let (mut reverted, mut kept) = (0, Vec::new());
    while let Some(answer) = answers.message().await.unwrap() {
        reverted = answer.reverted;
        kept.extend(answer.kept.into_iter().map(|user| (user.user_id, user.reason)));
    }
    (reverted, kept)
}

fn owned((caller, operation, method): (&str, &str, &str)) -> (String, String, String) {
    (caller.to_owned(), operation.to_owned(), method.to_owned())
}

/// What has to be undone before an operation: the caller, the operation and the method.
async fn blockers(client: &mut Client, id: &str) -> Vec<(String, String, String)> {
    let operation_id = id.to_owned();
    let request =
        v1::UndoOperationRequest { operation_id, validate_only: true, ..Default::default() };
    let mut answers = client.admin.undo_operation(request).await.unwrap().into_inner();
    let mut all = Vec::new();
    while let Some(answer) = answers.message().await.unwrap() {
        let blockers = answer.kept.into_iter().flat_map(|kept| kept.blockers);
        all.extend(blockers.map(|one| (one.caller, one.operation_id, one.method)));
    }
    all
}

/// What blocks an undoing is named, the last one first, and an operation that was undone blocks
/// nothing.
#[tokio::test]
async fn operations_in_between_are_undone_first() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    set(&mut client, &joe.user_id, "one", true).await;
    let disable = v1::DisableUserRequest { user_id: joe.user_id.clone(), ..Default::default() };
    let mut disable = Request::new(disable);
    disable.metadata_mut().insert("polynym-operation-id", "leavers-7".parse().unwrap());
    client.registry.disable_user(disable).await.unwrap();
    let request = v1::StartBulkChangeRequest {
        bulk_id: "bulk-9".to_owned(),
        action: Some(v1::BulkAction {
            action: Some(v1::bulk_action::Action::Enable(v1::bulk_action::Enable {})),
        }),
        ..Default::default()
    };
    client.registry.start_bulk_change(request).await.unwrap();
    until_ended(&mut client, "bulk-9").await;

    let named =
        [("anonymous", "bulk-9", "StartBulkChange"), ("anonymous", "leavers-7", "DisableUser")];
    assert_eq!(blockers(&mut client, OPERATION).await, named.map(owned));
    for (n, (_, operation, _)) in named.iter().enumerate() {
        assert_eq!(undo(&mut client, operation, false).await, (1, Vec::new()), "{operation}");
        assert_eq!(blockers(&mut client, OPERATION).await, named.map(owned)[n + 1..]);
    }
    assert_eq!(undo(&mut client, OPERATION, false).await, (1, Vec::new()));
    assert_eq!(note(&mut client, &joe.user_id).await, None);
}

async fn keep_history(client: &mut Client, days: u64) {
    let history_retention = Duration::from_secs(days * 86_400).try_into().ok();
    let policies = v1::Policies { history_retention, ..Default::default() };
    let request = v1::UpdateTenantRequest {
        tenant: "default".to_owned(),
        policies: Some(policies),
        update_mask: mask("history_retention"),
        ..Default::default()
    };
    client.admin.update_tenant(request).await.unwrap();
}

/// Updates one attribute as part of the operation, or of none.
async fn set(client: &mut Client, user_id: &str, value: &str, is_part: bool) {
    let user = v1::User {
        user_id: user_id.to_owned(),
        attributes: BTreeMap::from([("note".to_owned(), text(value))]),
        ..Default::default()
    };
    let update_mask = mask("attributes.note");
    let request = v1::UpdateUserRequest { user: Some(user), update_mask, ..Default::default() };
    let request = if is_part { part(request) } else { Request::new(request) };
    client.registry.update_user(request).await.unwrap();
}

async fn note(client: &mut Client, user_id: &str) -> Option<v1::AttributeValue> {
    client.get(user_id).await.unwrap().attributes.remove("note")
}

/// The history of a user may begin with the operation: the user existed before.
#[tokio::test(flavor = "multi_thread")]
async fn users_who_existed_before_are_not_deleted() {
    let (_folder, clock, mut client) = fresh_with_clock().await;
    keep_history(&mut client, 0).await;
    create_users(&mut client, 3).await;
    keep_history(&mut client, 400).await;
    // All servers keep the history by then.
    clock.set_ahead(300_000);
    let ids = user_ids(&mut client).await;
    for user_id in &ids {
        let request = v1::DisableUserRequest { user_id: user_id.clone(), ..Default::default() };
        client.registry.disable_user(part(request)).await.unwrap();
    }

    assert_eq!(undo(&mut client, OPERATION, true).await, (3, Vec::new()));
    assert_eq!(undo(&mut client, OPERATION, false).await, (3, Vec::new()));
    for id in ids {
        assert_eq!(client.get(&id).await.unwrap().state(), v1::State::Active);
        let events = events(&mut client, of(&id)).await;
        let begun = events.last().unwrap();
        assert!(matches!(begun.change, Some(v1::event::Change::HistoryBegun(_))));
        assert_eq!([&begun.operation_id, &begun.caller, &begun.reason, &begun.method], [""; 4]);
    }
    let request =
        v1::ListEventsRequest { operation_id: OPERATION.to_owned(), ..Default::default() };
    let listed = client.directory.list_events(request).await.unwrap().into_inner().events;
    // The change and its undoing, of each user.
    assert_eq!(listed.len(), 6);
}

#[tokio::test]
async fn all_changes_of_an_operation_are_undone() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    set(&mut client, &joe.user_id, "before", false).await;
    for n in 0..200 {
        set(&mut client, &joe.user_id, &format!("{n} {}", "x".repeat(900)), true).await;
    }
    assert_eq!(undo(&mut client, OPERATION, false).await, (1, Vec::new()));
    assert_eq!(note(&mut client, &joe.user_id).await, Some(text("before")));
    assert_eq!(undo(&mut client, OPERATION, false).await, (0, Vec::new()));

    // The history has only hashes of large values: the user stays.
    for n in 0..4 {
        set(&mut client, &joe.user_id, &format!("{n}{}", "x".repeat(4_000)), true).await;
    }
    let last = note(&mut client, &joe.user_id).await;
    let kept = vec![(joe.user_id.clone(), "VALUES_NOT_KEPT".to_owned())];
    for validate_only in [true, false] {
        assert_eq!(undo(&mut client, OPERATION, validate_only).await, (0, kept.clone()));
    }
    assert_eq!(note(&mut client, &joe.user_id).await, last);
}

#[tokio::test]
async fn a_change_of_somebody_else_in_between_stays() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    for (value, is_part) in [("one", true), ("two", false), ("three", true)] {
        set(&mut client, &joe.user_id, value, is_part).await;
    }
    let kept = vec![(joe.user_id.clone(), "CHANGED_SINCE".to_owned())];
    for validate_only in [true, false] {
        assert_eq!(undo(&mut client, OPERATION, validate_only).await, (0, kept.clone()));
    }
    assert_eq!(note(&mut client, &joe.user_id).await, Some(text("three")));
    let blockers = blockers(&mut client, OPERATION).await;
    assert_eq!(blockers, [("anonymous", "", "UpdateUser")].map(owned), "who changed it since");

    // A change without an event stays, too.
    let eve = client.create(user("Eve", vec![handle("eve")])).await.unwrap();
    set(&mut client, &eve.user_id, "one", true).await;
    keep_history(&mut client, 0).await;
    set(&mut client, &eve.user_id, "two", false).await;
    keep_history(&mut client, 400).await;
    let (reverted, kept) = undo(&mut client, OPERATION, false).await;
    assert_eq!((reverted, kept.len()), (0, 2));
    assert_eq!(note(&mut client, &eve.user_id).await, Some(text("two")));
}

/// One operation moves an identifier from one user to another.
#[tokio::test]
async fn users_get_identifiers_back_from_each_other() {
    let (_server, mut client) = fresh().await;
    client.hold_nothing().await;
    let mut ids = Vec::new();
    for name in ["one", "two"] {
        let created = client.create(user(name, vec![handle(name)])).await.unwrap();
        ids.push(created.user_id);
    }
    // They swap their handles.
    let unlink = |n: usize, name| v1::UnlinkIdentityRequest {
        user_id: ids[n].clone(),
        identifier: Some(handle(name)),
        ..Default::default()
    };
    let link = |n: usize, name| v1::LinkIdentityRequest {
        user_id: ids[n].clone(),
        identifier: Some(handle(name)),
        ..Default::default()
    };
    client.registry.unlink_identity(part(unlink(0, "one"))).await.unwrap();
    client.registry.unlink_identity(part(unlink(1, "two"))).await.unwrap();
    client.registry.link_identity(part(link(0, "two"))).await.unwrap();
    client.registry.link_identity(part(link(1, "one"))).await.unwrap();

    assert_eq!(undo(&mut client, OPERATION, true).await, (2, Vec::new()));
    assert_eq!(undo(&mut client, OPERATION, false).await, (2, Vec::new()));
    for (id, name) in ids.iter().zip(["one", "two"]) {
        assert_eq!(client.resolve(handle(name)).await.unwrap().user.unwrap().user_id, *id);
    }
    assert_eq!(undo(&mut client, OPERATION, false).await, (0, Vec::new()));
}

/// Operations are undone in any order in which nothing comes after them.
#[tokio::test]
async fn an_operation_before_one_that_was_undone_is_undone() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    set(&mut client, &joe.user_id, "one", true).await;
    let disable = v1::DisableUserRequest { user_id: joe.user_id.clone(), ..Default::default() };
    let mut other = Request::new(disable);
    other.metadata_mut().insert("polynym-operation-id", "another".parse().unwrap());
    client.registry.disable_user(other).await.unwrap();

    assert_eq!(undo(&mut client, OPERATION, false).await.1.len(), 1);
    assert_eq!(undo(&mut client, "another", false).await, (1, Vec::new()));
    assert_eq!(undo(&mut client, OPERATION, false).await, (1, Vec::new()));
    assert_eq!(note(&mut client, &joe.user_id).await, None);
}

/// Events of undoings, and of imports, have the types of what they do.
#[tokio::test]
async fn watchers_by_type_and_users_hear_of_what_is_undone() {
    let (_server, mut client) = fresh().await;
    let policies = v1::Policies { rule_notices: true, ..Default::default() };
    client.govern(policies).await.unwrap();
    let mut joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let watching =
        |kind: v1::EventType| v1::WatchRequest { types: vec![kind.into()], ..Default::default() };
    let enabled = watching(v1::EventType::UserEnabled);
    let mut enabled = Watching::begin(&mut client, enabled).await.unwrap();
    let disabled = watching(v1::EventType::UserDisabled);
    let mut disabled = Watching::begin(&mut client, disabled).await.unwrap();

    let enable = v1::EnableUserRequest { user_id: joe.user_id.clone(), ..Default::default() };
    client.disable(&joe.user_id).await.unwrap();
    assert_eq!(disabled.next().await.unwrap().sequence, 2);
    client.registry.enable_user(part(enable)).await.unwrap();
    assert_eq!(enabled.next().await.unwrap().sequence, 3);
    assert_eq!(undo(&mut client, OPERATION, false).await.0, 1);
    let undone = disabled.next().await.unwrap();
    assert_eq!((undone.sequence, &*undone.method), (4, "UndoOperation"));
    assert!(matches!(undone.change, Some(v1::event::Change::UserDisabled(_))));

    client.enable(&joe.user_id).await.unwrap();
    joe.state = v1::State::Disabled.into();
    joe.identities.clear();
    let options = v1::import_users_request::Options {
        on_existing: v1::OnExisting::Update.into(),
        fields: vec!["state".to_owned()],
        ..Default::default()
    };
    let first = v1::ImportUsersRequest { options: Some(options), ..Default::default() };
    let line = v1::ImportUsersRequest { line: 1, user: Some(joe.clone()), ..Default::default() };
    let lines = tokio_stream::iter([first, line]);
    let mut answers = client.admin.import_users(lines).await.unwrap().into_inner();
    while answers.message().await.unwrap().is_some() {}
    let imported = disabled.next().await.unwrap();
    assert!(matches!(imported.change, Some(v1::event::Change::UserImported(_))));
    assert_eq!(imported.sequence, 6);

    let request = v1::ListNoticesRequest { user_id: joe.user_id.clone(), ..Default::default() };
    let notices = client.inbox.list_notices(request).await.unwrap().into_inner().notices;
    let subjects: Vec<_> = notices.into_iter().map(|notice| notice.subject).collect();
    assert_eq!(subjects, ["This account was disabled"; 3]);
}
