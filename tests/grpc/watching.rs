//! Watches over gRPC: each event is sent, those of one user in order, whatever ends the watch.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use polynym::proto::v1;
use polynym::proto::v1::watch_response::Kind;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use super::{Fresh, fresh, store_in, user};
use crate::support::calls::{Client, handle};
use crate::support::server::Server;
use crate::support::status::{StatusDetails, status_details};

/// The longest that anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A watch that has begun, and its last token.
pub struct Watching {
    answers: Streaming<v1::WatchResponse>,
    pub token: String,
}

impl Watching {
    pub async fn begin(client: &mut Client, request: v1::WatchRequest) -> Result<Self, Status> {
        let mut answers = client.directory.watch(request).await?.into_inner();
        let first = tokio::time::timeout(PATIENCE, answers.message()).await.unwrap()?.unwrap();
        assert!(matches!(first.kind, Some(Kind::Heartbeat(_))), "{first:?}");
        Ok(Self { answers, token: first.resume_token })
    }

    /// The next event; an error where the watch has ended.
    pub async fn next(&mut self) -> Result<v1::Event, Status> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let answer = tokio::time::timeout_at(deadline, self.answers.message()).await;
            let answer = answer.expect("an event comes")?.ok_or_else(|| Status::unknown("end"))?;
            self.token = answer.resume_token;
            if let Some(Kind::Event(event)) = answer.kind {
                return Ok(event);
            }
        }
    }
}

pub fn from(token: &str) -> v1::WatchRequest {
    v1::WatchRequest { resume_token: token.to_owned(), ..Default::default() }
}

async fn refused(client: &mut Client, request: v1::WatchRequest) -> StatusDetails {
    match Watching::begin(client, request).await {
        Err(status) => status_details(status),
        Ok(_) => panic!("it is not refused"),
    }
}

/// Renames a user again and again.
pub async fn rename(client: &mut Client, id: &str, name: &str) -> Result<v1::User, Status> {
    let named = v1::User { user_id: id.to_owned(), ..user(name, Vec::new()) };
    client.update(named, &["display_name"]).await
}

#[tokio::test]
async fn events_are_sent_as_they_come() {
    let (_server, mut client) = fresh().await;
    let ann = client.create(user("Ann", vec![handle("ann")])).await.unwrap();
    let mut all = Watching::begin(&mut client, v1::WatchRequest::default()).await.unwrap();
    let of_ann = v1::WatchRequest { user_ids: vec![ann.user_id.clone()], ..Default::default() };
    let mut of_ann = Watching::begin(&mut client, of_ann).await.unwrap();
    let types = vec![v1::EventType::UserDisabled.into()];
    let disabled = v1::WatchRequest { types, ..Default::default() };
    let mut disabled = Watching::begin(&mut client, disabled).await.unwrap();

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
async fn a_watch_goes_on_after_each_event() {
    let (_server, mut client) = fresh().await;
    goes_on_after_each_event(&mut client).await;
}

pub async fn goes_on_after_each_event(client: &mut Client) {
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let mut watching = Watching::begin(client, v1::WatchRequest::default()).await.unwrap();
    let mut tokens = vec![watching.token.clone()];
    for n in 0..20 {
        rename(client, &joe.user_id, &format!("Joe {n}")).await.unwrap();
        watching.next().await.unwrap();
        tokens.push(watching.token.clone());
    }
    drop(watching);
    for (n, token) in tokens.iter().enumerate().take(20) {
        let mut later = Watching::begin(client, from(token)).await.unwrap();
        for sequence in n + 2..22 {
            assert_eq!(later.next().await.unwrap().sequence, sequence as i64, "after {n}");
        }
    }
}

#[tokio::test]
async fn bad_requests_name_the_field() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    for n in 0..3 {
        rename(&mut client, &joe.user_id, &format!("Joe {n}")).await.unwrap();
    }
    let token = Watching::begin(&mut client, from("")).await.unwrap().token;
    let invalid = StatusDetails::new(Code::InvalidArgument, "RESUME_TOKEN_INVALID");
    let invalid = invalid.field("resume_token");
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
    // Another store has not come so far, or has come there by other events.
    for renamed in [0, 9] {
        let (_other, mut other) = fresh().await;
        let eve = other.create(user("Eve", vec![handle("eve")])).await.unwrap();
        for n in 0..renamed {
            rename(&mut other, &eve.user_id, &format!("Eve {n}")).await.unwrap();
        }
        let mut watch = other.directory.watch(from(&token)).await.unwrap().into_inner();
        watch.message().await.unwrap();
        assert_eq!(status_details(watch.message().await.unwrap_err()), invalid);
    }

    let field = |name: &str| StatusDetails::new(Code::InvalidArgument, "FIELD_INVALID").field(name);
    let many = v1::WatchRequest { user_ids: vec![joe.user_id; 1_001], ..Default::default() };
    assert_eq!(refused(&mut client, many).await, field("user_ids"));
    let unknown = v1::WatchRequest { types: vec![99], ..Default::default() };
    assert_eq!(refused(&mut client, unknown).await, field("types"));
    let no_id = v1::WatchRequest { user_ids: vec!["joe".to_owned()], ..Default::default() };
    let no_id = refused(&mut client, no_id).await;
    assert_eq!(
        (&*no_id.reason, &no_id.fields[..]),
        ("USER_ID_INVALID", &["user_ids[0]".to_owned()][..])
    );
    let elsewhere = v1::WatchRequest { tenant: "acme".to_owned(), ..Default::default() };
    assert_eq!(refused(&mut client, elsewhere).await.reason, "TENANT_NOT_FOUND");
}

