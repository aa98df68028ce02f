//! The store on MongoDB beside what one would do without it, in one process: look-ups, writes,
//! bytes, and where ids put their users.
//!
//! `cargo bench --bench mongo -- --quick` shows that it works; without `--quick` it takes more than
//! half an hour. `benches/mongo_table.py` makes a page of it. It starts its own servers, as the
//! tests do.

mod bench;
mod bytes;
mod calls;
mod documents;
mod keys;
mod locality;
mod lookup;
mod people;
mod place;
mod readers;
mod report;
mod scatter;
mod servers;
mod stores;
mod writes;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use mimalloc::MiMalloc;

use bench::Bench;
use report::Report;
use servers::Servers;

/// The server's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Measures the store on MongoDB beside what one would do without it.
#[derive(Parser)]
#[command(bin_name = "cargo bench --bench mongo --")]
struct Arguments {
    /// Only these comparisons, with commas between them.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Comparison>,
    /// Users of three identities each; comparisons on a cluster load a share of them.
    #[arg(long, default_value_t = 1_000_000)]
    users: u64,
    /// The number of rounds.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of one measurement.
    #[arg(long, default_value_t = 3.0)]
    duration: f64,
    /// 5,000 users and two rounds of a second: whether it works, not how fast.
    #[arg(long)]
    quick: bool,
    /// The file for the figures, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// The flag that Cargo passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Comparison {
    /// Look-ups on a replica set: plain finds, `$lookup`, an index inside the user.
    Lookup,
    /// Bytes on disk and of indexes.
    Bytes,
    /// Look-ups with one, two and three shards, against scatter-gather.
    Scatter,
    /// Transactions against plain inserts.
    Writes,
    /// Which shards take the writes, by kind of id.
    Locality,
    /// The shard key of identities.
    Keys,
}

impl Arguments {
    fn bench(&self) -> Bench {
        let (users, rounds, seconds) =
            if self.quick { (5_000, 2, 1.0) } else { (self.users, self.rounds, self.duration) };
        Bench {
            users,
            rounds,
            time: Duration::from_secs_f64(seconds),
            report: Report::new(users, rounds, seconds),
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (mut bench, mut servers) = (arguments.bench(), Servers::default());
    for comparison in Comparison::value_variants() {
        if arguments.only.is_empty() || arguments.only.contains(comparison) {
            run(*comparison, &mut bench, &mut servers).await?;
        }
    }
    (bench.report.server, bench.report.mongos) = servers.status_details();
    bench.report.print();
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string(&bench.report)?)?;
    }
    Ok(())
}

async fn run(comparison: Comparison, bench: &mut Bench, servers: &mut Servers) -> Result<()> {
    match comparison {
        Comparison::Lookup => lookup::run(bench, &*servers.replica_set().await?, "lookup").await,
        Comparison::Bytes => bytes::run(bench, &*servers.replica_set().await?, "bytes").await,
        Comparison::Scatter => scatter::run(bench, &*servers.cluster().await?, "scatter").await,
        Comparison::Writes => writes::run(bench, servers, "writes").await,
        Comparison::Locality => locality::run(bench, &*servers.cluster().await?, "locality").await,
        Comparison::Keys => keys::run(bench, servers, "keys").await,
    }
}
