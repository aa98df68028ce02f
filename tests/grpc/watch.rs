//! Watches over gRPC: each event is sent, those of one user in order, however the watch ends.

use std::time::{Duration, Instant};

use polynym_proto::v1;
use tempfile::TempDir;
use tonic::Code;

use super::{Fresh, fresh, fresh_with, store_in, user};
use crate::support::calls::{Client, handle};
use crate::support::scenarios::watching::{
    Watching, from, rename, resumes_after_each_event, survives_kills, survives_reconnects,
};
use crate::support::server::{Server, polynym};
use crate::support::status::{StatusDetails, status_details};

/// The time limit on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

async fn refused(client: &mut Client, request: v1::WatchRequest) -> StatusDetails {
    match Watching::begin(client, request).await {
        Err(status) => status_details(status),
        Ok(_) => panic!("it is not refused"),
    }
}

#[tokio::test]
async fn events_are_sent_immediately() {
    let (_server, mut client) = fresh().await;
    let ann = client.create(user("Ann", vec![handle("ann")])).await.unwrap();
    let mut all = Watching::begin(&mut client, v1::WatchRequest::default()).await.unwrap();
    let about_ann = v1::WatchRequest { user_ids: vec![ann.user_id.clone()], ..Default::default() };
    let mut of_ann = Watching::begin(&mut client, about_ann).await.unwrap();
    let types = vec![v1::EventType::UserDisabled.into()];
    let disabling = v1::WatchRequest { types, ..Default::default() };
    let mut disabled = Watching::begin(&mut client, disabling).await.unwrap();

    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    rename(&mut client, &ann.user_id, "Anna").await.unwrap();
    client.disable(&joe.user_id).await.unwrap();
    for (id, sequence) in [(&joe, 1), (&ann, 2), (&joe, 2)] {
        let event = all.next().await.unwrap();
        assert_eq!((&event.user_id, event.sequence), (&id.user_id, sequence));
    }
    assert_eq!(of_ann.next().await.unwrap().sequence, 2);
    assert_eq!(disabled.next().await.unwrap().user_id, joe.user_id);
}

#[tokio::test]
async fn a_watch_resumes_after_each_event() {
    let (_server, mut client) = fresh().await;
    resumes_after_each_event(&mut client).await;
}

#[tokio::test]
async fn bad_requests_name_the_field() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    for n in 0..3 {
        rename(&mut client, &joe.user_id, &format!("Joe {n}")).await.unwrap();
    }
    let token = Watching::begin(&mut client, from("")).await.unwrap().token;
    let invalid =
        StatusDetails::new(Code::InvalidArgument, "RESUME_TOKEN_INVALID").field("resume_token");
    let mut changed = token.clone();
    let last = changed.pop().unwrap();
    changed.push(if last == 'A' { 'B' } else { 'A' });
    for bad in [&changed, "joe", &"A".repeat(64 << 10)] {
        assert_eq!(refused(&mut client, from(bad)).await, invalid);
    }
    let types = vec![v1::EventType::UserDeleted.into()];
    let user_ids = vec![joe.user_id.clone()];
    for other in
        [v1::WatchRequest { types, ..from(&token) }, v1::WatchRequest { user_ids, ..from(&token) }]
    {
        assert_eq!(refused(&mut client, other).await, invalid);
    }
    let (_other, mut other) = fresh().await;
    assert_eq!(refused(&mut other, from(&token)).await, invalid);

    let field = |name: &str| StatusDetails::new(Code::InvalidArgument, "FIELD_INVALID").field(name);
    let many = v1::WatchRequest { user_ids: vec![joe.user_id; 1_001], ..Default::default() };
    assert_eq!(refused(&mut client, many).await, field("user_ids"));
    let unknown = v1::WatchRequest { types: vec![99], ..Default::default() };
    assert_eq!(refused(&mut client, unknown).await, field("types"));
    let no_id = v1::WatchRequest { user_ids: vec!["joe".to_owned()], ..Default::default() };
    let status = refused(&mut client, no_id).await;
    assert_eq!(
        (&*status.reason, &status.fields[..]),
        ("USER_ID_INVALID", &["user_ids[0]".to_owned()][..])
    );
    let elsewhere = v1::WatchRequest { tenant: "acme".to_owned(), ..Default::default() };
    assert_eq!(refused(&mut client, elsewhere).await.reason, "TENANT_NOT_FOUND");
}