/// The events that a consumer has received.
#[derive(Default)]
pub struct Seen {
    ids: HashSet<String>,
    /// The last event of each user.
    last: BTreeMap<String, i64>,
}

impl Seen {
    /// Takes an event, unless it was seen before.
    pub fn take(&mut self, event: &v1::Event) {
        if self.ids.insert(event.event_id.clone()) {
            let last = self.last.entry(event.user_id.clone()).or_insert(event.sequence - 1);
            assert_eq!(*last + 1, event.sequence, "of user {}", event.user_id);
            *last = event.sequence;
        }
    }

    /// The events that were seen.
    pub fn count(&self) -> usize {
        self.ids.len()
    }

    /// Whether all events of users up to these have been seen.
    pub fn has(&self, last: &BTreeMap<String, i64>) -> bool {
        last.iter().all(|(user, sequence)| self.last.get(user) == Some(sequence))
    }
}

/// The last event of each user, as its history has it.
pub async fn last_events(client: &mut Client, users: &[String]) -> BTreeMap<String, i64> {
    let mut last = BTreeMap::new();
    for id in users {
        let user = Some(v1::list_history_request::User::UserId(id.clone()));
        let request = v1::ListHistoryRequest { user, page_size: 1, ..Default::default() };
        let page = client.directory.list_history(request).await.unwrap().into_inner();
        last.insert(id.clone(), page.events[0].sequence);
    }
    last
}

/// Changes users until told to stop, whether or not the server is there.
async fn change(url: Arc<Mutex<String>>, users: Vec<String>, stop: Arc<AtomicBool>) {
    let mut n = 0;
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let url = url.lock().unwrap().clone();
        let Ok(channel) = Channel::from_shared(url).unwrap().connect().await else { continue };
        let mut client = Client::over(channel);
        for user in users.iter().cycle() {
            n += 1;
            if stop.load(Ordering::Relaxed)
                || rename(&mut client, user, &format!("Name {n}")).await.is_err()
            {
                break;
            }
        }
    }
}

/// Users that are changed continually in the background.
pub struct Changing {
    users: Vec<String>,
    url: Arc<Mutex<String>>,
    stop: Arc<AtomicBool>,
    changers: Vec<tokio::task::JoinHandle<()>>,
}

impl Changing {
    /// Begins, and returns the token of a watch that began before.
    pub async fn begin(server: &Server) -> (Self, String) {
        let mut client = Client::connect(&server.url).await;
        let mut users = Vec::new();
        for n in 0..6 {
            let created = client.create(user("", vec![handle(&format!("user{n}"))])).await;
            users.push(created.unwrap().user_id);
        }
        let token = Watching::begin(&mut client, from("")).await.unwrap().token;
        let url = Arc::new(Mutex::new(server.url.clone()));
        let stop = Arc::new(AtomicBool::new(false));
        let changers = users
            .chunks(2)
            .map(|users| tokio::spawn(change(url.clone(), users.to_vec(), stop.clone())))
            .collect();
        (Self { users, url, stop, changers }, token)
    }

