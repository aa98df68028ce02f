//! A program that reads the documents of the store with MongoDB's driver, without a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Document, doc};
use mongodb::{Client, Collection};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::Fallible;

/// How an identifier is looked up.
#[derive(Clone, Copy)]
pub enum Lookup {
    /// A find for the claim, and one for its user.
    TwoFinds,
    /// One aggregate with `$lookup`.
    Join,
}

impl Lookup {
    /// Returns the name of the figures.
    pub const fn subject(self) -> &'static str {
        match self {
            Self::TwoFinds => "driver, two finds",
            Self::Join => "driver, one $lookup",
        }
    }
}

/// The measured rate and latency.
pub struct Sample {
    pub per_second: f64,
    pub p99_us: f64,
}

/// A client of a replica set of one member.
pub struct Driver {
    client: Client,
    claims: Collection<Document>,
    users: Collection<Document>,
    count: u64,
}

impl Driver {
    /// Makes the server a replica set, and waits until it takes writes.
    pub async fn initiate(port: u16, count: u64) -> Fallible<Arc<Self>> {
        let uri = format!("mongodb://127.0.0.1:{port}/?directConnection=true");
        let client = Client::with_uri_str(uri).await?;
        let admin = client.database("admin");
        let member = doc! { "_id": 0, "host": format!("127.0.0.1:{port}") };
        let config = doc! { "_id": "rs0", "members": [member] };
        admin.run_command(doc! { "replSetInitiate": config }).await?;
        while !admin.run_command(doc! { "hello": 1 }).await?.get_bool("isWritablePrimary")? {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let database = client.database("polynym");
        let (claims, users) = (database.collection("identities"), database.collection("users"));
        Ok(Arc::new(Self { client, claims, users, count }))
    }

    pub async fn version(&self) -> Fallible<String> {
        let info = self.client.database("admin").run_command(doc! { "buildInfo": 1 }).await?;
        Ok(info.get_str("version")?.to_owned())
    }

    /// Looks up users at random, and fails at the first that is missing.
    pub async fn measure(
        self: &Arc<Self>,
        lookup: Lookup,
        concurrency: usize,
        warmup: Duration,
        duration: Duration,
    ) -> Fallible<Sample> {
        let start = Instant::now() + warmup;
        let window = [start, start + duration];
        let calls = Arc::new(AtomicU64::new(0));
        let mut callers = JoinSet::new();
        for _ in 0..concurrency {
            callers.spawn(self.clone().repeat(lookup, window, calls.clone()));
        }
        let mut latencies_us = Vec::new();
        while let Some(done) = callers.join_next().await {
            latencies_us.extend(done??);
        }
        latencies_us.sort_unstable();
        let p99 = latencies_us.get(latencies_us.len() * 99 / 100).ok_or("nothing was found")?;
        let per_second = latencies_us.len() as f64 / duration.as_secs_f64();
        Ok(Sample { per_second, p99_us: f64::from(*p99) })
    }

    async fn repeat(
        self: Arc<Self>,
        lookup: Lookup,
        [start, end]: [Instant; 2],
        calls: Arc<AtomicU64>,
    ) -> Fallible<Vec<u32>> {
        let mut latencies_us = Vec::new();
        let mut before = Instant::now();
        while before < end {
            let number = splitmix(calls.fetch_add(1, Ordering::Relaxed)) % self.count;
            let key = format!("bench,social,github/{}", 10_000_000 + number);
            match lookup {
                Lookup::TwoFinds => self.find(&key).await?,
                Lookup::Join => self.join(&key).await?,
            }
            let now = Instant::now();
            if now >= start && now < end {
                latencies_us.push((now - before).as_micros() as u32);
            }
            before = now;
        }
        Ok(latencies_us)
    }

    async fn find(&self, key: &str) -> Fallible<()> {
        let claim = self.claims.find_one(doc! { "_id": key }).await?.ok_or("no claim")?;
        let id = claim.get("u").ok_or("a claim without a user")?;
        self.users.find_one(doc! { "_id": id }).await?.ok_or("no user")?;
        Ok(())
    }

    async fn join(&self, key: &str) -> Fallible<()> {
        let join = doc! { "from": "users", "localField": "u", "foreignField": "_id", "as": "user" };
        let steps = [doc! { "$match": { "_id": key } }, doc! { "$lookup": join }];
        let found = self.claims.aggregate(steps).await?.try_next().await?.ok_or("no claim")?;
        if found.get_array("user")?.is_empty() { Err("no user".into()) } else { Ok(()) }
    }
}

/// Returns a pseudorandom number by SplitMix64.
const fn splitmix(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
