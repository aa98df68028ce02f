//! Plots in SVG: lines against concurrency, on a logarithmic scale. The colours show on light and
//! on dark pages.

use crate::Fallible;
use crate::results::Results;
use crate::run::CONCURRENCIES;
use crate::tables::number;

pub const WIDTH: f64 = 720.0;
pub const HEIGHT: f64 = 400.0;
pub const LEFT: f64 = 100.0;
pub const RIGHT: f64 = 24.0;
const TOP: f64 = 56.0;
pub const BOTTOM: f64 = 56.0;
const COLOURS: [&str; 3] = ["#8a8f98", "#2f81f7", "#d9822b"];
const DASHES: [&str; 3] = ["6 4", "none", "2 3"];
const STYLE: &str = "
text { font-family: sans-serif; font-size: 14px; fill: #6e7781; }
.grid { stroke: #8a8f98; stroke-opacity: 0.35; }
@media (prefers-color-scheme: light) { text { fill: #3d444d; } }
@media (prefers-color-scheme: dark) { text { fill: #d1d7e0; } }
";

/// The plots of the documents.
pub const PLOTS: [Plot; 4] = [
    Plot { file: "benchmarks-throughput.svg", results: "embedded.json", ..THROUGHPUT },
    Plot { file: "benchmarks-p99.svg", results: "embedded.json", ..P99 },
    Plot { file: "benchmarks-mongodb-throughput.svg", results: "mongodb.json", ..THROUGHPUT },
    Plot { file: "benchmarks-mongodb-p99.svg", results: "mongodb.json", ..P99 },
];
const THROUGHPUT: Plot = Plot {
    file: "",
    results: "",
    unit: "per second",
    lines: [
        ("no-op calls", "health", "calls"),
        ("resolves", "resolve", "calls"),
        ("identifiers in batches", "batch", "identifiers"),
    ],
};
const P99: Plot = Plot {
    file: "",
    results: "",
    unit: "99th percentile, microseconds",
    lines: [
        ("no-op call", "health", "p99"),
        ("resolve", "resolve", "p99"),
        ("batch of 100", "batch", "p99"),
    ],
};

/// A plot of three figures against concurrency.
pub struct Plot {
    pub file: &'static str,
    pub results: &'static str,
    unit: &'static str,
    /// The title, subject and metric of each line.
    lines: [(&'static str, &'static str, &'static str); 3],
}

impl Plot {
    /// Returns the plot as SVG.
    pub fn draw(&self, results: &Results) -> Fallible<String> {
        let mut lines = Vec::new();
        for (title, subject, metric) in self.lines {
            let figures: Fallible<Vec<_>> =
                CONCURRENCIES.iter().map(|n| results.median(subject, metric, *n)).collect();
            lines.push((title, figures?));
        }
        let bounds = ticks(lines.iter().flat_map(|(_, figures)| figures.iter().copied()));

        let mut parts = grid(&bounds, self.unit);
        parts.extend(CONCURRENCIES.iter().enumerate().map(|(index, concurrency)| {
            text(x_of(index), HEIGHT - BOTTOM + 22.0, &concurrency.to_string(), "middle")
        }));
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        parts.push(text(middle, HEIGHT - 10.0, "calls in flight", "middle"));
        for (number, (title, figures)) in lines.iter().enumerate() {
            parts.extend(line(number, figures, &bounds));
            parts.extend(legend(number, title));
        }
        Ok(svg(&parts))
    }
}

/// Returns the file of a plot.
pub fn svg(parts: &[String]) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\">\n<style>{STYLE}</style>\n{}\n\
         </svg>\n",
        parts.join("\n")
    )
}

/// Returns 1, 2 and 5 times powers of ten that enclose the figures.
pub fn ticks(figures: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let lowest = figures.clone().fold(f64::INFINITY, f64::min);
    let highest = figures.fold(0.0, f64::max);
    let steps: Vec<f64> =
        (-1..9).flat_map(|power| [1.0, 2.0, 5.0].map(|m| m * 10_f64.powi(power))).collect();
    let first = steps.iter().rposition(|step| *step <= lowest).unwrap_or(0);
    let last = steps.iter().position(|step| *step >= highest).unwrap_or(steps.len() - 1);
    steps.get(first..=last).unwrap_or_default().to_vec()
}

fn x_of(index: usize) -> f64 {
    LEFT + (WIDTH - LEFT - RIGHT) * (index as f64 + 0.5) / CONCURRENCIES.len() as f64
}

pub fn y_of(figure: f64, bounds: &[f64]) -> f64 {
    let low = bounds.first().map_or(0.0, |bound| bound.ln());
    let high = bounds.last().map_or(1.0, |bound| bound.ln());
    let share = (figure.ln() - low) / (high - low).max(f64::EPSILON);
    HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
}

pub fn text(x: f64, y: f64, words: &str, anchor: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>")
}

pub fn grid(bounds: &[f64], unit: &str) -> Vec<String> {
    let middle = f64::midpoint(TOP, HEIGHT - BOTTOM);
    let rotated = format!("<g transform=\"rotate(-90 16 {middle:.1})\">");
    let mut parts = vec![format!("{rotated}{}</g>", text(16.0, middle, unit, "middle"))];
    for bound in bounds {
        let y = y_of(*bound, bounds);
        let right = WIDTH - RIGHT;
        parts.push(format!(
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>"
        ));
        parts.push(text(LEFT - 8.0, y + 5.0, &number(*bound), "end"));
    }
    parts
}

fn line(number: usize, figures: &[f64], bounds: &[f64]) -> Vec<String> {
    let points: Vec<_> =
        figures.iter().enumerate().map(|(n, figure)| (x_of(n), y_of(*figure, bounds))).collect();
    let colour = COLOURS[number];
    let mut parts = vec![polyline(number, &points)];
    let dot = |(x, y)| format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>");
    parts.extend(points.into_iter().map(dot));
    parts
}

/// Returns a line in the colour and the dashes of its number.
pub fn polyline(number: usize, points: &[(f64, f64)]) -> String {
    let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let (colour, dashes) = (COLOURS[number], DASHES[number]);
    format!(
        "<polyline points=\"{}\" fill=\"none\" stroke-width=\"2.5\" stroke=\"{colour}\" \
         stroke-dasharray=\"{dashes}\"/>",
        path.join(" ")
    )
}

pub fn legend(number: usize, title: &str) -> [String; 2] {
    let x = LEFT + number as f64 * (WIDTH - LEFT - RIGHT) / COLOURS.len() as f64;
    let (colour, dashes, end) = (COLOURS[number], DASHES[number], x + 28.0);
    let sample = format!(
        "<line x1=\"{x:.1}\" y1=\"24\" x2=\"{end:.1}\" y2=\"24\" stroke=\"{colour}\" \
         stroke-dasharray=\"{dashes}\" stroke-width=\"2.5\"/>"
    );
    [sample, text(x + 34.0, 29.0, title, "start")]
}
