//! Words that programs write into cells without a value.

/// The words for which a cell counts as empty, as pandas, R, Excel, SQL and JSON write them. `Null`
/// is a surname.
const WORDS: [&str; 18] = [
    "NULL", "null", "(null)", "<null>", "\\N", "NaN", "nan", "N/A", "n/a", "#N/A", "#NV", "<NA>",
    "#REF!", "#VALUE!", "#WERT!", "#NAME?", "#DIV/0!", "None",
];

/// The words for which a cell counts as empty.
#[derive(Clone, Debug)]
pub struct Absent(Vec<String>);

impl Default for Absent {
    fn default() -> Self {
        Self(WORDS.map(str::to_owned).into())
    }
}

impl Absent {
    /// These words alone, separated by commas; none if `text` is empty.
    pub fn parse(text: &str) -> Self {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        Self(words.map(str::to_owned).collect())
    }

    /// Whether this is one of the usual words.
    pub fn is_usual(text: &str) -> bool {
        WORDS.contains(&text)
    }

    /// Whether a cell, without white space around it, has such a word.
    pub fn has(&self, cell: &str) -> bool {
        self.0.iter().any(|word| word == cell)
    }
}
