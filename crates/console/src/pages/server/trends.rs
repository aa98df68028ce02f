//! What the health page says at a glance: a figure, its course over the last minutes as a line,
//! and a judgement with its rule.

use std::fmt::Write;

use polynym_presentation::count::seconds;

use crate::samples::Measured;

/// The seconds within which 99 % of calls end on a server that is well.
const FINE_SECONDS: f64 = 0.1;
/// The seconds above which a server is not only slow.
const BAD_SECONDS: f64 = 1.0;
/// The share of calls that may fail on a server that is well, in percent.
const FINE_PERCENT: f64 = 1.0;
/// The codes of calls that failed by the fault of the server.
const FAULTS: [&str; 5] = ["INTERNAL", "UNAVAILABLE", "UNKNOWN", "DEADLINE_EXCEEDED", "DATA_LOSS"];

/// The size of a line, in its own units.
const WIDTH: usize = 240;
const HEIGHT: f64 = 36.0;

/// A figure with its course.
pub struct Trend {
    pub name: &'static str,
    pub now: String,
    /// The path of the line; empty with less than two points.
    pub line: String,
    /// The highest value of the line.
    pub highest: String,
    pub judgement: Judgement,
}

/// The judgement of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It is well.
    Fine,
    /// It is slow, but works.
    Slow,
    /// It is not well.
    Bad,
    /// There is nothing to judge.
    Idle,
}

/// The figures: calls, and how long they take.
pub fn trends(measured: &Measured) -> Vec<Trend> {
    let figures = &measured.figures;
    let calls: Vec<_> = measured.points.iter().map(|point| point.calls).collect();
    let times: Vec<_> = measured.points.iter().map(|p| p.p99.unwrap_or_default()).collect();
    let faults = figures.errors.iter().filter(|(name, _)| FAULTS.contains(&&***name));
    let faults: f64 = faults.map(|(_, rate)| rate).sum();
    vec![
        Trend {
            name: "Calls a second",
            now: format!("{:.1}", figures.calls),
            line: line(&calls),
            highest: format!("{:.1}", highest(&calls)),
            judgement: of_faults(figures.calls, faults),
        },
        Trend {
            name: "99 % of calls end within",
            now: seconds(figures.times.p99),
            line: line(&times),
            highest: seconds(Some(highest(&times))),
            judgement: of_time(figures.times.p99),
        },
    ]
}

fn of_faults(calls: f64, faults: f64) -> Judgement {
    match 100.0 * faults / calls {
        _ if calls <= 0.0 => Judgement::Idle,
        percent if percent <= FINE_PERCENT => Judgement::Fine,
        _ => Judgement::Bad,
    }
}

fn of_time(p99: Option<f64>) -> Judgement {
    match p99 {
        None => Judgement::Idle,
        Some(time) if time <= FINE_SECONDS => Judgement::Fine,
        Some(time) if time <= BAD_SECONDS => Judgement::Slow,
        Some(_) => Judgement::Bad,
    }
}

fn highest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// The path of a line from the oldest value to the latest.
fn line(values: &[f64]) -> String {
    let mut path = String::new();
    if values.len() < 2 {
        return path;
    }
    let top = highest(values).max(f64::MIN_POSITIVE);
    for (n, value) in values.iter().enumerate() {
        let x = WIDTH * n / (values.len() - 1);
        let y = HEIGHT - 2.0 - (HEIGHT - 4.0) * value / top;
        let _ = write!(path, "{}{x} {y:.0}", if n == 0 { "M" } else { "L" });
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judgements_follow_their_rules() {
        for (p99, judgement) in [
            (None, Judgement::Idle),
            (Some(0.1), Judgement::Fine),
            (Some(0.2), Judgement::Slow),
            (Some(1.5), Judgement::Bad),
        ] {
            assert_eq!(of_time(p99), judgement, "{p99:?}");
        }
        assert_eq!(of_faults(0.0, 0.0), Judgement::Idle);
        assert_eq!(of_faults(100.0, 1.0), Judgement::Fine);
        assert_eq!(of_faults(100.0, 2.0), Judgement::Bad);
    }

    #[test]
    fn a_line_goes_from_left_to_right_within_its_height() {
        assert_eq!(line(&[1.0]), "");
        assert_eq!(line(&[0.0, 2.0, 1.0]), "M0 34L120 2L240 18");
        assert_eq!(line(&[0.0, 0.0]), "M0 34L240 34");
        assert!(line(&[1.0; 60]).len() < 1_000);
    }
}
