//! Samples of the server's metrics: two, some seconds apart, whose difference shows rates, and the
//! rates of the samples before.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use polynym_exposition::{Figures, Scrape};

/// The least time between two samples. Pages in between show the same one.
const LEAST_AGE: Duration = Duration::from_secs(2);
/// The time from which rates are measured, if somebody watches.
const INTERVAL: Duration = Duration::from_secs(5);

/// The rates that are kept: of some minutes, if somebody watches.
const MAX_POINTS: usize = 60;

/// Returns the metrics of the server, in the text format of Prometheus.
pub type Metrics = Box<dyn Fn() -> String + Send + Sync>;

/// A sample.
#[derive(Clone)]
struct Sample {
    time: Instant,
    scrape: Arc<Scrape>,
}

/// The samples that all pages share: the server renders its metrics once for all of them.
pub struct Samples {
    metrics: Metrics,
    kept: Mutex<Kept>,
}

/// The figures of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Calls a second.
    pub calls: f64,
    /// The seconds within which 99 % of them ended; none without calls.
    pub p99: Option<f64>,
}

struct Kept {
    points: VecDeque<Point>,
    /// The sample from which rates are measured.
    before: Sample,
    latest: Sample,
}

/// The latest sample, and what happened since the one before.
pub struct Measured {
    /// The rates and latencies.
    pub figures: Figures,
    /// The increase of all metrics.
    pub increase: Scrape,
    /// The values now.
    pub now: Arc<Scrape>,
    /// The samples of the last minutes, the latest last.
    pub points: Vec<Point>,
    /// The time between the samples.
    pub interval: Duration,
}

impl Samples {
    /// Samples of these metrics. The first rates are those since now.
    pub fn new(metrics: Metrics) -> Self {
        let first = Sample { time: Instant::now(), scrape: Arc::default() };
        Self {
            metrics,
            kept: Mutex::new(Kept {
                points: VecDeque::new(),
                before: first.clone(),
                latest: first,
            }),
        }
    }

    /// Measures the server, unless somebody has just done so.
    pub fn measure(&self) -> Measured {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = Arc::ptr_eq(&kept.before.scrape, &kept.latest.scrape);
        if is_first || kept.latest.time.elapsed() >= LEAST_AGE {
            let scrape = Arc::new(Scrape::parse(&(self.metrics)()));
            let latest = Sample { time: Instant::now(), scrape };
            if !is_first && kept.latest.time.duration_since(kept.before.time) >= INTERVAL {
                kept.before = kept.latest.clone();
            }
            kept.latest = latest;
            kept.add_point();
        }
        let (before, latest) = (&kept.before, &kept.latest);
        let interval = latest.time.duration_since(before.time);
        Measured {
            figures: Figures::new(&before.scrape, &latest.scrape, interval),
            increase: latest.scrape.since(&before.scrape),
            now: latest.scrape.clone(),
            points: kept.points.iter().copied().collect(),
            interval,
        }
    }
}

impl Kept {
    /// Keeps what the latest sample shows.
    fn add_point(&mut self) {
        let interval = self.latest.time.duration_since(self.before.time);
        let figures = Figures::new(&self.before.scrape, &self.latest.scrape, interval);
        if self.points.len() == MAX_POINTS {
            self.points.pop_front();
        }
        self.points.push_back(Point { calls: figures.calls, p99: figures.times.p99 });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn many_pages_share_a_sample() {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = calls.clone();
        let samples = Samples::new(Box::new(move || {
            let count = counted.fetch_add(1, Ordering::Relaxed) + 1;
            format!("polynym_calls_total{{method=\"GetUser\",code=\"OK\"}} {count}\n")
        }));
        let first = samples.measure();
        assert_eq!(first.now.sum("polynym_calls_total"), Some(1.0));
        samples.kept.lock().unwrap().latest.time += Duration::from_secs(3_600);
        assert_eq!(samples.measure().now.sum("polynym_calls_total"), Some(1.0));
        samples.kept.lock().unwrap().latest.time = Instant::now() - LEAST_AGE;
        assert_eq!(samples.measure().now.sum("polynym_calls_total"), Some(2.0));
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert_eq!(samples.measure().points.len(), 2);
        for _ in 0..2 * MAX_POINTS {
            samples.kept.lock().unwrap().latest.time = Instant::now() - LEAST_AGE;
            samples.measure();
        }
        assert_eq!(samples.measure().points.len(), MAX_POINTS);
    }
}
