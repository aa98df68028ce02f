//! Counters of calls while servers are killed and a set loses its primary: what a server has
//! written is what callers did, once; a server that is killed loses what it had not written, and a
//! server that ends cleanly loses nothing.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polynym_proto::v1;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tonic::Code;

use crate::calls::{Client, email};
use crate::notices::servers::{Blow, Servers};
use crate::place::print_line;
use crate::server::Server;

/// The longest that counts may take to be seen, with a store that is away meanwhile.
const LIMIT: Duration = Duration::from_secs(120);
/// A user who is not there.
const NOBODY: &str = "70000000-0001-b000-0001-000000000000";

/// Counts by metric.
type Counts = BTreeMap<String, i64>;

/// Servers, and how often callers had each answer.
struct Stage {
    servers: Servers,
    answered: Mutex<Counts>,
}

impl Stage {
    /// Looks a user up. The answer is counted, whatever it is.
    async fn call(&self, server: usize) {
        let answer = self.servers.client(server).get(NOBODY).await;
        let metric = format!("calls.GetUser.{}", name(answer.unwrap_err().code()));
        *self.answered.lock().unwrap().entry(metric).or_default() += 1;
    }

    /// Calls servers in turn until the blow has fallen.
    async fn call_until(&self, is_over: &AtomicBool) {
        for n in 0.. {
            self.call(n).await;
            if is_over.load(Relaxed) && n > 20 {
                return;
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the counters show each answer. They never show more.
    async fn until_counted(&self) {
        let since = Instant::now();
        loop {
            let expected = self.answered.lock().unwrap().clone();
            let counted = counts(&mut self.servers.client(0)).await.unwrap_or_default();
            if counted == expected {
                return;
            }
            let few = counted.iter().all(|(metric, n)| expected.get(metric) >= Some(n));
            assert!(few && since.elapsed() < LIMIT, "{counted:?}, but {expected:?} were answered");
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Kills a server in the middle of look-ups that are counted apart, once all else is written.
    /// Returns how many were answered.
    async fn kill(&self, server: usize) -> i64 {
        for n in 0..20 {
            self.call(n).await;
        }
        self.until_counted().await;
        let client = self.servers.client(server);
        let looking_up = tokio::spawn(async move {
            let mut answered = 0;
            let mut client = client;
            while let Err(status) = client.resolve(email("nobody@example.com")).await {
                if status.code() != Code::NotFound {
                    break;
                }
                answered += 1;
            }
            answered
        });
        sleep(Duration::from_millis(200)).await;
        self.servers.strike(Blow::Server(server)).await;
        looking_up.await.unwrap()
    }
}

/// The name of a code in metrics.
fn name(code: Code) -> &'static str {
    match code {
        Code::NotFound => "NOT_FOUND",
        Code::Unavailable => "UNAVAILABLE",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        other => panic!("{other:?}"),
    }
}

/// The counters of `GetUser`.
async fn counts(client: &mut Client) -> Option<Counts> {
    sums(client, "calls.GetUser.*").await
}

/// The counters of the last day; none where the server cannot tell.
async fn sums(client: &mut Client, metric: &str) -> Option<Counts> {
    let request = v1::GetUsageRequest { metrics: vec![metric.to_owned()], ..Default::default() };
    client.usage(request).await.ok()
}

/// Lets the blows fall while callers work. Then all servers end, and another one tells what they
/// have counted.
async fn count_under(servers: Servers, blows: &[Blow]) {
    servers.client(0).create(v1::User::default()).await.unwrap();
    let stage = Stage { servers, answered: Mutex::default() };
    let mut looked_up = 0;
    for blow in blows {
        match blow {
            Blow::Server(n) => looked_up += stage.kill(*n).await,
            Blow::Primary | Blow::StepDown => {
                let is_over = AtomicBool::new(false);
                let strike = async {
                    stage.servers.strike(*blow).await;
                    is_over.store(true, Relaxed);
                };
                tokio::join!(strike, stage.call_until(&is_over));
            }
        }
    }
    for n in 0..50 {
        stage.call(n).await;
    }
    stage.servers.end().await;

    let store = stage.servers.store.clone();
    let server = spawn_blocking(move || Server::start(&["--store", &store])).await.unwrap();
    let mut client = Client::connect(&server.url).await;
    let answered = stage.answered.into_inner().unwrap();
    assert_eq!(counts(&mut client).await.unwrap(), answered);
    let looked_up_by_email = sums(&mut client, "resolves.email.not_found").await.unwrap();
    let kept: i64 = looked_up_by_email.values().sum();
    // One that was on its way when its server was killed may be counted, too.
    assert!(looked_up > 0 && kept <= looked_up + blows.len() as i64, "{kept} of {looked_up}");
    print_line(&format!(
        "usage under {blows:?}: {answered:?} counted, each once; {looked_up} look-ups answered by \
         servers that were killed, {kept} of them written"
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_once_while_a_set_loses_its_primary() {
    let blows = [Blow::StepDown, Blow::Primary, Blow::Server(1), Blow::StepDown];
    count_under(Servers::on_a_set(3, 2).await, &blows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_once_while_the_embedded_store_is_killed() {
    count_under(Servers::embedded().await, &[Blow::Server(0); 3]).await;
}
