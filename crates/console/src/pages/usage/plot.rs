//! Counters as bars, in SVG: the counts of an interval stand on each other. Colours are classes,
//! which the style sheet sets for each theme. The page has the same figures in tables.

use std::fmt::Write;

use polynym_presentation::time::minute;

use super::counts::Counts;

/// The size of the drawing, in its own units. All numbers in it are whole, which keeps it small.
const WIDTH: i64 = 960;
const HEIGHT: i64 = 320;
/// The sides of the bars: those of the labels, and the others.
const LEFT: i64 = 64;
const RIGHT: i64 = 952;
const TOP: i64 = 12;
const BOTTOM: i64 = 284;
/// The widest bar.
const MAX_BAR: i64 = 48;
/// The labels of the times, and the lines of counts.
const TIMES: usize = 7;
const LINES: i64 = 4;

/// The plot; empty without counts.
pub fn svg(counts: &Counts) -> String {
    if counts.total == 0 || counts.times.is_empty() {
        return String::new();
    }
    let top = round_up(highest(counts));
    let mut svg = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-labelledby=\"plot-title\">"
    );
    lines(&mut svg, top);
    times(&mut svg, counts);
    bars(&mut svg, counts, top);
    let _ = write!(svg, "<path class=\"axis\" d=\"M{LEFT} {BOTTOM}H{RIGHT}\"/></svg>");
    svg
}

/// The highest sum of an interval.
fn highest(counts: &Counts) -> i64 {
    let sum = |n| counts.series.iter().map(|series| series.counts[n]).sum();
    (0..counts.times.len()).map(sum).max().unwrap_or_default()
}

/// The next number that four lines divide well: 4, 8, 20, 40, 80, 200 and so on.
fn round_up(highest: i64) -> i64 {
    let mut step = 1_i64;
    loop {
        for factor in [1, 2, 5] {
            let top = LINES.saturating_mul(step).saturating_mul(factor);
            if top >= highest {
                return top;
            }
        }
        step = step.saturating_mul(10);
    }
}

/// The height of a count.
fn height(count: i64, top: i64) -> i64 {
    let height = i128::from(count) * i128::from(BOTTOM - TOP) / i128::from(top);
    i64::try_from(height).unwrap_or(BOTTOM - TOP)
}

fn lines(svg: &mut String, top: i64) {
    for line in 0..=LINES {
        let count = top / LINES * line;
        let y = BOTTOM - height(count, top);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{LEFT} {y}H{RIGHT}\"/>\
             <text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{count}</text>",
            LEFT - 8,
            y + 5
        );
    }
}

/// The left end of an interval.
fn left(counts: &Counts, n: usize) -> i64 {
    LEFT + (RIGHT - LEFT) * n as i64 / counts.times.len() as i64
}

fn times(svg: &mut String, counts: &Counts) {
    let step = counts.times.len().div_ceil(TIMES);
    for n in (0..counts.times.len()).step_by(step) {
        let (x, y) = (left(counts, n), BOTTOM + 22);
        let text = label(counts, n);
        let _ = write!(svg, "<text class=\"label\" x=\"{x}\" y=\"{y}\">{text}</text>");
    }
}

/// The time of an interval: the hour, or for days the date.
fn label(counts: &Counts, n: usize) -> String {
    let text = minute(counts.times[n]);
    let ends = counts.times.last().zip(counts.times.first());
    let is_short = ends.is_some_and(|(last, first)| last - first <= 86_400);
    let is_clock = is_short && counts.interval != "day";
    let part = if is_clock { text.get(11..) } else { text.get(..10) };
    part.unwrap_or(&text).to_owned()
}

/// A path for each series. A bar with a count is seen, however low it is.
fn bars(svg: &mut String, counts: &Counts, top: i64) {
    let mut sums = vec![0; counts.times.len()];
    for (number, series) in counts.series.iter().enumerate() {
        let mut path = String::new();
        for (n, count) in series.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let from = BOTTOM - height(sums[n], top);
            sums[n] += count;
            let to = (BOTTOM - height(sums[n], top)).min(from - 1);
            let (x, next) = (left(counts, n), left(counts, n + 1));
            let width = (next - x - i64::from(next - x > 2)).clamp(1, MAX_BAR);
            let _ = write!(path, "M{x} {from}V{to}h{width}V{from}z");
        }
        let _ = write!(svg, "<path class=\"bar-{}\" d=\"{path}\"/>", number + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::counts::Series;
    use super::*;

    fn series(name: &str, counts: Vec<i64>) -> Series {
        Series { name: name.to_owned(), total: counts.iter().sum(), failed: 0, counts }
    }

    #[test]
    fn bars_stand_on_each_other_and_have_no_colours_or_styles() {
        let counts = Counts {
            series: vec![series("a", vec![0, 30, 40]), series("b", vec![0, 50, 0])],
            times: vec![0, 60, 120],
            interval: "minute",
            total: 120,
        };
        let plot = svg(&counts);
        // 80 is the top: 30 of it have the lower part, and 50 the rest.
        for part in ["bar-1", "bar-2", "class=\"axis\"", ">80<", "00:01", "M360 284V182", "182V12"]
        {
            assert!(plot.contains(part), "{part}: {plot}");
        }
        for part in ["style", "#0", "<script"] {
            assert!(!plot.contains(part), "{part}: {plot}");
        }
        assert_eq!(plot.matches("<svg").count(), 1);
        assert!(svg(&Counts::default()).is_empty());
    }

    #[test]
    fn the_largest_plot_is_small() {
        let many = |n: i64| series("a", vec![i64::MAX / 4_000 / (n + 1); 402]);
        let counts = Counts {
            series: (0..7).map(many).collect(),
            times: (0..402).map(|n| n * 60).collect(),
            interval: "minute",
            total: 1,
        };
        let plot = svg(&counts);
        assert!(plot.len() < 70_000, "{}", plot.len());
    }

    #[test]
    fn the_top_is_a_round_number() {
        for (highest, top) in [(0, 4), (4, 4), (5, 8), (9, 20), (81, 200), (1_000, 2_000)] {
            assert_eq!(round_up(highest), top);
        }
        assert_eq!(round_up(i64::MAX), i64::MAX);
    }
}
