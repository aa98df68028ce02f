//! Counters as series over time: the largest ones, and the sum of the others.

use std::collections::BTreeMap;

use polynym_presentation::time::{interval, minute};
use polynym_proto::v1::{GetUsageResponse, UsageSeries};
use prost_types::Timestamp;

use super::query::{By, MAX_INTERVALS};

/// The series of a plot, beside the sum of the others.
const MAX_SERIES: usize = 6;

/// Counters over time.
#[derive(Default)]
pub struct Counts {
    /// The series, the largest first.
    pub series: Vec<Series>,
    /// The beginnings of the intervals, in seconds since 1970.
    pub times: Vec<i64>,
    /// The name of the interval.
    pub interval: &'static str,
    /// The counts of all series together.
    pub total: i64,
}

/// The counts of one thing.
pub struct Series {
    /// What is counted, such as `GetUser`.
    pub name: String,
    pub total: i64,
    pub failed: i64,
    /// A count for each interval.
    pub counts: Vec<i64>,
}

impl Counts {
    /// The counters of a response.
    pub fn of(answer: &GetUsageResponse, by: By) -> Self {
        let (interval, seconds) = interval(answer.resolution());
        let second = |time: &Option<Timestamp>| time.as_ref().map_or(0, |time| time.seconds);
        let (from, to) = (second(&answer.from), second(&answer.to));
        // The first and the last interval may be partial.
        let intervals = ((to - from) / seconds + 1).min(MAX_INTERVALS + 2);
        let times: Vec<_> = (0..intervals).map(|n| from + n * seconds).collect();
        let mut by_name: BTreeMap<String, Series> = BTreeMap::new();
        for series in &answer.series {
            let name = name(series, by);
            let shown = by_name.entry(name.clone()).or_insert_with(|| Series {
                name,
                total: 0,
                failed: 0,
                counts: vec![0; times.len()],
            });
            let is_failure = series.metric.starts_with("calls.") && !series.metric.ends_with(".OK");
            for point in &series.points {
                shown.total += point.count;
                shown.failed += if is_failure { point.count } else { 0 };
                let index = usize::try_from((second(&point.time) - from) / seconds);
                if let Some(count) = index.ok().and_then(|index| shown.counts.get_mut(index)) {
                    *count += point.count;
                }
            }
        }
        let series = largest(by_name.into_values().collect());
        let total = series.iter().map(|series| series.total).sum();
        Self { series, times, interval, total }
    }

    /// The length of the bar of a series, in percent of the longest.
    pub fn share(&self, series: &Series) -> i64 {
        let longest = self.series.iter().map(|series| series.total).max().unwrap_or_default();
        (i128::from(series.total) * 100)
            .checked_div(i128::from(longest))
            .map_or(0, |share| (share as i64).max(i64::from(series.total > 0)))
    }

    /// The intervals with counts, the latest first: their times, and the counts of the series.
    pub fn rows(&self) -> Vec<(String, Vec<i64>)> {
        let counts = |n: usize| self.series.iter().map(|series| series.counts[n]).collect();
        let rows = self.times.iter().enumerate().map(|(n, time)| (minute(*time), counts(n)));
        let rows = rows.filter(|(_, counts): &(_, Vec<i64>)| counts.iter().any(|count| *count > 0));
        let mut rows: Vec<_> = rows.collect();
        rows.reverse();
        rows
    }
}

impl Series {
    /// The highest count of an interval.
    pub fn peak(&self) -> i64 {
        self.counts.iter().copied().max().unwrap_or_default()
    }
}

/// The name of a counter's series.
fn name(series: &UsageSeries, by: By) -> String {
    let parts: Vec<_> = series.metric.split('.').collect();
    match (by, &*parts) {
        (By::Caller, _) => series.caller.clone(),
        (By::Kind, [_, kind, found]) => format!("{kind}, {}", found.replace('_', " ")),
        (_, [_, method, ..]) => (*method).to_owned(),
        _ => series.metric.clone(),
    }
}

/// The largest series, and the sum of the others.
fn largest(mut all: Vec<Series>) -> Vec<Series> {
    all.sort_by(|one, other| other.total.cmp(&one.total).then_with(|| one.name.cmp(&other.name)));
    if all.len() <= MAX_SERIES + 1 {
        return all;
    }
    let others = all.split_off(MAX_SERIES);
    let mut rest = Series {
        name: format!("{} others", others.len()),
        total: 0,
        failed: 0,
        counts: vec![0; others[0].counts.len()],
    };
    for other in &others {
        rest.total += other.total;
        rest.failed += other.failed;
        rest.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
    }
    all.push(rest);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use polynym_proto::v1::{UsagePoint, UsageResolution};

    fn at(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp { seconds, nanos: 0 })
    }

    #[test]
    fn counters_are_summed_by_interval() {
        let series = |metric: String, caller: &str, minute: i64, count: i64| UsageSeries {
            metric,
            caller: caller.to_owned(),
            points: vec![UsagePoint { time: at(60 * minute), count }],
        };
        let mut answer = GetUsageResponse {
            resolution: UsageResolution::Minute.into(),
            from: at(0),
            to: at(200),
            series: vec![
                series("calls.GetUser.OK".to_owned(), "a", 0, 5),
                series("calls.GetUser.NOT_FOUND".to_owned(), "b", 3, 2),
            ],
        };
        let counts = Counts::of(&answer, By::Method);
        let first = &counts.series[0];
        assert_eq!((&*first.name, first.total, first.failed, first.peak()), ("GetUser", 7, 2, 5));
        assert_eq!(first.counts, [5, 0, 0, 2]);
        let rows = counts.rows();
        assert_eq!(
            rows,
            [("1970-01-01 00:03".into(), vec![2]), ("1970-01-01 00:00".into(), vec![5])]
        );
        assert_eq!(Counts::of(&answer, By::Caller).series.len(), 2);
        answer.series = (0..20).map(|n| series(format!("calls.M{n}.OK"), "a", 1, n)).collect();
        let many = Counts::of(&answer, By::Method);
        assert_eq!((many.series.len(), many.total), (MAX_SERIES + 1, 190));
        assert_eq!((&*many.series[6].name, many.series[6].total), ("14 others", 91));
    }
}
