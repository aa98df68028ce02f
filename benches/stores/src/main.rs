//! `cargo run --release` here compares embedded stores and prints a table in Markdown. `USERS`
//! (1,000,000), `ROUNDS` (3) and `CACHE_MIB` (1,024) may be set; the stores lie in a temporary
//! folder (`TMPDIR`).

mod child;
mod data;
mod engine;
mod fjall;
mod lmdb;
mod redb;
mod sqlite;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::data::{User, key, mixed};
use crate::engine::{Engine, Kind, Result};

const READS: u64 = 200_000;
const WRITING: Duration = Duration::from_secs(1);

/// What was measured of one store, by column.
#[derive(Default)]
struct Row(Vec<(&'static str, Vec<f64>)>);

impl Row {
    fn add(&mut self, column: &'static str, value: f64) {
        match self.0.iter_mut().find(|(name, _)| *name == column) {
            Some((_, values)) => values.push(value),
            None => self.0.push((column, vec![value])),
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if !arguments.is_empty() {
        return child::main(&arguments);
    }
    let (users, rounds, cache) = (setting("USERS", 1_000_000), setting("ROUNDS", 3), setting("CACHE_MIB", 1_024) << 20);
    let folder = tempfile::tempdir()?;
    let mut rows: [Row; 4] = Default::default();
    let folders = Kind::ALL.map(|kind| folder.path().join(kind.name()));
    let stores = || Kind::ALL.into_iter().zip(&folders);
    for ((kind, folder), row) in stores().zip(&mut rows) {
        load(kind, folder, users, cache, row)?;
    }
    let mut open = stores().map(|(kind, folder)| kind.open(folder, cache)).collect::<Result<Vec<_>>>()?;
    for round in 0..=rounds {
        for (store, row) in open.iter().zip(&mut rows) {
            let rates = (reads(&**store, users, 1, round)?, reads(&**store, users, 2, round)?);
            // The first round fills the caches.
            if round > 0 {
                row.add("look-ups/s, 1 thread", rates.0);
                row.add("look-ups/s, 2 threads", rates.1);
            }
        }
    }
    let mut next = [users; 4];
    for _ in 0..rounds {
        for ((store, row), next) in open.iter_mut().zip(&mut rows).zip(&mut next) {
            row.add("creates/s, one a sync", creates(&mut **store, next, 1)?);
            row.add("creates/s, 64 a sync", creates(&mut **store, next, 64)?);
        }
    }
    drop(open);
    for _ in 0..rounds {
        for (((kind, folder), row), next) in stores().zip(&mut rows).zip(&mut next) {
            child::measure(kind, folder, users, next, row)?;
        }
    }
    print(&rows, users, rounds, cache);
    Ok(())
}

fn load(kind: Kind, folder: &Path, users: u64, cache: u64, row: &mut Row) -> Result<()> {
    std::fs::create_dir(folder)?;
    let mut store = kind.open(folder, cache)?;
    let start = Instant::now();
    for from in (0..users).step_by(10_000) {
        store.create(&(from..users.min(from + 10_000)).map(User::number).collect::<Vec<_>>())?;
    }
    store.settle();
    row.add("load, s", start.elapsed().as_secs_f64());
    drop(store);
    row.add("on disk, MiB", disk_bytes(folder)? as f64 / f64::from(1 << 20));
    Ok(())
}

fn disk_bytes(folder: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let (path, metadata): (PathBuf, _) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
        sum += if metadata.is_dir() { disk_bytes(&path)? } else { metadata.blocks() * 512 };
    }
    Ok(sum)
}

/// Looks up random users on each of `threads` threads, and tells how many a second in all.
fn reads(store: &dyn Engine, users: u64, threads: u64, round: u64) -> Result<f64> {
    let keys: Vec<_> = (0..threads)
        .map(|thread| (0..READS).map(|n| mixed((round << 40) + (thread << 32) + n) % users).collect::<Vec<_>>())
        .map(|numbers| (numbers.iter().map(|&n| key(n, n % 3)).collect::<Vec<_>>(), numbers))
        .collect();
    let start = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            keys.iter().map(|(keys, numbers)| scope.spawn(|| resolve(store, keys, numbers))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a reader panicked")?)
    })?;
    Ok((threads * READS) as f64 / start.elapsed().as_secs_f64())
}

/// Looks `keys` up and checks that they are those of users `numbers`.
fn resolve(store: &dyn Engine, keys: &[String], numbers: &[u64]) -> Result<()> {
    let (mut numbers, mut right, mut copy) = (numbers.iter(), 0, Vec::with_capacity(data::DOCUMENT));
    store.resolve(keys, &mut |document| {
        copy.clear();
        copy.extend_from_slice(document);
        right += usize::from(numbers.next().is_some_and(|n| copy.starts_with(&n.to_be_bytes())));
    })?;
    if right == keys.len() { Ok(()) } else { Err("a wrong user was found".into()) }
}

fn creates(store: &mut dyn Engine, next: &mut u64, group: u64) -> Result<f64> {
    let (start, first) = (Instant::now(), *next);
    while start.elapsed() < WRITING {
        store.create(&(*next..*next + group).map(User::number).collect::<Vec<_>>())?;
        *next += group;
    }
    Ok((*next - first) as f64 / start.elapsed().as_secs_f64())
}

fn print(rows: &[Row], users: u64, rounds: u64, cache: u64) {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    println!("{users} users, {rounds} rounds, cache of {} MiB, {cores} cores, Linux {}", cache >> 20, kernel.trim());
    println!("{}\n", versions());
    println!("| median |{}", Kind::ALL.map(|kind| format!(" {} |", kind.name())).concat());
    println!("|---|{}", "---:|".repeat(rows.len()));
    for (column, _) in &rows[0].0 {
        let cell = |row: &Row| row.0.iter().find(|(name, _)| name == column).map(|(_, v)| format!(" {} |", median(v)));
        println!("| {column} |{}", rows.iter().filter_map(cell).collect::<String>());
    }
}

fn median(values: &[f64]) -> String {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let median = values[values.len() / 2];
    format!("{median:.*}", if median < 100.0 { 1 } else { 0 })
}

/// The versions of what is compared, from the lock file.
fn versions() -> String {
    let version = |name: &str| {
        let after = include_str!("../Cargo.lock").split_once(&format!("name = \"{name}\"\nversion = \""))?.1;
        Some(format!("{name} {}", after.split_once('"')?.0))
    };
    ["redb", "heed", "fjall", "rusqlite"].into_iter().filter_map(version).collect::<Vec<_>>().join(", ")
}
