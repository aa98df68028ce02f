//! Measures look-ups of concurrent callers with and without shared calls, in turn.
//!
//! `cargo run --release -p polynym-client --example bench -- [CALLERS [SECONDS [ROUNDS]]]`, with a
//! server at `POLYNYM_SERVER` that has an empty store.

use std::error::Error;
use std::time::{Duration, Instant};

use futures_util::future::{join_all, try_join_all};
use polynym_client::v1::{CreateUserRequest, Identity, User};
use polynym_client::{Client, Kind, email};

const USERS: usize = 10_000;
/// Users that are created at once.
const CONCURRENT_CREATES: usize = 500;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let mut number = |default| numbers.next().unwrap_or(Ok(default));
    let (callers, seconds, rounds) = (number(256)?, number(3)?, number(3)?);
    let time = Duration::from_secs(seconds as u64);
    load(&Client::builder().timeout(Duration::from_secs(60)).connect().await?).await?;

    println!("batching  calls/s  p50 ms  p99 ms");
    for _ in 0..rounds {
        for batching in [false, true] {
            let client = Client::builder().batching(batching).connect().await?;
            measure(&client, callers, time / 4).await?;
            let mut times = measure(&client, callers, time).await?;
            times.sort_unstable();
            let rate = times.len() as f64 / time.as_secs_f64();
            let percentile =
                |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e3;
            let (p50, p99) = (percentile(0.5), percentile(0.99));
            println!("{batching:8}  {rate:7.0}  {p50:6.2}  {p99:6.2}");
        }
    }
    Ok(())
}

fn address(user: usize) -> String {
    format!("user{user}@example.com")
}

async fn load(client: &Client) -> Result<(), polynym_client::Error> {
    let create = async |user: usize| {
        let identifier = Some(email(address(user)));
        let identities = vec![Identity { identifier, ..Default::default() }];
        let user = Some(User { identities, ..Default::default() });
        let request = CreateUserRequest { user, ..Default::default() };
        match client.registry().create_user(request).await {
            Err(error) if error.kind() != Kind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    };
    for first in (0..USERS).step_by(CONCURRENT_CREATES) {
        try_join_all((first..first + CONCURRENT_CREATES).map(create)).await?;
    }
    Ok(())
}

/// The times of the calls of all callers.
async fn measure(
    client: &Client,
    callers: usize,
    time: Duration,
) -> Result<Vec<Duration>, Box<dyn Error>> {
    let end = Instant::now() + time;
    let caller = |number: usize| {
        let client = client.clone();
        tokio::spawn(async move {
            let (mut times, mut user) = (Vec::new(), number);
            while Instant::now() < end {
                user = (user * 31 + 17) % USERS;
                let start = Instant::now();
                client.resolve(email(address(user))).await?;
                times.push(start.elapsed());
            }
            Ok::<_, polynym_client::Error>(times)
        })
    };
    let mut all = Vec::new();
    for times in join_all((0..callers).map(caller)).await {
        all.extend(times??);
    }
    Ok(all)
}
