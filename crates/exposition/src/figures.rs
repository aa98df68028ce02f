//! The figures of an interval, from the metrics at its start and end.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::scrape::Scrape;

/// The figures of an interval.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Calls per second.
    pub calls: f64,
    /// The latencies of all calls.
    pub times: Times,
    /// The methods called.
    pub methods: Vec<Method>,
    /// Failed calls per second, by code.
    pub errors: BTreeMap<String, f64>,
    /// Rejected calls per second, by cause.
    pub rejected: BTreeMap<String, f64>,
    /// Concurrent calls and permits, by kind.
    pub under_way: BTreeMap<String, (f64, f64)>,
    /// Open connections.
    pub connections: Option<f64>,
    /// Look-ups that shared a call to MongoDB, on average.
    pub shared: Option<f64>,
    /// Mutations that shared a sync, on average.
    pub synced: Option<f64>,
    /// The server's version.
    pub version: String,
}

/// A method in an interval.
#[derive(Clone, Debug, Serialize)]
pub struct Method {
    /// The name.
    pub name: String,
    /// Calls per second.
    pub calls: f64,
    /// The latencies of these calls.
    pub times: Times,
}

/// The latencies of calls, in seconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Times {
    /// The median.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
}

const BUCKETS: &str = "polynym_call_seconds_bucket";

impl Figures {
    /// The figures of the interval between two scrapes.
    pub fn new(before: &Scrape, after: &Scrape, interval: Duration) -> Self {
        let (step, seconds) = (after.since(before), interval.as_secs_f64().max(1e-3));
        let rates = |metric: &str, label: &str| {
            let mut rates = BTreeMap::new();
            for (series, count) in step.of(metric).filter(|(_, count)| *count > 0.0) {
                *rates.entry(series.label(label).to_owned()).or_default() += count / seconds;
            }
            rates
        };
        let by_method: BTreeMap<String, f64> = rates("polynym_calls_total", "method");
        let mut errors = rates("polynym_calls_total", "code");
        errors.remove("OK");
        let mut methods: Vec<_> = by_method
            .into_iter()
            .map(|(name, calls)| Method { times: times(&step, BUCKETS, Some(&name)), name, calls })
            .collect();
        methods.sort_by(|one, other| other.calls.total_cmp(&one.calls));
        let permits = |kind: &str| {
            let mut all = after.of("polynym_call_permits");
            all.find(|(series, _)| series.label("kind") == kind).map_or(0.0, |(_, value)| value)
        };
        let under_way = after.of("polynym_calls_under_way").map(|(series, value)| {
            let kind = series.label("kind");
            (kind.to_owned(), (value, permits(kind)))
        });
        let build = after.of("polynym_build_info").next();
        Self {
            // An empty sum is -0.
            calls: methods.iter().map(|method| method.calls).sum::<f64>() + 0.0,
            times: times(&step, BUCKETS, None),
            methods,
            errors,
            rejected: rates("polynym_rejected_total", "cause"),
            under_way: under_way.collect(),
            connections: after.sum("polynym_connections"),
            shared: step.mean("polynym_shared_call_items"),
            synced: step.mean("polynym_sync_mutations"),
            version: build.map_or("", |(series, _)| series.label("version")).to_owned(),
        }
    }
}

impl Scrape {
    /// The mean of a histogram's values; none without values.
    pub fn mean(&self, name: &str) -> Option<f64> {
        let count = self.sum(&format!("{name}_count")).filter(|count| *count > 0.0)?;
        Some(self.sum(&format!("{name}_sum"))? / count)
    }

    /// The median and the 99th percentile of a histogram of seconds.
    pub fn times(&self, name: &str) -> Times {
        times(self, &format!("{name}_bucket"), None)
    }
}

/// The quantiles of buckets with these names: those of a method, or all.
fn times(step: &Scrape, name: &str, method: Option<&str>) -> Times {
    let mut buckets: Vec<(f64, f64)> = Vec::new();
    for (series, count) in step.of(name) {
        if method.is_some_and(|method| series.label("method") != method) {
            continue;
        }
        let bound = series.label("le").parse().unwrap_or(f64::INFINITY);
        match buckets.iter_mut().find(|bucket| bucket.0.total_cmp(&bound).is_eq()) {
            Some(bucket) => bucket.1 += count,
            None => buckets.push((bound, count)),
        }
    }
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    Times { p50: quantile(0.5, &buckets), p99: quantile(0.99, &buckets) }
}

/// A quantile from cumulative buckets, by linear interpolation within a bucket, as
/// `histogram_quantile` of Prometheus.
fn quantile(share: f64, buckets: &[(f64, f64)]) -> Option<f64> {
    let rank = share * buckets.last().map(|(_, count)| *count).filter(|count| *count > 0.0)?;
    let n = buckets.iter().position(|(_, count)| *count >= rank)?;
    let (bound, count) = buckets[n];
    let (lower, below) = if n == 0 { (0.0, 0.0) } else { buckets[n - 1] };
    if bound.is_infinite() {
        return Some(lower);
    }
    Some(lower + (bound - lower) * (rank - below) / (count - below).max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_cover_the_interval() {
        let text = |calls: u32, slow: u32| {
            format!(
                "polynym_calls_total{{method=\"A\",code=\"OK\",caller=\"x\"}} {calls}\n\
                 polynym_calls_total{{method=\"A\",code=\"NOT_FOUND\",caller=\"x\"}} 10\n\
                 polynym_call_seconds_bucket{{method=\"A\",le=\"0.001\"}} {}\n\
                 polynym_call_seconds_bucket{{method=\"A\",le=\"0.01\"}} {calls}\n\
                 polynym_call_seconds_bucket{{method=\"A\",le=\"+Inf\"}} {calls}\n\
                 polynym_calls_under_way{{kind=\"look-up\"}} 3\n\
                 polynym_call_permits{{kind=\"look-up\"}} 1024\n\
                 polynym_shared_call_items_sum {}\npolynym_shared_call_items_count {calls}\n",
                calls - slow,
                4 * calls
            )
        };
        let (before, after) = (Scrape::parse(&text(100, 0)), Scrape::parse(&text(300, 20)));
        let figures = Figures::new(&before, &after, Duration::from_secs(2));
        assert_eq!((figures.calls, figures.shared), (100.0, Some(4.0)));
        assert!(figures.errors.is_empty(), "none in this interval");
        assert_eq!(figures.under_way["look-up"], (3.0, 1024.0));
        let times = figures.methods[0].times;
        // Of 200 calls, 180 took up to a millisecond; the 198th is the 18th of the other 20.
        assert!((times.p50.unwrap() - 0.001 * 100.0 / 180.0).abs() < 1e-9);
        assert!((times.p99.unwrap() - (0.001 + 0.009 * 18.0 / 20.0)).abs() < 1e-9);
    }

    #[test]
    fn quantiles_of_no_values_and_beyond_all_bounds() {
        assert_eq!(quantile(0.5, &[]), None);
        assert_eq!(quantile(0.5, &[(1.0, 0.0), (f64::INFINITY, 0.0)]), None);
        assert_eq!(quantile(0.5, &[(1.0, 0.0), (f64::INFINITY, 5.0)]), Some(1.0));
    }
}
