//! `polynym usage`.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use prost_types::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::{Sparkline, Widget};

use super::client::Session;
use super::failure::Failure;
use super::output;
use super::output::printable;
use super::time::instant;
use crate::config::{Client, Flags};
use crate::proto::v1::{GetUsageRequest, GetUsageResponse, UsageResolution, UsageSeries};

pub const EXAMPLES: &str = "\
Examples:
  polynym usage
  polynym usage --since 90d --metric 'resolves.*'
  polynym usage --since 2026-01-01 --resolution day --by-caller
  polynym usage --since 14d --resolution hour --csv > usage.csv

Times are UTC. What was counted in the last ten seconds is not there yet, and what a server had
counted in its last ten seconds before it was killed is lost.";

/// The columns of a drawing.
const COLUMNS: u64 = 60;

#[derive(Args)]
pub struct Usage {
    /// Show what was counted from this time on: 2026-01-31, 2026-01-31T12:00:00Z, or an age: 90d;
    /// without it, the last 24 hours before --until.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    since: Option<Timestamp>,
    /// Show what was counted before this time.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    until: Option<Timestamp>,
    /// Show this metric, such as calls.GetUser.NOT_FOUND, or those that begin so: 'resolves.*'; may
    /// be given again.
    #[arg(long = "metric", value_name = "METRIC")]
    metrics: Vec<String>,
    /// Show what this caller did; may be given again.
    #[arg(long = "caller", value_name = "NAME")]
    callers: Vec<String>,
    /// The length of the intervals; without it, one that suits the time.
    #[arg(long, value_enum)]
    resolution: Option<Resolution>,
    /// Show each caller by itself.
    #[arg(long)]
    by_caller: bool,
    /// Print lines of time, metric, caller and count.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    settings: Flags<Client>,
}

/// The length of the intervals.
#[derive(Clone, Copy, ValueEnum)]
enum Resolution {
    /// Minutes, which are kept for 14 days.
    Minute,
    /// Hours, which are kept for 13 months.
    Hour,
    /// Days, which are kept for good.
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
    let call = session.admin().get_usage(session.request(request)).await;
    let answer = session.answer(call)?;
    if session.json() {
        return output::print_message("GetUsageResponse", &answer);
    }
    if command.csv {
        return print_csv(&answer);
    }
    print(&answer, command.by_caller)
}

/// Prints a line for each counter.
fn print_csv(answer: &GetUsageResponse) -> Result<(), Failure> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    let fault =
        |error: &dyn std::fmt::Display| Failure::Other(format!("cannot write CSV: {error}"));
    csv.write_record(["time", "metric", "caller", "count"]).map_err(|error| fault(&error))?;
    for series in &answer.series {
        for point in &series.points {
            let time = point.time.as_ref().map(ToString::to_string).unwrap_or_default();
            let count = point.count.to_string();
            let record = [&time, &series.metric, &series.caller, &count];
            csv.write_record(record).map_err(|error| fault(&error))?;
        }
    }
    let text = csv.into_inner().map_err(|error| fault(&error))?;
    output::print(&String::from_utf8_lossy(&text))
}

/// Prints a line for each metric, with its total and a drawing of its course.
fn print(answer: &GetUsageResponse, by_caller: bool) -> Result<(), Failure> {
    let unit = match answer.resolution() {
        UsageResolution::Minute => "minute",
        UsageResolution::Hour => "hour",
        _ => "day",
    };
    let text = |time: &Option<Timestamp>| time.as_ref().map(ToString::to_string);
    let [from, to] = [&answer.from, &answer.to].map(|time| text(time).unwrap_or_default());
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
        let course = drawing(&columns(answer, &series));
        table.add_row([&*printable(metric), &*caller, &total.to_string(), &course]);
    }
    output::print_table(&table)
}

/// The counts of equal parts of the time, as many as there are intervals, or [`COLUMNS`].
fn columns(answer: &GetUsageResponse, series: &[&UsageSeries]) -> Vec<u64> {
    let seconds = |time: &Option<Timestamp>| time.as_ref().map_or(0, |time| time.seconds);
    let interval = match answer.resolution() {
        UsageResolution::Minute => 60,
        UsageResolution::Hour => 60 * 60,
        _ => 24 * 60 * 60,
    };
    let (from, to) = (seconds(&answer.from), seconds(&answer.to));
    // The end may be a part of a second after this.
    let intervals = (to + 1).abs_diff(from).div_ceil(interval).max(1);
    let width = intervals.div_ceil(COLUMNS);
    let mut columns = vec![0; intervals.div_ceil(width) as usize];
    for point in series.iter().flat_map(|series| &series.points) {
        let place = seconds(&point.time).abs_diff(from) / interval / width;
        if let Some(column) = columns.get_mut(place as usize) {
            *column += point.count.unsigned_abs();
        }
    }
    columns
}

/// Bars in a line of text. What is not 0 has at least the lowest bar.
fn drawing(columns: &[u64]) -> String {
    let most = columns.iter().copied().max().unwrap_or_default();
    // A bar has eight heights.
    let least = most.div_ceil(8);
    let heights: Vec<u64> =
        columns.iter().map(|count| if *count > 0 { (*count).max(least) } else { 0 }).collect();
    let area = Rect::new(0, 0, columns.len() as u16, 1);
    let mut line = Buffer::empty(area);
    Sparkline::default().data(&heights).max(most).render(area, &mut line);
    let bars =
        line.content().iter().map(|cell| if cell.symbol() == " " { "·" } else { cell.symbol() });
    bars.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::v1::UsagePoint;

    fn at(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp { seconds, nanos: 0 })
    }

    #[test]
    fn a_drawing_shows_what_is_small() {
        assert_eq!(drawing(&[0, 1, 500, 1_000]), "·▁▄█");
        assert_eq!(drawing(&[0, 0]), "··");
        assert_eq!(drawing(&[1]), "█");
    }

    #[test]
    fn intervals_share_columns_where_they_are_many() {
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
