//! What the values of a column mean that has one of few: countries, states, yes and no. People and
//! programs write them in ways that are not known, such as `D` for Germany; a mapping says which.

use std::collections::{BTreeMap, BTreeSet};

use csv::StringRecord;

use super::Mapping;
use crate::columns::Columns;
use crate::field::{Field, ValueType};
use crate::regions::region;
use crate::value::state;

/// The meanings of values: by the names of columns, then by the values.
pub type Meanings = BTreeMap<String, BTreeMap<String, String>>;

/// The kind of a column that has one of few values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FewValues {
    /// Countries.
    Country,
    /// States of users.
    State,
    /// Yes or no.
    YesOrNo,
}

/// The meanings by the positions of columns.
#[derive(Clone, Debug, Default)]
pub(super) struct MeaningsOf(BTreeMap<usize, BTreeMap<String, String>>);

impl MeaningsOf {
    /// The meanings for columns that are there.
    pub fn new(meanings: &Meanings, columns: &Columns) -> Self {
        let own = meanings.iter().filter_map(|(name, own)| Some((columns.find(name).ok()?, own)));
        Self(own.map(|(column, own)| (column, own.clone())).collect())
    }

    /// The meaning of a cell, without white space around it.
    pub fn of(&self, column: usize, cell: &str) -> Option<&str> {
        self.0.get(&column)?.get(cell).map(String::as_str)
    }
}

impl FewValues {
    /// What a person chose as the meaning, in the form in which it is kept; none if it has none.
    pub fn meaning(self, text: &str) -> Option<String> {
        let text = text.trim();
        let known = match self {
            Self::Country => region(text)?,
            Self::State => state(text).is_ok().then_some(text)?,
            Self::YesOrNo => ["yes", "no"].into_iter().find(|known| *known == text)?,
        };
        Some(known.to_owned())
    }
}

impl Mapping {
    /// The columns that have one of few values.
    pub fn few_values(&self) -> Vec<(usize, FewValues)> {
        let of_entries = self.entries.iter().filter_map(|entry| {
            let kind = match &entry.field {
                Field::State => FewValues::State,
                Field::Attribute(name, value_type) => {
                    let known =
                        value_type.or_else(|| self.options.definitions.types.get(name).copied());
                    known.filter(|known| *known == ValueType::Bool)?;
                    FewValues::YesOrNo
                }
                _ => return None,
            };
            Some((*entry.columns.first()?, kind))
        });
        let of_regions = self.region.map(|column| (column, FewValues::Country));
        of_entries.chain(of_regions).collect()
    }

    /// The values of a row that are not understood, or have a meaning of their own.
    pub fn special_values<'r>(
        &self,
        row: &'r StringRecord,
        columns: &[(usize, FewValues)],
    ) -> BTreeSet<(usize, &'r str)> {
        let special = columns.iter().filter_map(|(column, kind)| {
            let cell = row.get(*column).unwrap_or_default().trim();
            let is_absent = cell.is_empty() || self.options.absent.has(cell);
            let is_known = || match kind {
                FewValues::Country => region(cell).is_some(),
                FewValues::State => state(cell).is_ok(),
                FewValues::YesOrNo => self.options.locale.yes_or_no(cell).is_some(),
            };
            let is_special = self.meanings.of(*column, cell).is_some() || !is_absent && !is_known();
            is_special.then_some((*column, cell))
        });
        special.collect()
    }
}
