//! Callers, each with one call under way, and how fast their calls were answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hdrhistogram::Histogram;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::Result;

/// Something to call. A call that gives a wrong answer fails, and a call that fails ends the
/// measurement.
#[async_trait]
pub trait Work: Send + Sync + 'static {
    /// Makes one call. No two calls get the same number.
    async fn call(&self, number: u64) -> Result<()>;
}

/// The outcome of one measurement.
pub struct Sample {
    pub per_second: f64,
    pub p99_us: f64,
    /// The number of calls, with those that do not count.
    pub calls: u64,
}

/// When calls count: from a start, before which they only warm up, to an end.
#[derive(Clone, Copy)]
struct Window {
    start: Instant,
    end: Instant,
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Runs `callers` callers for `time` after a quarter of that to warm up.
pub async fn measure(work: &Arc<dyn Work>, callers: usize, time: Duration) -> Result<Sample> {
    let start = Instant::now() + time / 4;
    let window = Window { start, end: start + time };
    let mut under_way = JoinSet::new();
    for _ in 0..callers {
        under_way.spawn(repeat(work.clone(), window));
    }
    let (mut latencies, mut calls) = (Histogram::<u64>::new(3)?, 0);
    while let Some(done) = under_way.join_next().await {
        let (own, count) = done??;
        latencies += own;
        calls += count;
    }
    if latencies.is_empty() {
        return Err("no call was answered in time".into());
    }
    let per_second = latencies.len() as f64 / time.as_secs_f64();
    Ok(Sample { per_second, p99_us: latencies.value_at_quantile(0.99) as f64 / 1e3, calls })
}

async fn repeat(work: Arc<dyn Work>, window: Window) -> Result<(Histogram<u64>, u64)> {
    let (mut latencies, mut calls) = (Histogram::new(3)?, 0);
    let mut before = Instant::now();
    while before < window.end {
        work.call(NUMBERS.fetch_add(1, Ordering::Relaxed)).await?;
        calls += 1;
        let now = Instant::now();
        if (window.start..window.end).contains(&now) {
            latencies.record((now - before).as_nanos() as u64)?;
        }
        before = now;
    }
    Ok((latencies, calls))
}
