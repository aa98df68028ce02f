//! One measurement as text.

use crate::failure::Failure;
use crate::output;
use polynym_exposition::{Figures, Times};
use polynym_presentation::count::seconds;

/// Prints the figures of an interval.
pub fn print(figures: &Figures) -> Result<(), Failure> {
    let mut table = output::table(["method", "calls/s", "p50", "p99"]);
    let row = |name: &str, calls: f64, times: Times| {
        [name.to_owned(), format!("{calls:.0}"), seconds(times.p50), seconds(times.p99)]
    };
    for method in &figures.methods {
        table.add_row(row(&method.name, method.calls, method.times));
    }
    table.add_row(row("all", figures.calls, figures.times));
    output::print_table(&table)?;
    let lines = facts(figures).into_iter().map(|(name, text)| format!("{name}: {text}\n"));
    output::print(&lines.collect::<String>())
}

/// The figures of the server as a whole, as names and texts.
pub fn facts(figures: &Figures) -> Vec<(&'static str, String)> {
    let rates = |rates: &std::collections::BTreeMap<String, f64>| {
        let texts: Vec<_> =
            rates.iter().map(|(name, rate)| format!("{name} {rate:.1}/s")).collect();
        if texts.is_empty() { "none".to_owned() } else { texts.join("  ") }
    };
    let under_way =
        figures.under_way.iter().map(|(kind, (now, limit))| format!("{kind} {now}/{limit}"));
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.1}"));
    let count = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.0}"));
    vec![
        ("errors", rates(&figures.errors)),
        ("turned away", rates(&figures.rejected)),
        ("under way", under_way.collect::<Vec<_>>().join("  ")),
        ("connections", count(figures.connections)),
        ("look-ups a shared call", number(figures.shared)),
        ("mutations a sync", number(figures.synced)),
    ]
}
