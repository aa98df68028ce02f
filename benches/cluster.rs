//! Starts MongoDB servers for trials, and runs until Ctrl-C or SIGTERM. It measures nothing.
//!
//! `cargo bench --bench cluster -- --shards 3` starts a sharded cluster, `-- --members 1` a replica
//! set. Once it serves it prints `ready` and where.

use clap::Parser;
use testkit::mongo::{Layout, ReplicaSet, Sharded};
use tokio::signal::unix::{SignalKind, signal};

/// Starts MongoDB servers, and runs until Ctrl-C or SIGTERM.
#[derive(Parser)]
struct Arguments {
    /// Start a sharded cluster with N shards
    #[arg(long, value_name = "N", conflicts_with = "members")]
    shards: Option<usize>,
    /// Start a replica set with N members
    #[arg(long, value_name = "N")]
    members: Option<usize>,
    /// The cache of each server, in GiB
    #[arg(long, value_name = "GIB", default_value_t = Layout::default().cache)]
    cache: f64,
    /// The name of the database to print
    #[arg(long, value_name = "NAME", default_value = "polynym")]
    database: String,
    /// The flag that `cargo bench` passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        () = serve(Arguments::parse()) => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Starts the requested servers, and waits for ever.
async fn serve(arguments: Arguments) {
    let layout = Layout {
        cache: arguments.cache,
        members: arguments.members.unwrap_or(1),
        ..Layout::default()
    };
    if let Some(shards) = arguments.shards {
        let cluster = Sharded::start(shards, layout).await;
        println!("ready {}", cluster.uri(&arguments.database));
        std::future::pending().await
    } else if arguments.members.is_some() {
        let set = ReplicaSet::start(layout).await;
        println!("ready {}", set.uri(&arguments.database, ""));
        std::future::pending().await
    } else {
        println!("nothing to start: give --shards or --members");
    }
}
