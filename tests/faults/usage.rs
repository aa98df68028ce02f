//! Counters of calls during kills and failovers: servers count each answered call once; a killed
//! server loses only its unwritten counts, and a cleanly stopped one none.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polynym_proto::v1;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tonic::Code;

use crate::calls::{Client, email};
use crate::notices::servers::{Disruption, Servers};
use crate::server::Server;
use crate::stores::print_line;

/// The maximum time until counts are visible, including outages of the store.
const LIMIT: Duration = Duration::from_secs(120);
/// An unknown user.
const NOBODY: &str = "70000000-0001-b000-0001-000000000000";

/// Counts by metric.
type Counts = BTreeMap<String, i64>;

/// Servers, and the number of each answer to callers.
struct Stage {
    servers: Servers,
    answered: Mutex<Counts>,
}

impl Stage {
    /// Looks a user up and counts the answer.
    async fn call(&self, server: usize) {
        let answer = self.servers.client(server).get(NOBODY).await;
        let metric = format!("calls.GetUser.{}", name(answer.unwrap_err().code()));
        *self.answered.lock().unwrap().entry(metric).or_default() += 1;
    }

    /// Calls servers in turn until the disruption is over.
    async fn call_until(&self, is_over: &AtomicBool) {
        for n in 0.. {
            self.call(n).await;
            if is_over.load(Relaxed) && n > 20 {
                return;
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the counters show all answers. They never show more.
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

    /// Kills a server during look-ups that are counted separately, after all else is written.
    /// Returns the number of answers.
    async fn kill(&self, server: usize) -> i64 {
        for n in 0..20 {
            self.call(n).await;
        }
        self.until_counted().await;
        let mut client = self.servers.client(server);
        let (answered, mut seen) = watch::channel(0);
        let looking_up = tokio::spawn(async move {
            while let Err(status) = client.resolve(email("nobody@example.com")).await {
                if status.code() != Code::NotFound {
                    break;
                }
                answered.send_modify(|count| *count += 1);
            }
            *answered.borrow()
        });
        timeout(LIMIT, seen.wait_for(|count| *count >= 50)).await.unwrap().unwrap();
        self.servers.disrupt(Disruption::Server(server)).await;
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

/// The counters of the last day; none if the server cannot read them.
async fn sums(client: &mut Client, metric: &str) -> Option<Counts> {
    let request = v1::GetUsageRequest { metrics: vec![metric.to_owned()], ..Default::default() };
    client.usage(request).await.ok()
}

/// Disrupts servers while callers work. Finally stops them and compares the counters.
async fn count_under(servers: Servers, disruptions: &[Disruption]) {
    servers.client(0).create(v1::User::default()).await.unwrap();
    let stage = Stage { servers, answered: Mutex::default() };
    let mut looked_up = 0;
    for disruption in disruptions {
        match disruption {
            Disruption::Server(n) => looked_up += stage.kill(*n).await,
            Disruption::Primary | Disruption::StepDown => {
                let is_over = AtomicBool::new(false);
                let disrupt = async {
                    stage.servers.disrupt(*disruption).await;
                    is_over.store(true, Relaxed);
                };
                tokio::join!(disrupt, stage.call_until(&is_over));
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
    let counted: i64 = looked_up_by_email.values().sum();
    // A call in progress at a kill may be counted too.
    assert!(
        looked_up > 0 && counted <= looked_up + disruptions.len() as i64,
        "{counted} of {looked_up}"
    );
    print_line(&format!(
        "usage under {disruptions:?}: {answered:?} counted, each once; {looked_up} look-ups \
         answered by killed servers, {counted} of them written"
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_once_during_failovers() {
    let disruptions =
        [Disruption::StepDown, Disruption::Primary, Disruption::Server(1), Disruption::StepDown];
    count_under(Servers::on_a_set(3, 2).await, &disruptions).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_once_despite_kills() {
    count_under(Servers::embedded().await, &[Disruption::Server(0); 3]).await;
}
