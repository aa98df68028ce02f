//! Servers that are killed while an operation is undone.

use polynym_proto::v1;
use tokio::task::block_in_place;

use crate::calls::Client;
use crate::scenarios::bulk::{create_users, disable, start, until_ended, user_ids};
use crate::scenarios::histories::{events, of};
use crate::server::Server;

const ID: &str = "leavers";
/// More than are read in two steps of the undoing.
const USERS: usize = 700;

/// Kills servers after the first step of an undoing. The next one completes it: each user is undone
/// once.
pub async fn a_killed_undo_is_completed(store: &str) {
    let serve = || block_in_place(|| Server::start(&["--store", store]));
    let mut server = serve();
    let mut client = Client::connect(&server.url).await;
    create_users(&mut client, USERS).await;
    let request = v1::StartBulkChangeRequest {
        bulk_id: ID.to_owned(),
        action: disable(),
        ..Default::default()
    };
    start(&mut client, request).await;
    until_ended(&mut client, ID).await;

    let undo = || v1::UndoOperationRequest { operation_id: ID.to_owned(), ..Default::default() };
    for _ in 0..2 {
        let mut answers = client.admin.undo_operation(undo()).await.unwrap().into_inner();
        // The first answers come while its users are looked for.
        while answers.message().await.unwrap().unwrap().users == 0 {}
        drop(server);
        server = serve();
        client = Client::connect(&server.url).await;
    }
    let mut answers = client.admin.undo_operation(undo()).await.unwrap().into_inner();
    let mut last = v1::UndoOperationResponse::default();
    while let Some(answer) = answers.message().await.unwrap() {
        assert!(answer.kept.is_empty(), "{answer:?}");
        last = answer;
    }
    assert_eq!(last.users, USERS as i64);
    for id in user_ids(&mut client).await {
        assert_eq!(client.get(&id).await.unwrap().state(), v1::State::Active, "{id}");
        let events = events(&mut client, of(&id)).await;
        let methods: Vec<_> = events.iter().map(|event| &*event.method).collect();
        assert_eq!(methods, ["UndoOperation", "StartBulkChange", "ImportUsers"], "{id}");
    }
}
