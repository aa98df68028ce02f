//! The part of the Prometheus text format that a server's metrics use.

use std::collections::BTreeMap;

/// The values of one scrape, by name and labels.
#[derive(Clone, Debug, Default)]
pub struct Scrape(BTreeMap<Series, f64>);

/// A name with labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    name: String,
    labels: Vec<(String, String)>,
}

impl Series {
    /// Whether the value only increases.
    fn is_counter(&self) -> bool {
        ["_total", "_bucket", "_count"].iter().any(|end| self.name.ends_with(end))
    }

    /// The value of a label; empty if there is none.
    pub fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(label, _)| label == name).map_or("", |(_, value)| value)
    }
}

impl Scrape {
    /// Parses the valid lines, and ignores others.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(line).collect())
    }

    /// The values of a metric.
    pub fn of(&self, name: &str) -> impl Iterator<Item = (&Series, f64)> {
        self.0.iter().filter(move |(series, _)| series.name == name).map(|(s, v)| (s, *v))
    }

    /// The sum of a metric's values; none if it has no values.
    pub fn sum(&self, name: &str) -> Option<f64> {
        self.of(name).map(|(_, value)| value).reduce(|all, one| all + one)
    }

    /// The increase since an earlier scrape. Empty if a counter has decreased, which means that the
    /// server restarted.
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
    let (series, number) = text.trim_end().rsplit_once(' ')?;
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, parse_labels(labels.strip_suffix('}')?)?),
        None => (series, Vec::new()),
    };
    Some((Series { name: name.to_owned(), labels }, number.parse().ok()?))
}

/// Parses `a="x",b="y"`, with escapes in values.
fn parse_labels(mut text: &str) -> Option<Vec<(String, String)>> {
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
    fn a_restart_of_the_server_is_no_increase() {
        let before = Scrape::parse("a_total 100\nb_total 5\ngauge 9");
        let step = Scrape::parse("a_total 103\nb_total 5\nc_total 1\ngauge 2").since(&before);
        assert_eq!((step.sum("a_total"), step.sum("c_total")), (Some(3.0), Some(1.0)));
        let step = Scrape::parse("a_total 3\nb_total 7").since(&before);
        assert_eq!(step.sum("b_total"), None);
    }
}