    /// Ends, and follows a watch until it has told of all changes. Returns the last event of each
    /// user.
    pub async fn end(
        self,
        server: &Server,
        mut seen: Seen,
        mut token: String,
    ) -> BTreeMap<String, i64> {
        self.stop.store(true, Ordering::Relaxed);
        for changer in self.changers {
            changer.await.unwrap();
        }
        let mut client = Client::connect(&server.url).await;
        let last = last_events(&mut client, &self.users).await;
        while !seen.has(&last) {
            token = follow(server, &mut seen, token, |seen| seen.has(&last)).await;
        }
        last
    }
}

/// Follows a watch until enough was seen, or it ends. Returns the last token.
pub async fn follow(
    server: &Server,
    seen: &mut Seen,
    token: String,
    is_enough: impl Fn(&Seen) -> bool,
) -> String {
    let mut client = Client::connect(&server.url).await;
    let Ok(mut watching) = Watching::begin(&mut client, from(&token)).await else {
        tokio::time::sleep(Duration::from_millis(100)).await;
        return token;
    };
    while !is_enough(seen)
        && let Ok(event) = watching.next().await
    {
        seen.take(&event);
    }
    watching.token
}

/// Kills a server again and again, and sees each event nevertheless.
pub async fn survive_kills(start: impl Fn() -> Server) {
    let mut server = start();
    let (changing, mut token) = Changing::begin(&server).await;
    let mut seen = Seen::default();
    for _ in 0..4 {
        let enough = seen.count() + 30;
        while seen.count() < enough {
            token = follow(&server, &mut seen, token, |seen| seen.count() >= enough).await;
        }
        server.signal("KILL");
        server.wait();
        server = start();
        changing.url.lock().unwrap().clone_from(&server.url);
    }
    changing.end(&server, seen, token).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_seen_though_the_server_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--store", &store_in(&folder)].map(str::to_owned);
    survive_kills(|| {
        tokio::task::block_in_place(|| Server::start(&arguments.each_ref().map(String::as_str)))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_watcher_sees_each_event_though_it_comes_and_goes() {
    let (Fresh { server, _folder }, _) = fresh().await;
    come_and_go(&server).await;
}

/// Watchers that leave without a word and come back, some with an older token, see each event; and
/// none is kept waiting by others that never read.
pub async fn come_and_go(server: &Server) {
    let (changing, token) = Changing::begin(server).await;
    let mut idle = Vec::new();
    for _ in 0..4 {
        let mut client = Client::connect(&server.url).await;
        idle.push(client.directory.watch(from(&token)).await.unwrap());
    }
    let watchers = (1..=6).map(|n| restless(server, n, token.clone()));
    let watchers = futures_util::future::join_all(watchers).await;
    let mut watchers = watchers.into_iter();
    let (seen, token) = watchers.next().unwrap();
    let last = changing.end(server, seen, token).await;
    for (mut seen, mut token) in watchers {
        while !seen.has(&last) {
            token = follow(server, &mut seen, token, |seen| seen.has(&last)).await;
        }
    }
}

/// Follows 12 watches, each for some events, and leaves each in the midst of them.
async fn restless(server: &Server, n: u32, begin: String) -> (Seen, String) {
    let (mut seen, mut tokens, mut random) = (Seen::default(), vec![begin], n);
    for _ in 0..12 {
        // Numerical Recipes: good enough to leave at other places each time.
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [some, back] = [(random >> 8) % 40, (random >> 16) % 3].map(|n| n as usize);
        let token = tokens[tokens.len().saturating_sub(1 + back)].clone();
        let enough = seen.count() + some;
        tokens.push(follow(server, &mut seen, token, |seen| seen.count() >= enough).await);
    }
    let token = tokens.pop().unwrap();
    (seen, token)
}

/// A token is as good as the history is long.
#[tokio::test]
async fn a_token_that_is_over_age_is_refused() {
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
            let expired = StatusDetails::new(Code::OutOfRange, "RESUME_EXPIRED");
            let expired = expired.field("resume_token");
            assert_eq!(status_details(refused), expired);
            return;
        }
        assert!(since.elapsed() < PATIENCE, "the token is still good");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_watch_ends_with_its_server() {
    let (Fresh { server, _folder }, mut client) = fresh().await;
    let mut watching = Watching::begin(&mut client, from("")).await.unwrap();
    let since = Instant::now();
    server.signal("TERM");
    let ended = status_details(watching.next().await.unwrap_err());
    assert_eq!(ended, StatusDetails::new(Code::Unavailable, "WATCH_ENDED"));
    assert!(server.wait().success());
    assert!(since.elapsed() < Duration::from_secs(8), "it took {:?}", since.elapsed());
}
