//! Watches over gRPC: consumers that see each event, those of one user in order.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polynym_proto::v1;
use polynym_proto::v1::watch_response::Kind;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::calls::{Client, handle, user};
use crate::server::Server;

/// The time limit on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A watch that has begun, and its last token.
pub struct Watching {
    answers: Streaming<v1::WatchResponse>,
    pub token: String,
}

impl Watching {
    pub async fn begin(client: &mut Client, request: v1::WatchRequest) -> Result<Self, Status> {
        let mut answers = client.directory.watch(request).await?.into_inner();
        let first = tokio::time::timeout(TIMEOUT, answers.message()).await.unwrap()?.unwrap();
        assert!(matches!(first.kind, Some(Kind::Heartbeat(_))), "{first:?}");
        Ok(Self { answers, token: first.resume_token })
    }

    /// The next event; an error at the end of the watch.
    pub async fn next(&mut self) -> Result<v1::Event, Status> {
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        loop {
            let reply = tokio::time::timeout_at(deadline, self.answers.message()).await;
            let answer = reply.expect("an event comes")?.ok_or_else(|| Status::unknown("end"))?;
            self.token = answer.resume_token;
            if let Some(Kind::Event(event)) = answer.kind {
                return Ok(event);
            }
        }
    }
}

/// A request for the events after a token.
pub fn from(token: &str) -> v1::WatchRequest {
    v1::WatchRequest { resume_token: token.to_owned(), ..Default::default() }
}

/// Renames a user.
pub async fn rename(client: &mut Client, id: &str, name: &str) -> Result<v1::User, Status> {
    let named = v1::User { user_id: id.to_owned(), ..user(name, Vec::new()) };
    client.update(named, &["display_name"]).await
}

/// Resumes a watch with the token of each event.
pub async fn resumes_after_each_event(client: &mut Client) {
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

/// Changes users until stopped, whether or not the server runs.
async fn change(url: Arc<Mutex<String>>, users: Vec<String>, stop: Arc<AtomicBool>) {
    let mut n = 0;
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let address = url.lock().unwrap().clone();
        let Ok(channel) = Channel::from_shared(address).unwrap().connect().await else { continue };
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
    /// The address of the server that is changed.
    pub url: Arc<Mutex<String>>,
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

    /// Stops, and follows a watch until it has sent all changes. Returns the last event of each
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

/// Follows a watch until enough events or its end. Returns the last token.
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

/// Kills a server repeatedly, and sees each event.
pub async fn survives_kills(start: impl Fn() -> Server) {
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

/// Watchers that disconnect and reconnect, some with an older token, see each event; watchers that
/// never read do not delay them.
pub async fn survives_reconnects(server: &Server) {
    let (changing, token) = Changing::begin(server).await;
    let mut idle = Vec::new();
    for _ in 0..4 {
        let mut client = Client::connect(&server.url).await;
        idle.push(client.directory.watch(from(&token)).await.unwrap());
    }
    let reconnecting = (1..=6).map(|n| reconnect_often(server, n, token.clone()));
    let mut watchers = futures_util::future::join_all(reconnecting).await.into_iter();
    let (seen, token) = watchers.next().unwrap();
    let last = changing.end(server, seen, token).await;
    for (mut seen, mut token) in watchers {
        while !seen.has(&last) {
            token = follow(server, &mut seen, token, |seen| seen.has(&last)).await;
        }
    }
}

/// Follows 12 watches and leaves each after some events.
async fn reconnect_often(server: &Server, n: u32, begin: String) -> (Seen, String) {
    let (mut seen, mut tokens, mut random) = (Seen::default(), vec![begin], n);
    for _ in 0..12 {
        // The generator of Numerical Recipes: good enough to leave at varying events.
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [some, back] = [(random >> 8) % 40, (random >> 16) % 3].map(|n| n as usize);
        let token = tokens[tokens.len().saturating_sub(1 + back)].clone();
        let enough = seen.count() + some;
        tokens.push(follow(server, &mut seen, token, |seen| seen.count() >= enough).await);
    }
    let token = tokens.pop().unwrap();
    (seen, token)
}
