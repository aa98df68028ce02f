//! The columns of a table: the names in its first row.

use std::fmt;

use csv::StringRecord;
use unicode_normalization::UnicodeNormalization;

use crate::formula::without_marks;

/// The columns of a table of rejects, before those of the rejected rows.
pub const REJECT_COLUMNS: [&str; 6] = [
    "reject_line",
    "reject_state",
    "reject_reason",
    "reject_column",
    "reject_owner",
    "reject_advice",
];
/// The names of columns in a message.
const SHOWN: usize = 40;

/// The columns of a table. Names are compared without white space around them and apostrophes
/// before formulas, in Unicode's normalization form C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns(Vec<String>);

impl Columns {
    /// The columns with the names in a row.
    pub fn new(header: &StringRecord) -> Self {
        Self(header.iter().map(normal).collect())
    }

    /// The names.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The name of a column; empty if there is none.
    pub fn name(&self, column: usize) -> &str {
        self.0.get(column).map_or("", String::as_str)
    }

    /// Whether there is a column with this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(&normal(name))
    }

    /// The column with this name.
    ///
    /// # Errors
    /// There is none, or more than one: in words.
    pub fn find(&self, name: &str) -> Result<usize, String> {
        let wanted = normal(name);
        let mut found = (0..self.0.len()).filter(|column| self.0[*column] == wanted);
        match (found.next(), found.next()) {
            (Some(column), None) => Ok(column),
            (Some(one), Some(other)) => Err(format!(
                "{wanted}: columns {} and {} have this name: rename one of them",
                one + 1,
                other + 1
            )),
            _ => Err(format!("{wanted}: no such column; the file has {self}")),
        }
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<_> = self.0.iter().take(SHOWN).map(String::as_str).collect();
        let rest = self.0.len() - shown.len();
        f.write_str(&shown.join(", "))?;
        if rest > 0 { write!(f, " and {rest} more") } else { Ok(()) }
    }
}

fn normal(name: &str) -> String {
    without_marks(name.trim()).nfc().collect()
}

/// The parts `FIELD=COLUMNS` of a mapping.
pub fn pairs(map: &str, columns: &Columns) -> Vec<String> {
    if map.split_once('=').is_some_and(|(_, column)| columns.has(column)) {
        return vec![map.to_owned()];
    }
    let mut pairs: Vec<String> = Vec::new();
    let mut depth = 0_i32;
    let parts = map.split(|c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth <= 0
    });
    for part in parts {
        match pairs.last_mut() {
            Some(last) if !part.contains('=') => {
                last.push(',');
                last.push_str(part);
            }
            _ => pairs.push(part.to_owned()),
        }
    }
    pairs
}

/// A field and the separator of its values: `email[;]`.
///
/// # Errors
/// The separator is no single sign: in words.
pub fn listed(text: &str) -> Result<(&str, Option<char>), String> {
    let Some((field, rest)) = text.split_once('[') else { return Ok((text, None)) };
    let mut signs = rest.chars();
    match (signs.next(), signs.as_str()) {
        (Some(separator), "]") if !separator.is_alphanumeric() => Ok((field, Some(separator))),
        _ => Err("a separator is one sign, as in email[;]".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_in_their_composed_form() {
        let columns =
            Columns::new(&StringRecord::from(vec!["Stra\u{df}e", " u\u{308}ber", "a", "a"]));
        assert_eq!(columns.find("\u{fc}ber"), Ok(1));
        assert!(columns.find("a").unwrap_err().contains("columns 3 and 4"));
        assert!(columns.find("b").unwrap_err().contains("the file has Straße, über, a, a"));
    }
}
