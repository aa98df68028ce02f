//! The text format of Prometheus, as far as a server's metrics use it.

use std::collections::BTreeMap;

/// The values of one scrape, by the name and the labels of each.
#[derive(Clone, Debug, Default)]
pub struct Scrape(BTreeMap<Series, f64>);

/// A name with labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    name: String,
    labels: Vec<(String, String)>,
}

impl Series {
    /// Whether the value only rises.
    fn is_counter(&self) -> bool {
        ["_total", "_bucket", "_count"].iter().any(|end| self.name.ends_with(end))
    }

    /// The value of a label; empty where there is none.
    pub fn label(&self, name: &str) -> &str {
        let found = self.labels.iter().find(|(label, _)| label == name);
        found.map_or("", |(_, value)| value)
    }
}

impl Scrape {
    /// Reads the lines that can be read.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(line).collect())
    }

    /// The values of a metric.
    pub fn of(&self, name: &str) -> impl Iterator<Item = (&Series, f64)> {
        self.0.iter().filter(move |(series, _)| series.name == name).map(|(s, v)| (s, *v))
    }

    /// The sum of a metric's values; none where there is none.
    pub fn sum(&self, name: &str) -> Option<f64> {
        self.of(name).map(|(_, value)| value).reduce(|all, one| all + one)
    }

    /// What was counted since an earlier scrape. Where a counter is lower than before, the server
    /// began anew, and nothing is known of the time between.
    pub fn since(&self, before: &Self) -> Self {
        let fell = |(series, now): (&Series, &f64)| {
            series.is_counter() && before.0.get(series).is_some_and(|before| now < before)
        };
        if self.0.iter().any(fell) {
            return Self::default();
        }
        let step = |(series, now): (&Series, &f64)| {
            let before = before.0.get(series).copied().unwrap_or_default();
            (series.clone(), now - before)
        };
        Self(self.0.iter().map(step).collect())
    }
}

fn line(text: &str) -> Option<(Series, f64)> {
    let (series, value) = text.trim_end().rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let Some((name, labels)) = series.split_once('{') else {
        return Some((Series { name: series.to_owned(), labels: Vec::new() }, value));
    };
    let labels = labels.strip_suffix('}')?;
    Some((Series { name: name.to_owned(), labels: labels_of(labels)? }, value))
}

/// `a="x",b="y"`, where values have escapes.
fn labels_of(mut text: &str) -> Option<Vec<(String, String)>> {
    let mut labels = Vec::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"")?;
        let (mut value, mut end, mut escaped) = (String::new(), None, false);
        for (n, c) in rest.char_indices() {
            match c {
                'n' if escaped => value.push('\n'),
                _ if escaped => value.push(c),
                '\\' => {}
                '"' => {
                    end = Some(n + 1);
                    break;
                }
                _ => value.push(c),
            }
            escaped = c == '\\' && !escaped;
        }
        labels.push((name.to_owned(), value));
        text = &rest[end?..];
        text = text.strip_prefix(',').unwrap_or(text);
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_names_labels_and_values() {
        let text =
            "# TYPE a counter\na 1\na{x=\"1\",y=\"b \\\"c\\\" \\\\\"} 2.5\nb{x= 3\nc{} nonsense\n";
        let scrape = Scrape::parse(text);
        assert_eq!(scrape.sum("a"), Some(3.5));
        let labels: Vec<_> = scrape.of("a").map(|(series, _)| series.label("y")).collect();
        assert_eq!(labels, ["", "b \"c\" \\"]);
        assert_eq!(scrape.sum("b"), None);
    }

    #[test]
    fn a_server_that_starts_anew_is_no_leap() {
        let before = Scrape::parse("a_total 100\nb_total 5\ngauge 9");
        let step = Scrape::parse("a_total 103\nb_total 5\nc_total 1\ngauge 2").since(&before);
        assert_eq!((step.sum("a_total"), step.sum("c_total")), (Some(3.0), Some(1.0)));
        let step = Scrape::parse("a_total 3\nb_total 7").since(&before);
        assert_eq!(step.sum("b_total"), None);
    }
}
