//! An export that outlasts the snapshot of MongoDB completes, and reports that it is not exact.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use mongodb::bson::doc;
use polynym_directory::{Mutations, NewUser, Search, Tenant, UserChange, Value};
use polynym_mongodb::{InitOptions, Mongo, Options, init};
use polynym_proto::v1;
use tokio::time::sleep;

use crate::calls::Client;
use crate::server::Server;
use crate::stores::{OwnSet, TIMEOUT};
use crate::users;

/// Users of about 40 KiB: more than a page and the buffers on the way hold.
const USERS: usize = 300;

async fn remember(set: &OwnSet, seconds: i32) {
    let window = doc! { "setParameter": 1, "minSnapshotHistoryWindowInSeconds": seconds };
    set.members[0].admin(window).await.unwrap();
}

fn creation(n: usize, texts: usize) -> polynym_directory::Mutation {
    let attributes =
        (0..texts).map(|t| (format!("text {t}"), Value::String("x".repeat(4_096)))).collect();
    let new = NewUser { attributes, ..NewUser::default() };
    users::mutation(users::id(n), UserChange::Create(new))
}

/// Writes until MongoDB has dropped the present snapshot.
async fn forget(store: &(impl Mutations + Search)) {
    let view = store.snapshot().await.unwrap().unwrap();
    let since = Instant::now();
    for n in USERS.. {
        if view.scan(&Tenant::DEFAULT, None, 1).await.unwrap().is_none() {
            return;
        }
        assert!(since.elapsed() < TIMEOUT, "the snapshot is still there");
        store.mutate(creation(n, 0)).await.unwrap();
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_outlives_its_snapshot() {
    let set = OwnSet::new().await;
    let uri = set.uri("export_moment", "");
    set.client().await.database("export_moment").drop().await.unwrap();
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let store = Mongo::open(&uri, Options::default()).await.unwrap();
    for n in 0..USERS {
        store.mutate(creation(n, 10)).await.unwrap();
    }
    let server = tokio::task::block_in_place(|| Server::start(&["--store", &uri]));
    let mut client = Client::connect(&server.url).await;

    let request = v1::ExportUsersRequest::default();
    let mut parts = client.admin.export_users(request).await.unwrap().into_inner();
    let first = parts.message().await.unwrap().unwrap();
    assert!(!first.start.unwrap().exact, "the start claims to be exact");
    remember(&set, 0).await;
    forget(&store).await;

    let (mut met, mut end) = (BTreeSet::new(), None);
    while let Some(part) = parts.message().await.unwrap() {
        assert!(end.is_none(), "a message after the last");
        end = part.end;
        met.extend(part.user.map(|user| user.user_id));
    }
    remember(&set, 300).await;
    assert!((0..USERS).all(|n| met.contains(&users::id(n).to_string())), "{} users", met.len());
    assert!(!end.unwrap().exact);

    let mut parts = client.admin.export_users(v1::ExportUsersRequest::default()).await.unwrap();
    let mut last = None;
    while let Some(part) = parts.get_mut().message().await.unwrap() {
        last = Some(part);
    }
    assert!(last.unwrap().end.unwrap().exact, "a fast export is exact");
}
