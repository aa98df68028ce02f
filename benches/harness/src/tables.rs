//! The tables of the documents.

use std::iter;

use crate::Fallible;
use crate::results::{Measure, Results, Settings, median};
use crate::soak::BLOWS;

/// A row: its title, and the figure with that subject and metric.
type Row = (&'static str, &'static str, &'static str);

/// Returns a table of the results in Markdown.
pub fn table(results: &Results, view: &str) -> Fallible<String> {
    match (results.suite.as_str(), view) {
        (_, "setup") => Ok(setup(results)),
        ("embedded", "summary") => summary(results),
        ("embedded" | "mongodb", "throughput") => by_concurrency(results, &THROUGHPUT),
        ("embedded" | "mongodb", "latency") => by_concurrency(results, &LATENCY),
        ("embedded", "creates") => {
            let rows = [("grouped", "create", "calls"), ("one a sync", ONE_A_SYNC, "calls")];
            let ratio = ratio_row(results, ("create", "calls"), (ONE_A_SYNC, "calls"))?;
            Ok(format!("{}\n{ratio}", by_concurrency(results, &rows)?))
        }
        ("embedded", "memory") => memory(results),
        ("embedded", "start") => start(results),
        ("mongodb", "lookups") => by_concurrency(results, &lookups("calls")),
        ("mongodb", "lookup-latency") => by_concurrency(results, &lookups("p99")),
        ("mongodb", "writes") => by_concurrency(results, &WRITES),
        ("mongodb", "hints") => hints(results),
        ("postgresql", "rates") => by_concurrency(results, &JOINS),
        ("soak-embedded" | "soak-mongodb", "soak") => soak(results),
        (suite, _) => Err(format!("{suite} has no view {view}").into()),
    }
}

const THROUGHPUT: [Row; 3] = [
    ("no-op, calls", "health", "calls"),
    ("resolve, calls", "resolve", "calls"),
    ("batches of 100, identifiers", "batch", "identifiers"),
];
const LATENCY: [Row; 9] = [
    ("no-op, p50", "health", "p50"),
    ("no-op, p99", "health", "p99"),
    ("no-op, p99.9", "health", "p999"),
    ("resolve, p50", "resolve", "p50"),
    ("resolve, p99", "resolve", "p99"),
    ("resolve, p99.9", "resolve", "p999"),
    ("batch of 100, p50", "batch", "p50"),
    ("batch of 100, p99", "batch", "p99"),
    ("batch of 100, p99.9", "batch", "p999"),
];
const WRITES: [Row; 4] = [
    ("create, calls a second", "create", "calls"),
    ("link or unlink, calls a second", "link", "calls"),
    ("create, p99 in µs", "create", "p99"),
    ("link or unlink, p99 in µs", "link", "p99"),
];
const JOINS: [Row; 2] = [
    ("look-ups by a join", "resolve", "calls"),
    ("creates, a transaction each", "create", "calls"),
];
const SOAK_SUMS: [Row; 4] = [
    ("look-ups", "look-up", "calls"),
    ("changes", "change", "calls"),
    ("events that the watch got", "event", "events"),
    ("calls that failed after all attempts", "call", "failures"),
];
const SOAK_MEDIANS: [Row; 5] = [
    ("p50 of look-ups, µs", "look-up", "p50"),
    ("p99 of look-ups, µs", "look-up", "p99"),
    ("memory of server 1, MiB", "server 1", "memory"),
    ("descriptors of server 1", "server 1", "descriptors"),
    ("threads of server 1", "server 1", "threads"),
];
const ONE_A_SYNC: &str = "create, one a sync";

/// Returns the ways to look up an identifier in MongoDB.
const fn lookups(metric: &'static str) -> [Row; 5] {
    [
        ("`polynym serve`", "resolve", metric),
        ("`--hints 0`", "resolve, no hints", metric),
        ("`--hints 0 --coalesce off`", "resolve, no hints, one by one", metric),
        ("the driver, two finds", "driver, two finds", metric),
        ("the driver, one `$lookup`", "driver, one $lookup", metric),
    ]
}

/// Lists the commit, the machine and the sizes.
fn setup(results: &Results) -> String {
    let Results { commit, date, machine, settings, versions, .. } = results;
    let modified = if results.modified { ", with changes" } else { "" };
    let [before, after] = results.load_average;
    let mut lines = vec![
        format!("commit {commit}{modified}, {date}, profile `{}`", settings.profile),
        versions.join(", "),
        format!(
            "{} cores ({}), shared by clients and servers; {} MiB of memory; Linux {}",
            machine.cores,
            machine.cpu,
            number(machine.memory_mib as f64),
            machine.kernel
        ),
        format!("load average {before} before the run, {after} after it"),
        if results.suite.starts_with("soak") {
            let Settings { users, rounds, duration_seconds, .. } = settings;
            format!("{} users; {duration_seconds} s, {rounds} samples", number(*users as f64))
        } else {
            format!(
                "{} users with three identities; medians of {} rounds of {} s, each after {} s of \
                 warm-up",
                number(settings.users as f64),
                settings.rounds,
                settings.duration_seconds,
                settings.warmup_seconds
            )
        },
    ];
    for line in &mut lines {
        line.insert_str(0, "- ");
    }
    format!("```sh\n{}\n```\n\n{}", results.command, lines.join("\n"))
}

/// Returns the table of the README, and where its figures are from.
fn summary(results: &Results) -> Fallible<String> {
    let Results { commit, date, machine, settings, .. } = results;
    let users = format!("--users {} ", settings.users);
    let durable = "new users, each on the disk before its answer";
    let rows = [
        ("an empty call, the ceiling", "health", "", 64, "calls"),
        ("one name a call", "resolve", users.as_str(), 64, "calls"),
        ("a hundred names a call", "batch", users.as_str(), 16, "identifiers"),
        (durable, "create", "", 64, "calls"),
    ];
    let row = |(what, mode, users, concurrency, metric): (&str, &str, &str, usize, &str)| {
        let rounded = (results.median(mode, metric, concurrency)? / 100.0).round() * 100.0;
        let unit = match mode {
            "health" => "calls",
            "create" => "users",
            _ => "names",
        };
        let command = format!("`polynym bench {mode} {users}--concurrency {concurrency}`");
        Ok(vec![what.to_owned(), command, format!("{} {unit}", number(rounded))])
    };
    let rows: Vec<_> = rows.into_iter().map(row).collect::<Fallible<_>>()?;
    let head = ["what", "command", "a second"].map(str::to_owned);
    Ok(format!(
        "{}\n\nMeasured at commit {commit} on {date}, on {} cores ({}), with {} users of three \
         names each.",
        markdown(&head, &rows),
        machine.cores,
        machine.cpu,
        number(settings.users as f64)
    ))
}

fn memory(results: &Results) -> Fallible<String> {
    let mut rows = Vec::new();
    for cache in ["16MiB", "256MiB", "1536MiB"] {
        let subject = format!("cache {cache}");
        let calls = results.median(&subject, "calls", 64)?;
        let resident = results.median(&subject, "resident memory", 0)?;
        rows.push(vec![format!("`--cache {cache}`"), number(calls), number(resident)]);
    }
    let head = ["", "resolves a second at 64", "resident MiB"].map(str::to_owned);
    let size = number(results.median("store", "size", 0)?);
    let time = number(results.median("load", "time", 0)?);
    let loaded = format!("The users take {size} MiB on disk. Loading them by calls took {time} s.");
    Ok(format!("{}\n\n{loaded}", markdown(&head, &rows)))
}

fn start(results: &Results) -> Fallible<String> {
    let mut rows = Vec::new();
    for end in ["after a clean end", "after kill -9"] {
        let subject = format!("start {end}");
        let listening = results.median(&subject, "listening", 0)?;
        let answer = results.median(&subject, "first answer", 0)?;
        rows.push(vec![end.to_owned(), number(listening), number(answer)]);
    }
    Ok(markdown(&["", "listening", "first answer"].map(str::to_owned), &rows))
}

fn hints(results: &Results) -> Fallible<String> {
    let (with, without) = (("resolve", "calls"), ("resolve, no hints", "calls"));
    let rows = [("with hints", with.0, with.1), ("`--hints 0`", without.0, without.1)];
    let rates = by_concurrency(results, &rows)?;
    let ratio = ratio_row(results, with, without)?;
    let rows = [
        ("µs of `mongod` a look-up, with hints", "resolve", "mongod time"),
        ("µs of `mongod` a look-up, `--hints 0`", "resolve, no hints", "mongod time"),
    ];
    let table = by_concurrency(results, &rows)?;
    let times: Vec<_> = table.lines().skip(2).collect();
    Ok(format!("{rates}\n{ratio}\n{}", times.join("\n")))
}

/// Returns what a soak did, and how the halves of it compare.
fn soak(results: &Results) -> Fallible<String> {
    let sum = |subject, metric| -> Fallible<String> {
        let sum: f64 = results.rounds(subject, metric, 0)?.iter().sum();
        Ok(if sum < 100.0 { format!("{sum:.0}") } else { number(sum) })
    };
    let mut rows = Vec::new();
    for (title, subject, metric) in SOAK_SUMS {
        rows.push(vec![title.to_owned(), sum(subject, metric)?, String::new()]);
    }
    for (kind, title) in BLOWS {
        let times = results.rounds(kind, "times", 0)?.len();
        rows.push(vec![title.to_owned(), times.to_string(), String::new()]);
    }
    for (title, subject, metric) in SOAK_MEDIANS {
        let (first, second) = halves(results.rounds(subject, metric, 0)?);
        rows.push(vec![title.to_owned(), number(first), number(second)]);
    }
    Ok(markdown(&["", "in all, or first half", "second half"].map(str::to_owned), &rows))
}

/// Returns the medians of both halves, without the samples of a server that was down.
fn halves(values: &[f64]) -> (f64, f64) {
    let (first, second) = values.split_at(values.len() / 2);
    let of =
        |half: &[f64]| median(&half.iter().copied().filter(|one| *one > 0.0).collect::<Vec<_>>());
    (of(first), of(second))
}

/// Returns a table of medians with a column for each concurrency of the first row.
fn by_concurrency(results: &Results, rows: &[Row]) -> Fallible<String> {
    let columns = rows.first().map(|(_, subject, metric)| results.columns(subject, metric));
    let columns = columns.unwrap_or_default();
    let head = iter::once("calls in flight".to_owned());
    let head: Vec<_> = head.chain(columns.iter().map(usize::to_string)).collect();
    let row = |(title, subject, metric): &Row| {
        let figures =
            columns.iter().map(|n: &usize| Ok(number(results.median(subject, metric, *n)?)));
        iter::once(Ok((*title).to_owned())).chain(figures).collect()
    };
    let rows: Vec<_> = rows.iter().map(row).collect::<Fallible<_>>()?;
    Ok(markdown(&head, &rows))
}

/// Returns a row with the medians of the rounds' ratios.
fn ratio_row(results: &Results, over: Measure, under: Measure) -> Fallible<String> {
    let mut row = "| ratio |".to_owned();
    for concurrency in results.columns(over.0, over.1) {
        let ratio = median(&results.ratios(over, under, concurrency)?);
        row += &format!(" {ratio:.2} |");
    }
    Ok(row)
}

fn markdown(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let rule = format!("| --- |{}", " ---: |".repeat(head.len() - 1));
    let rows = rows.iter().map(|row| line(row));
    [line(head), rule].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

/// Returns a figure with three digits or more, and commas between thousands.
pub fn number(figure: f64) -> String {
    let decimals = match figure.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{figure:.decimals$}");
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (n, digit) in whole.chars().enumerate() {
        if n > 0 && (whole.len() - n).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_commas() {
        let figures = [1_234_567.8, 62_270.4, 100.2, 85.94, 1.234, 0.1267];
        let texts = ["1,234,568", "62,270", "100", "85.9", "1.23", "0.127"];
        assert_eq!(figures.map(number), texts);
    }
}
