//! The figures of the health page, as texts.

use std::collections::BTreeMap;

use polynym_exposition::{Figures, Scrape, Times};
use polynym_presentation::count::{bytes, seconds};

use crate::samples::Measured;

/// The maximum number of methods that are shown, and of errors.
const MAX_METHODS: usize = 12;
const MAX_ERRORS: usize = 8;

/// A part of the page.
pub struct Section {
    pub title: &'static str,
    pub rows: Vec<Row>,
}

/// A figure.
pub struct Row {
    pub label: &'static str,
    pub value: String,
}

/// A method.
pub struct MethodView {
    pub name: String,
    pub rate: String,
    pub median: String,
    pub p99: String,
}

fn row(label: &'static str, value: impl Into<String>) -> Row {
    Row { label, value: value.into() }
}

/// The sections that have figures.
pub fn sections(measured: &Measured) -> Vec<Section> {
    let all = [calls(measured), store(measured), embedded(measured), mongodb(measured)];
    let events = events(measured);
    all.into_iter().chain([events]).filter(|section| !section.rows.is_empty()).collect()
}

/// The methods with the most calls.
pub fn methods(figures: &Figures) -> Vec<MethodView> {
    let shown = figures.methods.iter().take(MAX_METHODS);
    shown
        .map(|method| MethodView {
            name: method.name.clone(),
            rate: rate(method.calls),
            median: seconds(method.times.p50),
            p99: seconds(method.times.p99),
        })
        .collect()
}

fn calls(measured: &Measured) -> Section {
    let figures = &measured.figures;
    let mut rows = vec![
        row("Calls", rate(figures.calls)),
        row("Latency", latency(figures.times)),
        row("Failed calls", by_name(&figures.errors)),
        row("Rejected calls", by_name(&figures.rejected)),
    ];
    for (kind, label) in [("look-up", "Look-ups under way"), ("mutation", "Mutations under way")] {
        let (used, permits) = figures.under_way.get(kind).copied().unwrap_or_default();
        rows.push(row(label, format!("{used:.0} of {permits:.0} permits")));
    }
    let connections = figures.connections.unwrap_or_default();
    rows.push(row("Connections", format!("{connections:.0}")));
    Section { title: "Calls", rows }
}

fn store(measured: &Measured) -> Section {
    let now = &measured.now;
    let is_embedded = now.sum("polynym_store_file_bytes").is_some();
    let mut rows = vec![
        row("Kind", if is_embedded { "embedded, one file" } else { "MongoDB" }),
        row("Operations", latency(measured.increase.times("polynym_store_operation_seconds"))),
    ];
    rows.extend(number(now, "polynym_schema_version").map(|text| row("Schema version", text)));
    rows.extend(number(now, "polynym_rules_version").map(|text| row("Version of rules", text)));
    let ahead = now.sum("polynym_clock_ahead_seconds");
    rows.extend(ahead.map(|ahead| row("Clock ahead of the store's", format!("{ahead:.3} s"))));
    Section { title: "Store", rows }
}

fn embedded(measured: &Measured) -> Section {
    let now = &measured.now;
    let Some(size) = now.sum("polynym_store_file_bytes") else {
        return Section { title: "File", rows: Vec::new() };
    };
    let queue = now.sum("polynym_write_queue").unwrap_or_default();
    let synced = measured.figures.synced;
    let rows = vec![
        row("Size of the file", bytes(size as u64)),
        row("Mutations that wait for the writer", format!("{queue:.0}")),
        row("Time to sync", latency(measured.increase.times("polynym_sync_seconds"))),
        row("Mutations in a sync", mean(synced)),
    ];
    Section { title: "File", rows }
}

fn mongodb(measured: &Measured) -> Section {
    let now = &measured.now;
    let connections = |state: &str| {
        let mut all = now.of("polynym_mongodb_connections");
        all.find(|(series, _)| series.label("state") == state).map(|(_, count)| count)
    };
    let Some(open) = connections("open") else {
        return Section { title: "Cluster", rows: Vec::new() };
    };
    let used = connections("in_use").unwrap_or_default();
    let is_away = now.sum("polynym_store_partly_away").unwrap_or_default() > 0.0;
    let lookups = |outcome: &str| {
        let all = measured.increase.of("polynym_lookup_cache_lookups_total");
        all.filter(|(series, _)| series.label("outcome") == outcome).map(|(_, n)| n).sum::<f64>()
    };
    let (hits, misses) = (lookups("hit"), lookups("miss"));
    let mut rows = vec![
        row("Shards", if is_away { "some do not answer" } else { "all answer" }),
        row("Connections", format!("{open:.0} open, {used:.0} in use")),
        row("Look-ups that share a call", mean(measured.figures.shared)),
    ];
    if hits + misses > 0.0 {
        let share = 100.0 * hits / (hits + misses);
        rows.push(row("Answers from the look-up cache", format!("{share:.0} %")));
    }
    let cached = now.sum("polynym_lookup_cache_bytes");
    rows.extend(cached.map(|size| row("Size of the look-up cache", bytes(size as u64))));
    if now.sum("polynym_store_became_shard").unwrap_or_default() > 0.0 {
        rows.push(row("Replica set", "has become a shard: start the servers with its cluster"));
    }
    Section { title: "Cluster", rows }
}

fn events(measured: &Measured) -> Section {
    let watches = measured.now.sum("polynym_watches").unwrap_or_default();
    let sent = measured.increase.sum("polynym_watch_events_total").unwrap_or_default();
    let interval = measured.interval.as_secs_f64().max(1e-3);
    let rows = vec![
        row("Open watches", format!("{watches:.0}")),
        row("Events sent", rate(sent / interval)),
    ];
    Section { title: "Events", rows }
}

fn number(scrape: &Scrape, name: &str) -> Option<String> {
    scrape.sum(name).map(|value| format!("{value:.0}"))
}

/// Such as `1.25 a second`.
fn rate(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.2} a second") } else { format!("{rate:.0} a second") }
}

fn mean(mean: Option<f64>) -> String {
    mean.map_or_else(|| "none".to_owned(), |mean| format!("{mean:.1} on average"))
}

fn latency(times: Times) -> String {
    if times.p50.is_none() {
        return "none".to_owned();
    }
    format!("median {}, 99 % within {}", seconds(times.p50), seconds(times.p99))
}

/// Rates by name, the highest first.
fn by_name(rates: &BTreeMap<String, f64>) -> String {
    let mut sorted: Vec<_> = rates.iter().collect();
    sorted.sort_by(|one, other| other.1.total_cmp(one.1));
    let texts = sorted.iter().take(MAX_ERRORS).map(|(name, own)| format!("{name} {}", rate(**own)));
    let texts: Vec<_> = texts.collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_units() {
        let rates = [("A".to_owned(), 1.0), ("B".to_owned(), 20.0)].into();
        assert_eq!(by_name(&rates), "B 20 a second, A 1.00 a second");
        assert_eq!(latency(Times::default()), "none");
    }
}
