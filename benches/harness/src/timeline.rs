//! Plots of the soaks: lines against time.

use std::path::Path;

use crate::Fallible;
use crate::plot::{
    BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, grid, legend, polyline, svg, text, ticks, y_of,
};
use crate::results::Results;

const EMBEDDED: &str = "soak-embedded.json";
const MONGODB: &str = "soak-mongodb.json";
/// The numbers on the axis of time.
const MARKS: usize = 4;

/// The plots of the documents.
pub const TIMELINES: [Timeline; 3] = [
    Timeline { file: "soak-memory.svg", unit: "resident memory, MiB", lines: of_servers("memory") },
    Timeline {
        file: "soak-descriptors.svg",
        unit: "open descriptors",
        lines: of_servers("descriptors"),
    },
    Timeline {
        file: "soak-latency.svg",
        unit: "time of look-ups, microseconds",
        lines: [
            ("embedded, p99", EMBEDDED, "look-up", "p99"),
            ("MongoDB, p50", MONGODB, "look-up", "p50"),
            ("MongoDB, p99", MONGODB, "look-up", "p99"),
        ],
    },
];

/// A plot of three figures against time.
pub struct Timeline {
    pub file: &'static str,
    unit: &'static str,
    lines: [Line; 3],
}

/// The title, file, subject and metric of a line.
type Line = (&'static str, &'static str, &'static str, &'static str);

/// The lines of a figure of each server.
const fn of_servers(metric: &'static str) -> [Line; 3] {
    [
        ("embedded", EMBEDDED, "server 1", metric),
        ("MongoDB, server 1", MONGODB, "server 1", metric),
        ("MongoDB, server 2", MONGODB, "server 2", metric),
    ]
}

impl Timeline {
    /// Returns the plot as SVG.
    pub fn draw(&self, root: &Path) -> Fallible<String> {
        let (mut lines, mut longest) = (Vec::new(), 0.0_f64);
        for (title, file, subject, metric) in self.lines {
            let results = Results::load(root, file)?;
            let times = results.rounds("sample", "time", 0)?;
            longest = times.iter().copied().fold(longest, f64::max);
            let figures = results.rounds(subject, metric, 0)?.iter().copied();
            let points: Vec<_> = times.iter().copied().zip(figures).collect();
            lines.push((title, points));
        }
        let figures = lines.iter().flat_map(|(_, points)| points.iter().map(|point| point.1));
        let bounds = ticks(figures.filter(|figure| *figure > 0.0));

        let x_of = |seconds: f64| LEFT + (WIDTH - LEFT - RIGHT) * seconds / longest;
        let mut parts = grid(&bounds, self.unit);
        parts.extend((0..=MARKS).map(|mark| {
            let seconds = longest * mark as f64 / MARKS as f64;
            text(x_of(seconds), HEIGHT - BOTTOM + 22.0, &format!("{seconds:.0}"), "middle")
        }));
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        parts.push(text(middle, HEIGHT - 10.0, "seconds", "middle"));
        for (number, (title, points)) in lines.iter().enumerate() {
            // A server that is down has no figure.
            for part in points.split(|(_, figure)| *figure <= 0.0).filter(|part| part.len() > 1) {
                let place =
                    |(seconds, figure): &(f64, f64)| (x_of(*seconds), y_of(*figure, &bounds));
                parts.push(polyline(number, &part.iter().map(place).collect::<Vec<_>>()));
            }
            parts.extend(legend(number, title));
        }
        Ok(svg(&parts))
    }
}
