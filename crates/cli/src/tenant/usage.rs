//! `polynym usage`.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use prost_types::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::{Sparkline, Widget};

use crate::client::Session;
use crate::config::{Client, Flags};
use crate::failure::Failure;
use crate::output::{self, printable};
use polynym_presentation::time::{self, instant};
use polynym_proto::v1::{GetUsageRequest, GetUsageResponse, UsageResolution, UsageSeries};
use polynym_table::guarded;

pub const EXAMPLES: &str = "\
Examples:
  polynym usage
  polynym usage --since 90d --metric 'resolves.*'
  polynym usage --since 2026-01-01 --resolution day --by-caller
  polynym usage --since 14d --resolution hour --csv > usage.csv

Times are UTC. The counts of the last ten seconds are not included yet. A server that is killed
loses the counts of its last ten seconds.";

/// The maximum columns of a chart.
const CHART_COLUMNS: u64 = 60;

#[derive(Args)]
pub struct Usage {
    /// Show counts from this time on: 2026-01-31, 2026-01-31T12:00:00Z, or an age: 90d. By default,
    /// the 24 hours before --until.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    since: Option<Timestamp>,
    /// Show counts before this time.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    until: Option<Timestamp>,
    /// Show this metric, such as calls.GetUser.NOT_FOUND, or those with a prefix: 'resolves.*'; can
    /// be repeated.
    #[arg(long = "metric", value_name = "METRIC")]
    metrics: Vec<String>,
    /// Show the counts of this caller; can be repeated.
    #[arg(long = "caller", value_name = "NAME")]
    callers: Vec<String>,
    /// The length of the intervals. By default, it depends on the time range.
    #[arg(long, value_enum)]
    resolution: Option<Resolution>,
    /// Show each caller separately.
    #[arg(long)]
    by_caller: bool,
    /// Print CSV with the columns time, metric, caller and count.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    settings: Flags<Client>,
}

/// The length of the intervals.
#[derive(Clone, Copy, ValueEnum)]
enum Resolution {
    /// Minutes, kept for 14 days.
    Minute,
    /// Hours, kept for 13 months.
    Hour,
    /// Days, kept forever.
    Day,
}

pub async fn run(command: Usage) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let resolution = match command.resolution {
        None => UsageResolution::Unspecified,
        Some(Resolution::Minute) => UsageResolution::Minute,
        Some(Resolution::Hour) => UsageResolution::Hour,
        Some(Resolution::Day) => UsageResolution::Day,
    };
    let request = GetUsageRequest {
        tenant: session.tenant(),
        metrics: command.metrics,
        callers: command.callers,
        from: command.since,
        to: command.until,
        resolution: resolution.into(),
    };
    let answer = session.answer(session.admin().get_usage(request).await)?;
    if session.json() {
        return output::print_message(&answer);
    }
    if command.csv {
        return print_csv(&answer);
    }
    print(&answer, command.by_caller)
}

/// Prints a CSV row for each count.
fn print_csv(answer: &GetUsageResponse) -> Result<(), Failure> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(["time", "metric", "caller", "count"]).map_err(csv_failure)?;
    for series in &answer.series {
        for point in &series.points {
            let time = time::text(point.time.as_ref());
            let count = point.count.to_string();
            let cells = [&*time, &series.metric, &series.caller, &count].map(guarded);
            csv.write_record(cells.iter().map(|cell| cell.as_bytes())).map_err(csv_failure)?;
        }
    }
    let text = csv.into_inner().map_err(csv_failure)?;
    output::print(&String::from_utf8_lossy(&text))
}

fn csv_failure(error: impl std::fmt::Display) -> Failure {
    Failure::Other(format!("cannot write CSV: {error}"))
}

/// Prints a row for each metric, with its total and a chart over time.
fn print(answer: &GetUsageResponse, by_caller: bool) -> Result<(), Failure> {
    let (unit, _) = time::interval(answer.resolution());
    let [from, to] = [&answer.from, &answer.to].map(|time| time::text(time.as_ref()));
    output::print(&format!("{from} to {to} (UTC), by {unit}\n"))?;
    if answer.series.is_empty() {
        return output::print("nothing was counted\n");
    }

    let mut rows: BTreeMap<(&str, &str), Vec<&UsageSeries>> = BTreeMap::new();
    for series in &answer.series {
        let caller = if by_caller { series.caller.as_str() } else { "" };
        rows.entry((&series.metric, caller)).or_default().push(series);
    }
    let mut table = output::table(["metric", "caller", "total", "course"]);
    for ((metric, caller), series) in rows {
        let points = series.iter().flat_map(|series| &series.points);
        let total: i64 = points.map(|point| point.count).sum();
        let caller = if by_caller { printable(caller) } else { "all".into() };
        let course = chart(&columns(answer, &series));
        table.add_row([&*printable(metric), &*caller, &total.to_string(), &course]);
    }
    output::print_table(&table)
}

/// The counts in equal parts of the time range: one for each interval, but at most
/// [`CHART_COLUMNS`].
fn columns(answer: &GetUsageResponse, series: &[&UsageSeries]) -> Vec<u64> {
    let seconds = |time: &Option<Timestamp>| time.as_ref().map_or(0, |time| time.seconds);
    let (_, interval) = time::interval(answer.resolution());
    let interval = interval.unsigned_abs();
    let (from, to) = (seconds(&answer.from), seconds(&answer.to));
    // Round the end up to the next second.
    let intervals = (to + 1).abs_diff(from).div_ceil(interval).max(1);
    let width = intervals.div_ceil(CHART_COLUMNS);
    let mut columns = vec![0; intervals.div_ceil(width) as usize];
    for point in series.iter().flat_map(|series| &series.points) {
        let index = seconds(&point.time).abs_diff(from) / interval / width;
        if let Some(column) = columns.get_mut(index as usize) {
            *column += point.count.unsigned_abs();
        }
    }
    columns
}

/// A bar chart in one line of text. A count above 0 has at least the lowest bar.
fn chart(columns: &[u64]) -> String {
    let max = columns.iter().copied().max().unwrap_or_default();
    // A bar has eight heights.
    let lowest = max.div_ceil(8);
    let heights: Vec<u64> =
        columns.iter().map(|count| if *count > 0 { (*count).max(lowest) } else { 0 }).collect();
    let area = Rect::new(0, 0, columns.len() as u16, 1);
    let mut line = Buffer::empty(area);
    Sparkline::default().data(&heights).max(max).render(area, &mut line);
    line.content()
        .iter()
        .map(|cell| if cell.symbol() == " " { "·" } else { cell.symbol() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use polynym_proto::v1::UsagePoint;

    fn at(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp { seconds, nanos: 0 })
    }

    #[test]
    fn a_chart_shows_small_counts() {
        assert_eq!(chart(&[0, 1, 500, 1_000]), "·▁▄█");
        assert_eq!(chart(&[0, 0]), "··");
        assert_eq!(chart(&[1]), "█");
    }

    #[test]
    fn many_intervals_share_columns() {
        let point = |minute: i64| UsagePoint { time: at(minute * 60), count: 1 };
        let series =
            UsageSeries { points: vec![point(0), point(1), point(119)], ..UsageSeries::default() };
        let answer = GetUsageResponse {
            from: at(0),
            to: at(120 * 60 - 1),
            resolution: UsageResolution::Minute.into(),
            ..GetUsageResponse::default()
        };
        let columns = columns(&answer, &[&series]);
        assert_eq!((columns.len(), columns[0], columns[59]), (60, 2, 1));
        assert_eq!(columns.iter().sum::<u64>(), 3);
    }
}
