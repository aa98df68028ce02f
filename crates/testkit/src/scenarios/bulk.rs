//! Bulk changes over the API, across restarts of servers.

use std::time::{Duration, Instant};

use polynym_proto::v1;
use polynym_proto::v1::bulk_action::{Action, Disable, Undo};
use polynym_proto::v1::{AttributeValue, BulkAction, BulkChange, BulkChangeState, attribute_value};
use tokio::task::block_in_place;

use super::histories::{events, of};
use crate::calls::Client;
use crate::server::Server;

/// The longest time without progress.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The action that disables users.
pub fn disable() -> Option<BulkAction> {
    Some(BulkAction { action: Some(Action::Disable(Disable {})) })
}

/// The action that undoes an operation.
pub fn undo(operation_id: &str) -> Option<BulkAction> {
    Some(BulkAction { action: Some(Action::Undo(Undo { operation_id: operation_id.to_owned() })) })
}

/// Creates users without identities, whose attribute `n` is their number.
pub async fn create_users(client: &mut Client, count: usize) {
    let options = v1::import_users_request::Options::default();
    let first = v1::ImportUsersRequest { options: Some(options), ..Default::default() };
    let line = |n: usize| {
        let value = AttributeValue { kind: Some(attribute_value::Kind::IntValue(n as i64)) };
        let attributes = [("n".to_owned(), value)].into();
        let display_name = format!("User {n}");
        let user = v1::User { display_name, attributes, ..Default::default() };
        v1::ImportUsersRequest { line: n as i64 + 1, user: Some(user), ..Default::default() }
    };
    let lines = std::iter::once(first).chain((0..count).map(line));
    let mut answers =
        client.admin.import_users(tokio_stream::iter(lines)).await.unwrap().into_inner();
    while let Some(answer) = answers.message().await.unwrap() {
        assert!(answer.rejects.is_empty(), "{:?}", answer.rejects);
    }
}

/// Starts a bulk change.
pub async fn start(client: &mut Client, request: v1::StartBulkChangeRequest) -> BulkChange {
    client.registry.start_bulk_change(request).await.unwrap().into_inner().bulk_change.unwrap()
}

/// Gets a bulk change.
pub async fn get(client: &mut Client, id: &str) -> BulkChange {
    let request = v1::GetBulkChangeRequest { bulk_id: id.to_owned(), ..Default::default() };
    client.registry.get_bulk_change(request).await.unwrap().into_inner().bulk_change.unwrap()
}

/// The users that a bulk change has changed.
pub fn changed(change: &BulkChange) -> i64 {
    change.counts.as_ref().map_or(0, |counts| counts.changed)
}

/// Waits until a bulk change has changed this many users, or has ended.
pub async fn until_changed(client: &mut Client, id: &str, users: i64) -> BulkChange {
    let (mut last, mut since) = (None, Instant::now());
    loop {
        let found = get(client, id).await;
        if found.state() != BulkChangeState::Running || changed(&found) >= users {
            return found;
        }
        if last != found.counts {
            (last, since) = (found.counts.clone(), Instant::now());
        }
        assert!(since.elapsed() < TIMEOUT, "{found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a bulk change has ended.
pub async fn until_ended(client: &mut Client, id: &str) -> BulkChange {
    until_changed(client, id, i64::MAX).await
}

/// The ids of all users.
pub async fn user_ids(client: &mut Client) -> Vec<String> {
    let (mut ids, mut page_token) = (Vec::new(), String::new());
    loop {
        let read_mask = Some(prost_types::FieldMask { paths: vec!["user_id".to_owned()] });
        let request = v1::SearchUsersRequest {
            page_size: 1_000,
            page_token,
            read_mask,
            ..Default::default()
        };
        let page = client.directory.search_users(request).await.unwrap().into_inner();
        ids.extend(page.users.into_iter().map(|user| user.user_id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return ids;
        }
    }
}

/// Kills servers during a bulk change. The next one finishes it: each user has one event of it.
pub async fn killed_servers_lose_and_repeat_nothing(store: &str) {
    const USERS: usize = 1_500;
    const ID: &str = "bulk-killed";
    let serve = || block_in_place(|| Server::start(&["--store", store]));
    let mut server = serve();
    let mut client = Client::connect(&server.url).await;
    create_users(&mut client, USERS).await;
    let request = v1::StartBulkChangeRequest {
        bulk_id: ID.to_owned(),
        filter: "state = ACTIVE".to_owned(),
        action: disable(),
        ..Default::default()
    };
    start(&mut client, request).await;
    for users in [200, 700] {
        until_changed(&mut client, ID, users).await;
        drop(server);
        server = serve();
        client = Client::connect(&server.url).await;
    }
    let ended = until_ended(&mut client, ID).await;
    assert_eq!(ended.state(), BulkChangeState::Completed, "{ended:?}");
    let counts = ended.counts.unwrap();
    assert_eq!((counts.checked, counts.changed), (USERS as i64, USERS as i64));

    let ids = user_ids(&mut client).await;
    assert_eq!(ids.len(), USERS);
    for id in ids {
        let events = events(&mut client, of(&id)).await;
        let own = events.iter().filter(|event| event.operation_id == ID).count();
        assert_eq!(own, 1, "{id}");
        assert_eq!(client.get(&id).await.unwrap().state(), v1::State::Disabled);
    }
}