/// A restored store has not come as far as the token, or has come there by other events.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_from_after_a_restored_backup_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut client) = fresh_in(&folder, "store").await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let backup = folder.path().join("backup.redb").display().to_string();
    assert!(server.run(&["backup", &backup]).status.success());
    for n in 0..3 {
        rename(&mut client, &joe.user_id, &format!("Joe {n}")).await.unwrap();
    }
    let token = Watching::begin(&mut client, from("")).await.unwrap().token;

    let invalid =
        StatusDetails::new(Code::InvalidArgument, "RESUME_TOKEN_INVALID").field("resume_token");
    for renamed in [0, 9] {
        let name = format!("restored{renamed}");
        let store = format!("embedded:{}", folder.path().join(&name).display());
        let restored = polynym(&["restore", &backup, "--store", &store]).output().unwrap();
        assert!(restored.status.success(), "{restored:?}");
        let (_restored_server, mut other) = fresh_in(&folder, &name).await;
        for n in 0..renamed {
            rename(&mut other, &joe.user_id, &format!("Joseph {n}")).await.unwrap();
        }
        let mut watch = other.directory.watch(from(&token)).await.unwrap().into_inner();
        watch.message().await.unwrap();
        assert_eq!(status_details(watch.message().await.unwrap_err()), invalid);
    }
}

/// A server on the store `name` in a folder.
async fn fresh_in(folder: &TempDir, name: &str) -> (Server, Client) {
    let store = format!("embedded:{}", folder.path().join(name).display());
    let server = tokio::task::block_in_place(|| Server::start(&["--store", &store]));
    let client = Client::connect(&server.url).await;
    (server, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_seen_despite_kills() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--store", &store_in(&folder)].map(str::to_owned);
    survives_kills(|| {
        tokio::task::block_in_place(|| Server::start(&arguments.each_ref().map(String::as_str)))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnecting_watchers_see_each_event() {
    let (Fresh { server, _folder }, _) = fresh().await;
    survives_reconnects(&server).await;
}

/// A token is as good as the history is long.
#[tokio::test]
async fn an_expired_token_is_refused() {
    let (_server, mut client) = fresh().await;
    client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let token = Watching::begin(&mut client, from("")).await.unwrap().token;
    let second = Some(prost_types::Duration { seconds: 1, nanos: 0 });
    let policies = v1::Policies { history_retention: second, ..Default::default() };
    client.govern(policies).await.unwrap();
    let since = Instant::now();
    loop {
        let refused = Watching::begin(&mut client, from(&token)).await.err();
        if let Some(refused) = refused {
            let expired =
                StatusDetails::new(Code::OutOfRange, "RESUME_EXPIRED").field("resume_token");
            assert_eq!(status_details(refused), expired);
            return;
        }
        assert!(since.elapsed() < TIMEOUT, "the token is still good");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_watch_ends_with_its_server() {
    // A watch that did not end would delay the stop by the drain time.
    let (Fresh { server, _folder }, mut client) = fresh_with(&["--drain", "600s"]).await;
    let mut watching = Watching::begin(&mut client, from("")).await.unwrap();
    let since = Instant::now();
    server.signal("TERM");
    let ended = status_details(watching.next().await.unwrap_err());
    assert_eq!(ended, StatusDetails::new(Code::Unavailable, "WATCH_ENDED"));
    assert!(server.wait().success());
    assert!(since.elapsed() < 2 * TIMEOUT, "it took {:?}", since.elapsed());
}
