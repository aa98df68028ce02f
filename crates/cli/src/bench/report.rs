//! The result of a measurement.

use std::time::Duration;

use serde::Serialize;

use super::run::Tally;
use crate::config::Output;
use crate::failure::Failure;
use crate::output;

#[derive(Serialize)]
pub struct Report {
    calls_per_second: f64,
    identifiers_per_second: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    errors: u64,
    wrong: u64,
}

impl Report {
    pub fn new(tally: &Tally, identifiers_per_call: usize, duration: Duration) -> Self {
        // A measurement that was stopped during the warm-up has no duration.
        let seconds = duration.as_secs_f64().max(1e-3);
        let rate = |count: u64| (count as f64 / seconds * 10.0).round() / 10.0;
        let quantile = |q| micros(Duration::from_nanos(tally.latencies.value_at_quantile(q)));
        Self {
            calls_per_second: rate(tally.latencies.len()),
            identifiers_per_second: rate(tally.latencies.len() * identifiers_per_call as u64),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            errors: tally.errors,
            wrong: tally.wrong,
        }
    }

    pub fn print(&self, how: Output) -> Result<(), Failure> {
        if how.json {
            return output::print_json(self);
        }
        let mut table = output::table([
            "calls/s",
            "identifiers/s",
            "p50 µs",
            "p99 µs",
            "p99.9 µs",
            "errors",
            "wrong",
        ]);
        table.add_row([
            format!("{:.0}", self.calls_per_second),
            format!("{:.0}", self.identifiers_per_second),
            self.p50_us.to_string(),
            self.p99_us.to_string(),
            self.p999_us.to_string(),
            self.errors.to_string(),
            self.wrong.to_string(),
        ]);

        output::print_table(&table)
    }
}

/// Microseconds with a tenth.
fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e7).round() / 10.0
}
