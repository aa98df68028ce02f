//! A plot of counters as SVG. Its colours are classes, which the style sheet sets for each theme.

use plotters::prelude::*;
use polynym_presentation::time::minute;

use super::counts::Counts;

const SIZE: (u32, u32) = (960, 320);
/// Colours that stand for classes.
const TEXT: RGBColor = RGBColor(1, 0, 0);
const AXIS: RGBColor = RGBColor(2, 0, 0);
const GRID: RGBColor = RGBColor(3, 0, 0);
const SERIES: u8 = 7;

/// The colour that stands for the class of a series.
const fn series_color(number: u8) -> RGBColor {
    RGBColor(0, 0, number)
}

/// The plot; empty without counts.
///
/// # Errors
/// The plot cannot be drawn.
pub fn svg(counts: &Counts) -> Result<String, String> {
    if counts.total == 0 || counts.times.is_empty() {
        return Ok(String::new());
    }
    let mut drawing = String::new();
    draw(&mut drawing, counts).map_err(|error| format!("The plot cannot be drawn: {error}."))?;
    let (_, shapes) = drawing.split_once('>').unwrap_or_default();
    let shapes = shapes.trim_end().trim_end_matches("</svg>");
    let (width, height) = SIZE;
    Ok(format!(
        "<svg class=\"plot\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-labelledby=\"plot-title\">{}</svg>",
        with_classes(shapes)
    ))
}

fn draw(drawing: &mut String, counts: &Counts) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(drawing, SIZE).into_drawing_area();
    let last = counts.times.len().saturating_sub(1).max(1) as f64;
    let peak = counts.peak().max(1) as f64;
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .margin_right(40)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..last, 0.0..peak * 1.05)?;
    let font = ("sans-serif", 15).into_font().color(&TEXT);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(AXIS)
        .label_style(font)
        .x_labels(7)
        .y_labels(5)
        .x_label_formatter(&|at| label(counts, *at))
        .y_label_formatter(&|count| count_label(*count))
        .draw()?;
    for (number, series) in (1..=SERIES).zip(&counts.series) {
        let points = series.counts.iter().enumerate().map(|(n, count)| (n as f64, *count as f64));
        chart.draw_series(LineSeries::new(points, series_color(number).stroke_width(2)))?;
    }
    root.present()?;
    Ok(())
}

/// The time of a place on the axis: the hour, or for days the date.
fn label(counts: &Counts, at: f64) -> String {
    let Some(time) = counts.times.get(at.round() as usize) else { return String::new() };
    let text = minute(*time);
    let is_short = counts
        .times
        .last()
        .zip(counts.times.first())
        .is_some_and(|(last, first)| last - first <= 86_400 && counts.interval != "day");
    let part = if is_short { text.get(11..) } else { text.get(..10) };
    part.unwrap_or(&text).to_owned()
}

/// A count; empty between whole numbers.
fn count_label(count: f64) -> String {
    if count.fract() == 0.0 { format!("{count:.0}") } else { String::new() }
}

/// Replaces colours by classes.
fn with_classes(shapes: &str) -> String {
    let name = |color: RGBColor| format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2);
    let mut text = shapes.to_owned();
    for (color, class) in [(TEXT, "label"), (AXIS, "axis"), (GRID, "grid")] {
        for attribute in ["stroke", "fill"] {
            let from = format!("{attribute}=\"{}\"", name(color));
            text = text.replace(&from, &format!("class=\"{class}\""));
        }
    }
    for number in 1..=SERIES {
        let from = format!("stroke=\"{}\"", name(series_color(number)));
        text = text.replace(&from, &format!("class=\"series-{number}\""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::counts::Series;
    use super::*;

    #[test]
    fn a_plot_has_classes_and_no_colours_or_styles() {
        let series = |name: &str| Series {
            name: name.to_owned(),
            total: 12,
            failed: 0,
            counts: vec![0, 3, 9],
        };
        let counts = Counts {
            series: vec![series("a"), series("b")],
            times: vec![0, 60, 120],
            interval: "minute",
            total: 24,
        };
        let plot = svg(&counts).unwrap();
        for part in ["series-1", "series-2", "class=\"axis\"", "class=\"label\"", "00:01"] {
            assert!(plot.contains(part), "{part}: {plot}");
        }
        for part in ["style", "#0", "<script"] {
            assert!(!plot.contains(part), "{part}: {plot}");
        }
        assert_eq!(plot.matches("<svg").count(), 1);
        assert!(svg(&Counts::default()).unwrap().is_empty());
    }
}
