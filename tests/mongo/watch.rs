//! Watches of a store on MongoDB.

use std::time::{Duration, Instant};

use mongodb::bson::doc;
use polynym_mongodb::{InitOptions, init};

use crate::calls::Client;
use crate::server::Server;
use crate::servers::{self, Layout, ReplicaSet, Signal};
use crate::support::scenarios::watching::{
    Changing, Seen, follow, resumes_after_each_event, survives_kills, survives_reconnects,
};

async fn prepared(uri: &str) {
    init(uri, &InitOptions::default(), &|_| {}).await.unwrap();
}

fn start(uri: &str) -> Server {
    tokio::task::block_in_place(|| Server::start(&["--store", uri]))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_seen_despite_kills() {
    let uri = servers::one_member().await.uri("watch_killed", "");
    prepared(&uri).await;
    survives_kills(|| start(&uri)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_resumes_after_each_event() {
    let uri = servers::one_member().await.uri("watch_again", "");
    prepared(&uri).await;
    let server = start(&uri);
    resumes_after_each_event(&mut Client::connect(&server.url).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_seen_despite_step_downs() {
    let set = ReplicaSet::start(Layout { members: 3, ..Layout::default() }).await;
    let uri = set.uri("watch_primary", "");
    prepared(&uri).await;
    let server = start(&uri);
    let (changing, mut token) = Changing::begin(&server).await;
    let mut seen = Seen::default();
    for _ in 0..3 {
        let enough = seen.count() + 30;
        let since = Instant::now();
        while seen.count() < enough {
            token = follow(&server, &mut seen, token, |seen| seen.count() >= enough).await;
            assert!(since.elapsed() < Duration::from_secs(120), "events stop");
        }
        // The primary closes connections.
        let step_down =
            doc! { "replSetStepDown": 10, "secondaryCatchUpPeriodSecs": 5, "force": true };
        let _ = set.primary().await.admin(step_down).await;
    }
    changing.end(&server, seen, token).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnecting_watchers_see_each_event() {
    let uri = servers::one_member().await.uri("watch_restless", "");
    prepared(&uri).await;
    survives_reconnects(&start(&uri)).await;
}

/// The change streams of the server end repeatedly, and the only member hangs for a while.
#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_seen_despite_lost_change_streams() {
    let set = ReplicaSet::start(Layout::default()).await;
    let uri = set.uri("watch_streams", "");
    prepared(&uri).await;
    let server = start(&uri);
    let (changing, mut token) = Changing::begin(&server).await;
    let (mut seen, mut lost) = (Seen::default(), 0);
    for round in 0..8 {
        let enough = seen.count() + 20;
        let since = Instant::now();
        while seen.count() < enough {
            token = follow(&server, &mut seen, token, |seen| seen.count() >= enough).await;
            assert!(since.elapsed() < Duration::from_secs(120), "events stop");
        }
        lost += end_change_streams(&set).await;
        if round == 4 {
            set.members[0].signal(Signal::Stop).await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            set.members[0].signal(Signal::Continue).await;
        }
    }
    assert!(lost > 0, "no change stream was found");
    changing.end(&server, seen, token).await;
}

/// Ends all change streams. Returns their number.
async fn end_change_streams(set: &ReplicaSet) -> usize {
    let all = doc! { "$currentOp": { "allUsers": true, "idleCursors": true } };
    let found = doc! {
        "aggregate": 1, "cursor": {}, "pipeline": [all, { "$match": {
            "cursor.originatingCommand.pipeline.0.$changeStream": { "$exists": true },
        } }],
    };
    let reply = set.members[0].admin(found).await.unwrap();
    let streams = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    let database = set.client().await.database("watch_streams");
    for stream in streams {
        let cursor = stream.as_document().unwrap().get_document("cursor").unwrap();
        let id = cursor.get("cursorId").unwrap().clone();
        // It may have ended already.
        let _ = database.run_command(doc! { "killCursors": "users", "cursors": [id] }).await;
    }
    streams.len()
}
