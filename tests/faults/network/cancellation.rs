//! Callers that cancel: deadlines of 0 to 20 ms, and dropped calls. Afterwards no transaction is
//! open, the data is consistent, and the server answers as before.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use polynym_directory::Consistency;
use polynym_mongodb::Options;
use polynym_proto::v1;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::audit::{State, no_transaction};
use crate::caller::{Call, Caller, Direct, Remote, Reply};
use crate::calls::Client;
use crate::load::{Load, Plan, Random};
use crate::server::Server;
use crate::stores::{OwnSet, fresh, long, open, prepare, print_line};

/// The minimum number of mutations cancelled before their answer.
const LEFT: usize = 100;

/// A caller that cancels after a random time, by deadline or by dropping the call.
struct Leaving {
    client: Client,
}

#[async_trait]
impl Caller for Leaving {
    async fn call(&self, call: &Call, request: Option<&str>) -> Reply {
        let mut random = Random::default();
        let patience = Duration::from_micros(random.next() % 20_000);
        let deadline = (random.below(2) == 0).then_some(patience);
        let client = self.client.clone();
        let remote = Remote { client, consistency: v1::Consistency::Latest, deadline };
        match deadline {
            Some(_) => remote.call(call, request).await,
            None => {
                let answer = timeout(patience, remote.call(call, request)).await;
                answer.unwrap_or_else(|_| Reply::Unknown("hung up".to_owned()))
            }
        }
    }
}

/// Cancels calls until this number of calls.
async fn cancel_calls(calls: usize) {
    let set = OwnSet::new().await;
    let name = fresh();
    let database = set.members[0].database(&name).await;
    prepare(&set, &name).await;
    let uri = set.uri(&name, "");
    let store = open(&uri, Options::default(), false).await;
    let direct: Arc<dyn Caller> = Arc::new(Direct { store, consistency: Consistency::Latest });
    // Each unknown outcome doubles the search of the check for its name and user: many of both keep
    // it small.
    let plan = Plan {
        callers: 16,
        names: 64,
        users: 32,
        gets: true,
        creates: false,
        pause: Duration::ZERO,
        ..Plan::DEFAULT
    };
    // A patient caller creates the users.
    let (_, before) = Load::start(Plan { callers: 0, ..plan }, &[direct]).await.stop().await;
    let server =
        tokio::task::spawn_blocking(move || Server::start(&["--store", &uri])).await.unwrap();
    let mut client = Client::connect(&server.url).await;
    client.hold_nothing().await;
    let leaving: Arc<dyn Caller> = Arc::new(Leaving { client: client.clone() });
    let (load, since) = (Load::resume(plan, &[leaving], before), Instant::now());
    load.until_some(calls, since, |_| true).await;
    load.until_some(LEFT, since, |entry| matches!(entry.reply, Reply::Unknown(_))).await;
    let (ledger, before) = load.stop().await;
    let waited = no_transaction(&[&set.members[0]]).await;
    let after = State::read(&database).await;
    let answered = burst(&server).await;
    after.is_found(&Remote { client, consistency: v1::Consistency::Latest, deadline: None }).await;
    print_line(&format!(
        "cancellation: {}; no transaction was open {waited:.1?} after the last, and 200 concurrent \
         calls were answered in {answered:.1?}",
        ledger.count()
    ));
    ledger.check(&before, &after);
    server.signal("TERM");
    assert!(server.wait().success());
    database.drop().await.unwrap();
}

/// Makes more concurrent calls than there are connections. Returns the total time.
async fn burst(server: &Server) -> Duration {
    let client = Client::connect(&server.url).await;
    let since = Instant::now();
    let mut calls = JoinSet::new();
    for n in 0..200 {
        let client = client.clone();
        let remote = Remote { client, consistency: v1::Consistency::Linearizable, deadline: None };
        calls.spawn(async move { remote.call(&Call::Resolve(n % 64), None).await });
    }
    assert!(calls.join_all().await.iter().all(Reply::is_answer));
    since.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_calls_leave_nothing_open() {
    cancel_calls(350).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_leaving() {
    let since = Instant::now();
    while since.elapsed() < long() {
        cancel_calls(700).await;
    }
}
