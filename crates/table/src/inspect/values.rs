//! The values of a file that are not understood, with their numbers.

use std::collections::BTreeMap;

use csv::StringRecord;

use crate::columns::Columns;
use crate::mapping::{FewValues, Mapping};

/// The columns whose values are counted, and the values of a column.
const MAX_COLUMNS: usize = 20;
const MAX_VALUES: usize = 50;
/// The bytes of a value that is told apart: longer ones are no codes or words.
const MAX_VALUE_BYTES: usize = 60;

/// The values of a column that are not understood, or were given a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialValues {
    /// The name of the column.
    pub column: String,
    /// What it has.
    pub kind: FewValues,
    /// The rows of each value.
    pub rows: BTreeMap<String, u64>,
    /// The rows of values beyond the bound.
    pub other_rows: u64,
}

/// The columns that have one of few values.
pub(super) struct SpecialColumns {
    columns: Vec<(usize, FewValues)>,
    found: BTreeMap<usize, SpecialValues>,
}

impl SpecialColumns {
    pub fn new(mapping: &Mapping) -> Self {
        let columns = mapping.few_values().into_iter().take(MAX_COLUMNS).collect();
        Self { columns, found: BTreeMap::new() }
    }

    /// Counts the values of a row.
    pub fn add(&mut self, row: &StringRecord, mapping: &Mapping, columns: &Columns) {
        for (column, value) in mapping.special_values(row, &self.columns) {
            let Some((_, kind)) = self.columns.iter().find(|(own, _)| *own == column) else {
                continue;
            };
            let found = self.found.entry(column).or_insert_with(|| SpecialValues {
                column: columns.name(column).to_owned(),
                kind: *kind,
                rows: BTreeMap::new(),
                other_rows: 0,
            });
            let fits = value.len() <= MAX_VALUE_BYTES && found.rows.len() < MAX_VALUES;
            match found.rows.get_mut(value) {
                Some(rows) => *rows += 1,
                None if fits => drop(found.rows.insert(value.to_owned(), 1)),
                None => found.other_rows += 1,
            }
        }
    }

    /// What was found.
    pub fn into_found(self) -> Vec<SpecialValues> {
        self.found.into_values().collect()
    }
}
