//! Servers that are killed while an operation is undone.

use polynym_proto::v1;
use tokio::task::block_in_place;

use crate::calls::Client;
use crate::scenarios::bulk::{
    create_users, disable, start, undo, until_changed, until_ended, user_ids,
};
use crate::scenarios::histories::{events, of};
use crate::server::Server;

const ID: &str = "leavers";
/// The same once more, and the bulk change that undoes it.
const AGAIN: &str = "leavers-again";
const UNDOING: &str = "undo-leavers";
/// More than are read in two steps of the undoing.
const USERS: usize = 700;

/// Kills servers after the first step of an undoing. The next one completes it: each user is undone
/// once. So it is as a bulk change.
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

    let call = || v1::UndoOperationRequest { operation_id: ID.to_owned(), ..Default::default() };
    for _ in 0..2 {
        let mut answers = client.admin.undo_operation(call()).await.unwrap().into_inner();
        // The first answers come while its users are looked for.
        while answers.message().await.unwrap().unwrap().users == 0 {}
        drop(server);
        server = serve();
        client = Client::connect(&server.url).await;
    }
    let mut answers = client.admin.undo_operation(call()).await.unwrap().into_inner();
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

    let request = v1::StartBulkChangeRequest {
        bulk_id: AGAIN.to_owned(),
        action: disable(),
        ..Default::default()
    };
    start(&mut client, request).await;
    until_ended(&mut client, AGAIN).await;
    let request = v1::StartBulkChangeRequest {
        bulk_id: UNDOING.to_owned(),
        action: undo(AGAIN),
        ..Default::default()
    };
    // The first server is killed while its users are looked for, the second one among them.
    start(&mut client, request).await;
    for users in [0, 200] {
        until_changed(&mut client, UNDOING, users).await;
        drop(server);
        server = serve();
        client = Client::connect(&server.url).await;
    }
    let ended = until_ended(&mut client, UNDOING).await;
    let counts = ended.counts.clone().unwrap();
    assert_eq!((counts.checked, counts.changed), (USERS as i64, USERS as i64), "{ended:?}");
    for id in user_ids(&mut client).await {
        let events = events(&mut client, of(&id)).await;
        let own = events.iter().filter(|event| event.operation_id == AGAIN);
        let methods: Vec<_> = own.map(|event| &*event.method).collect();
        assert_eq!(methods, ["UndoOperation", "StartBulkChange"], "{id}");
    }
}
