//! What takes a process of its own: opening a store in fresh memory, and killing one that writes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::data::{User, key};
use crate::engine::{Kind, Result};
use crate::{Row, reads, resolve};

/// So small a cache that what else a store holds in memory shows.
const CACHE: u64 = 64 << 20;
const KILL_AFTER: Duration = Duration::from_secs(1);

/// `open STORE FOLDER USERS FROM TO` or `write STORE FOLDER FROM`.
pub fn main(arguments: &[String]) -> Result<()> {
    let number = |i: usize| -> Result<u64> { Ok(arguments.get(i).ok_or("too few arguments")?.parse()?) };
    let [task, name, folder, ..] = arguments else { return Err("too few arguments".into()) };
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or("no such store")?;
    match task.as_str() {
        "open" => open(kind, Path::new(folder), number(3)?, number(4)?..number(5)?),
        _ => write(kind, Path::new(folder), number(3)?),
    }
}

/// Opens the store and finds a user, then looks for those that were acknowledged, then tells the
/// time and the memory.
fn open(kind: Kind, folder: &Path, users: u64, acknowledged: std::ops::Range<u64>) -> Result<()> {
    let start = Instant::now();
    let store = kind.open(folder, CACHE)?;
    resolve(&*store, &[key(users / 2, 0)], &[users / 2])?;
    let opening = start.elapsed().as_secs_f64() * 1e3;
    let numbers: Vec<_> = acknowledged.collect();
    resolve(&*store, &numbers.iter().map(|&n| key(n, 2)).collect::<Vec<_>>(), &numbers)?;
    reads(&*store, users, 1, 0)?;
    println!("{opening} {} {}", memory_mib("RssAnon")?, memory_mib("RssFile")?);
    Ok(())
}

fn memory_mib(what: &str) -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(what)).ok_or("no such line")?;
    Ok(line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<f64>()? / 1024.0)
}

/// Creates users, 64 a sync, and tells after each group how far it is, until it is killed.
fn write(kind: Kind, folder: &Path, mut next: u64) -> Result<()> {
    let mut store = kind.open(folder, CACHE)?;
    loop {
        store.create(&(next..next + 64).map(User::number).collect::<Vec<_>>())?;
        next += 64;
        writeln!(std::io::stdout().lock(), "{next}")?;
    }
}

fn command(task: &str, kind: Kind, folder: &Path, numbers: &[u64]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([task, kind.name()]).arg(folder).args(numbers.iter().map(u64::to_string)).stdout(Stdio::piped());
    Ok(command)
}

/// One round: opens after a clean end, kills while it writes, opens again. `next` is the first user
/// who is not there.
pub fn measure(kind: Kind, folder: &Path, users: u64, next: &mut u64, row: &mut Row) -> Result<()> {
    let clean = opened(kind, folder, &[users, *next, *next])?;
    row.add("opening after a clean end, ms", clean[0]);
    row.add("memory of the process, MiB", clean[1]);
    row.add("and mapped file, MiB", clean[2]);
    let acknowledged = killed(kind, folder, *next)?;
    row.add("opening after kill -9, ms", opened(kind, folder, &[users, *next, acknowledged])?[0]);
    // A group may be there that was not acknowledged.
    *next = acknowledged + 64;
    Ok(())
}

fn opened(kind: Kind, folder: &Path, numbers: &[u64]) -> Result<Vec<f64>> {
    let output = command("open", kind, folder, numbers)?.stderr(Stdio::inherit()).output()?;
    let figures = String::from_utf8(output.stdout)?;
    let figures = figures.split_whitespace().map(|n| Ok(n.parse()?)).collect::<Result<Vec<f64>>>()?;
    if output.status.success() && figures.len() == 3 { Ok(figures) } else { Err("opening failed".into()) }
}

/// Kills a writer, and tells how far it had acknowledged.
fn killed(kind: Kind, folder: &Path, next: u64) -> Result<u64> {
    let mut child = command("write", kind, folder, &[next])?.spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let (mut acknowledged, start) = (next, Instant::now());
    while start.elapsed() < KILL_AFTER {
        acknowledged = lines.next().ok_or("the writer ended")??.parse()?;
    }
    child.kill()?;
    for line in lines.map_while(|line| line.ok()) {
        acknowledged = line.parse().unwrap_or(acknowledged);
    }
    child.wait()?;
    Ok(acknowledged)
}
