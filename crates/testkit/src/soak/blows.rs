//! Kills, restarts and freezes of servers and shards at regular times.

use std::fmt;
use std::time::{Duration, Instant};

use tokio::time::{sleep, sleep_until};

use super::figures::LONG;
use super::servers::Servers;
use super::tally::{RECOVERY, Tally};
use crate::mongo::Signal;

/// The most blows in the whole time.
const BLOWS: u32 = 24;
/// The time before the next blow of a long soak in which no failure is excused.
const CALM: Duration = Duration::from_secs(20);
/// The longest time for which a shard is stopped.
const STOPPED: Duration = Duration::from_secs(4);

/// A blow. The number is that of the server or of the shard.
#[derive(Clone, Copy)]
enum Blow {
    Kill(usize),
    Terminate(usize),
    Freeze(usize),
}

impl fmt::Display for Blow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(n) => write!(f, "kill -9 of server {}", n + 1),
            Self::Terminate(n) => write!(f, "SIGTERM to server {}", n + 1),
            Self::Freeze(n) => write!(f, "shard {} stopped", n + 1),
        }
    }
}

/// One server on a folder suffers in the first half only, and the first of several, too: its memory
/// in the second half is that of one process.
fn blow(n: usize, is_first_half: bool, servers: &Servers) -> Option<Blow> {
    let cycle: &[Blow] = match (servers.count(), is_first_half) {
        (1, true) => &[Blow::Kill(0), Blow::Terminate(0)],
        (1, false) => &[],
        (_, true) => &[
            Blow::Kill(1),
            Blow::Freeze(0),
            Blow::Terminate(0),
            Blow::Freeze(1),
            Blow::Kill(0),
            Blow::Freeze(2),
            Blow::Terminate(1),
        ],
        (_, false) => {
            &[Blow::Kill(1), Blow::Freeze(0), Blow::Terminate(1), Blow::Freeze(1), Blow::Freeze(2)]
        }
    };
    cycle.get(n % cycle.len().max(1)).copied()
}

/// The time from one blow to the next. Those of a short soak follow each other at once.
fn pause(length: Duration) -> Duration {
    let is_long = length.as_secs_f64() >= LONG;
    let least = if is_long { STOPPED + RECOVERY + CALM } else { Duration::from_secs(1) };
    (length / BLOWS).max(least)
}

/// Strikes at regular times until the last tenth. Returns the blows with their times in seconds.
pub async fn strike(length: Duration, servers: &Servers, tally: &Tally) -> Vec<(f64, String)> {
    let (start, pause) = (Instant::now(), pause(length));
    let mut blows = Vec::new();
    for n in 0.. {
        sleep_until((start + pause * (n as u32 + 1)).into()).await;
        let from = Instant::now();
        if from > start + length * 9 / 10 {
            break;
        }
        let Some(blow) = blow(n, from < start + length / 2, servers) else { continue };
        match blow {
            Blow::Kill(n) => servers.restart(n, "KILL").await,
            Blow::Terminate(n) => servers.restart(n, "TERM").await,
            Blow::Freeze(n) => {
                let shard = servers.shards()[n];
                shard.signal(Signal::Stop).await;
                sleep(STOPPED.min(length / 8)).await;
                shard.signal(Signal::Continue).await;
            }
        }
        tally.was_down(from, Instant::now());
        blows.push(((from - start).as_secs_f64(), blow.to_string()));
    }
    blows
}
