//! A soak: callers with mixed calls and a watch, while servers and shards go down and come back,
//! and samples of the servers meanwhile. At the end nothing is lost, wrong or left behind.

mod blows;
mod callers;
mod figures;
mod plan;
mod servers;
mod tally;
mod watching;

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use polynym_client::Client;
use tokio::time::interval;

use callers::Callers;
pub use figures::{Report, Sample, Usage};
pub use plan::{Plan, Store};
use servers::Servers;
pub use tally::Calls;
use tally::Tally;
use watching::{Watching, watch_each};

/// The tenant of the users.
const TENANT: &str = "soak";
/// The deadline of a call with its attempts.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a soak.
pub async fn run(plan: &Plan, store: Store) -> Report {
    let servers = Arc::new(Servers::start(plan.program.clone(), store).await);
    let client = client(servers.urls());
    let _watches = watch_each(servers.urls().into_iter().map(|url| self::client([url])));
    let tally = Arc::new(Tally::default());
    let watching = Watching::start(&client, &tally).await;
    let callers = Callers::start(&client, &tally, plan).await;

    tally.start();
    let (samples, blows) =
        tokio::join!(sample(plan, &servers, &tally), blows::strike(plan.length, &servers, &tally));
    let users = callers.stop().await;
    watching.end(&client, &users).await;
    let store = servers.stop().await;
    let verify = Command::new(&plan.program).args(["store", "verify", "--store", &store]).output();
    let verify = verify.unwrap();
    if !verify.status.success() {
        tally.wrong(String::from_utf8_lossy(&verify.stdout).into_owned());
    }
    Report::new(samples, blows, &tally)
}

fn client(urls: impl IntoIterator<Item = String>) -> Client {
    let client = Client::builder().servers(urls).tenant(TENANT).timeout(TIMEOUT);
    client.connect_lazy().unwrap()
}

/// Takes samples until the end.
async fn sample(plan: &Plan, servers: &Servers, tally: &Tally) -> Vec<Sample> {
    let (start, mut ticks) = (Instant::now(), interval(plan.interval));
    ticks.tick().await;
    let mut samples = Vec::new();
    while start.elapsed() < plan.length {
        ticks.tick().await;
        samples.push(Sample {
            seconds: start.elapsed().as_secs_f64(),
            servers: servers.usages(),
            calls: tally.take(),
        });
    }
    samples
}
