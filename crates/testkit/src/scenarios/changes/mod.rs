//! What must follow each change of users over the API, for many rows of docs/matrix/ at once:
//! events, watches, look-ups in the past, searches, notices, undo, counters, exports, purges, and a
//! store without faults.

mod apply;
pub mod killed_undo;
mod scene;
mod table;

use std::path::Path;

use futures_util::TryStreamExt;
use mongodb::bson::{RawDocumentBuf, doc};
use polynym_proto::v1;
use v1::EventType as Type;

use super::store_command::{database, findings};
use super::transfer::{export, import, without_import_times};
use super::watching::Watching;
use crate::calls::Client;
use crate::output::stderr;
use crate::server::Server;
use scene::Scene;
use table::{CHANGES, MARK};

/// Makes each change on `store`, and checks what follows. At the end the copy in `copy` is as the
/// original, and both are without faults.
pub async fn all_follow_each_change(store: &str, copy: &str, folder: &Path) {
    let serve = |store: &str| tokio::task::block_in_place(|| Server::start(&["--store", store]));
    let (server, copied) = (serve(store), serve(copy));
    let mut client = Client::connect(&server.url).await;
    let policies = v1::Policies { rule_notices: true, verified_wins: true, ..Default::default() };
    client.govern(policies).await.unwrap();
    let mut watching = Watching::begin(&mut client, v1::WatchRequest::default()).await.unwrap();
    let mut by_type = Vec::new();
    for one in Type::ALL.iter().filter(|one| **one != Type::HistoryBegun).copied() {
        let request = v1::WatchRequest { types: vec![one.into()], ..Default::default() };
        // A connection has few streams.
        let mut other = Client::connect(&server.url).await;
        by_type.push((one, Watching::begin(&mut other, request).await.unwrap()));
    }
    let (mut all, mut ids, mut identifiers) = (Vec::new(), Vec::new(), Vec::new());
    for (n, change) in CHANGES.iter().enumerate() {
        let mut scene = Scene::new(&client, n, change).await;
        all.extend(scene.follow(&mut watching).await);
        identifiers.extend(scene.identifiers());
        ids.extend(scene.ids);
    }
    watch_by_type(by_type, &all).await;

    tokio::task::block_in_place(|| copy_equals(&server, &copied, folder));
    drop(copied);
    // A server that stops cleanly has written its counters.
    server.signal("TERM");
    assert!(tokio::task::block_in_place(|| server.wait()).success());
    let find = || tokio::task::block_in_place(|| [store, copy].map(|store| findings(&[], store)));
    assert_eq!(find(), [[], []]);
    let server = serve(store);
    calls_are_counted(&server).await;
    purge_all(&server, &ids, identifiers).await;
    nothing_is_left(&server, store, folder).await;
    drop(server);
    assert_eq!(find(), [[], []], "after purges");
}

/// The method that makes a change.
fn method(row: &str) -> &str {
    match row {
        "primary" | "takeover" => "LinkIdentity",
        _ if row.starts_with("bulk ") => "StartBulkChange",
        _ if row.starts_with("ON_") => "ImportUsers",
        _ => row,
    }
}

/// An import of an export gives the same users.
fn copy_equals(server: &Server, copied: &Server, folder: &Path) {
    let exported = server.run(&["export"]);
    assert!(exported.status.success(), "{}", stderr(&exported));
    let imported = import(copied, folder, &[], &exported.stdout);
    assert!(imported.status.success(), "{}", stderr(&imported));
    let [one, other] = [server, copied].map(|server| without_import_times(export(server, &[])));
    assert_eq!(one, other, "the copy");
}

/// Purges the users, the row "PurgeUser", and ends the holds that they leave.
async fn purge_all(server: &Server, ids: &[String], identifiers: Vec<v1::Identifier>) {
    let mut client = Client::connect(&server.url).await;
    for id in ids {
        let purged = client.purge(id).await;
        // A merged user is purged with its primary.
        assert!(purged.is_ok_and(|ids| !ids.is_empty()) || client.get(id).await.is_err(), "{id}");
    }
    for identifier in identifiers {
        // Not all of them are held.
        let _ = client.release(identifier).await;
    }
}

/// No record of the store has a part of the names of the users.
async fn nothing_is_left(server: &Server, store: &str, folder: &Path) {
    if !store.starts_with("mongodb") {
        // A copy has the stored data without freed pages.
        let copy = folder.join("after-purge");
        let output =
            tokio::task::block_in_place(|| server.run(&["backup", copy.to_str().unwrap()]));
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(around_mark(&std::fs::read(copy).unwrap()), None);
        return;
    }
    let database = database(store).await;
    let mut documents = 0;
    for name in database.list_collection_names().await.unwrap() {
        let found = database.collection::<RawDocumentBuf>(&name).find(doc! {}).await.unwrap();
        for document in found.try_collect::<Vec<_>>().await.unwrap() {
            assert_eq!(around_mark(document.as_bytes()), None, "{name}");
            documents += 1;
        }
    }
    assert!(documents > 20, "{documents}");
}

/// The text around the first mark.
fn around_mark(bytes: &[u8]) -> Option<String> {
    let at = bytes.windows(MARK.len()).position(|part| part == MARK.as_bytes())?;
    let part = &bytes[at.saturating_sub(200)..bytes.len().min(at + 100)];
    Some(String::from_utf8_lossy(part).into_owned())
}

/// The calls of each method are counted.
async fn calls_are_counted(server: &Server) {
    let mut client = Client::connect(&server.url).await;
    let counted = client.usage(v1::GetUsageRequest::default()).await.unwrap();
    for method in CHANGES
        .iter()
        .map(|change| method(change.row))
        .chain(["UndoOperation", method("bulk undo")])
    {
        let count = counted.get(&format!("calls.{method}.OK"));
        assert!(count.is_some_and(|count| *count > 0), "{method}: {counted:?}");
    }
}

/// A watch of one type gets the events of that type.
async fn watch_by_type(watches: Vec<(Type, Watching)>, all: &[v1::Event]) {
    let mut types = 0;
    for (one, mut watching) in watches {
        let own: Vec<_> = all.iter().filter(|event| event.event_type() == one).collect();
        for event in &own {
            let mut next = watching.next().await.unwrap();
            // Imports and undoings do several things in one event, which has the types of all.
            while next != **event && ["ImportUsers", "UndoOperation"].contains(&&*next.method) {
                next = watching.next().await.unwrap();
            }
            assert_eq!(next, **event, "a watch of {one:?}");
        }
        types += usize::from(!own.is_empty());
    }
    assert!(types >= 16, "{types}");
}
