//! The map file that a table needs, guessed from its columns and first rows.

use std::collections::{BTreeMap, VecDeque};

use polynym_identifier::{Dialling, Identifier, RawIdentifier, dialling, is_international};

use super::guess::{self, Guess};
use crate::columns::{Columns, REJECT_COLUMNS};
use crate::field::{Field, ValueType};
use crate::locale::{Locale, NEUTRAL};
use crate::map_file::{FieldColumns, Given, MapFile};
use crate::regions::region;
use crate::rows::Row;

const DISPLAY_NAME: &str = "display_name";
const PHONE: &str = "phone";
const REGION: &str = "region";

/// A proposed map file.
pub struct Proposal {
    pub file: MapFile,
    pub locale: Locale,
}

impl Proposal {
    /// Guesses what is not given, from the first rows.
    pub fn new(columns: &Columns, rows: &VecDeque<Row>, given: &Given) -> Self {
        let names = || columns.names().iter().map(String::as_str);
        let guessed = given.locale.or_else(|| guess::locale(names()));
        let locale = guessed.unwrap_or(NEUTRAL);
        let mut proposal = Self { file: MapFile::default(), locale };
        proposal.file.locale = guessed.map(|locale| locale.language.to_owned());
        let mut parts = Vec::new();
        for (n, name) in names().enumerate() {
            let is_reject = REJECT_COLUMNS.get(n) == Some(&name);
            if name.is_empty() || is_reject || columns.find(name).is_err() {
                continue;
            }
            let mut cells = cells(rows, n);
            cells.retain(|cell| !given.options.absent.has(cell));
            if !cells.is_empty() {
                proposal.column(n, name, &cells, &mut parts);
            }
        }
        if !parts.is_empty() && !proposal.file.map.contains_key(DISPLAY_NAME) {
            for part in parts {
                proposal.set(DISPLAY_NAME.to_owned(), part);
            }
        }
        proposal.file.region = match &*given.options.region {
            "" => proposal.region(columns, rows),
            given => Some(given.to_owned()),
        };
        proposal
    }

    /// Maps a column with these cells to its field. Parts of names are left to the caller.
    fn column<'n>(&mut self, n: usize, name: &'n str, cells: &[&str], parts: &mut Vec<&'n str>) {
        if let Some(field) = Field::named(name) {
            return self.set(field.name(), name);
        }
        match guess::by_name(name).map(|(guess, _)| guess).or_else(|| guess::by_cells(cells)) {
            Some(Guess::GivenName) => parts.insert(0, name),
            Some(Guess::FamilyName | Guess::FullName) => parts.push(name),
            Some(guess) => {
                let field = guess.field().map_or(String::new(), |field| field.name());
                self.set(field + &separator_of(cells), name);
            }
            None => {
                let value_type = guess::value_type(cells, &self.locale);
                let value_type = Some(value_type).filter(|known| *known != ValueType::String);
                let attribute = guess::attribute_name(name, n);
                self.set(Field::Attribute(attribute, value_type).name(), name);
            }
        }
    }

    /// The region of telephone numbers whose rows have none.
    fn region(&self, columns: &Columns, rows: &VecDeque<Row>) -> Option<String> {
        let has =
            |field: &str, name: &str| self.file.map.get(field).is_some_and(|own| own.has(name));
        let cells_of = |field: &str| -> Vec<&str> {
            let names = columns.names().iter().enumerate();
            let own = names.filter(|(_, name)| has(field, name));
            own.flat_map(|(n, _)| cells(rows, n)).collect()
        };
        let numbers = cells_of(PHONE);
        if numbers.is_empty() {
            return None;
        }
        let own = most_frequent(cells_of(REGION).into_iter().filter_map(region));
        own.map(str::to_owned).or_else(|| region_of(&numbers, self.locale.language))
    }

    /// Maps one more column to a field.
    fn set(&mut self, field: String, column: &str) {
        let column = column.to_owned();
        match self.file.map.remove(&field) {
            None => drop(self.file.map.insert(field, FieldColumns::One(column))),
            Some(FieldColumns::One(first)) => {
                self.file.map.insert(field, FieldColumns::Several(vec![first, column]));
            }
            Some(FieldColumns::Several(mut columns)) => {
                columns.push(column);
                self.file.map.insert(field, FieldColumns::Several(columns));
            }
        }
    }
}

/// The separator of several values in some cells, as `[;]`; empty if there are none.
fn separator_of(cells: &[&str]) -> String {
    let several = |sign: char| {
        let values = cells.iter().filter(|cell| cell.contains(sign));
        values.filter(|cell| cell.matches('@').count() != 1).count()
    };
    let found = [';', ',', '|', '/'].into_iter().max_by_key(|sign| several(*sign));
    let is_email = cells.iter().filter(|cell| cell.contains('@')).count() * 2 > cells.len();
    match found.filter(|sign| is_email && several(*sign) > 0) {
        Some(sign) => format!("[{sign}]"),
        None => String::new(),
    }
}

fn most_frequent<'c>(regions: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let mut counts = BTreeMap::new();
    for region in regions {
        *counts.entry(region).or_insert(0) += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(region, _)| region)
}

/// The regions whose telephone numbers people of a language have.
const REGIONS: [(&str, &[&str]); 8] = [
    ("de", &["DE", "AT", "CH"]),
    ("fr", &["FR", "BE", "CH", "LU"]),
    ("es", &["ES", "MX", "AR", "CO", "CL"]),
    ("it", &["IT", "CH"]),
    ("pt", &["BR", "PT"]),
    ("nl", &["NL", "BE"]),
    ("en", &["US", "GB", "AU", "IE", "IN"]),
    ("sv", &["SE", "FI"]),
];

/// The region of most telephone numbers in national form; none if there are none, or if fewer than
/// nine of ten are valid numbers of one region with its national prefix.
fn region_of(numbers: &[&str], language: &str) -> Option<String> {
    let national: Vec<_> = numbers.iter().filter(|number| !is_international(number)).collect();
    let regions = REGIONS.iter().find(|(known, _)| *known == language)?.1;
    let valid = |region: &str| {
        let is_valid = |number: &str| {
            dialling(number, region) == Some(Dialling::National)
                && Identifier::parse(RawIdentifier::Phone { number, region }).is_ok()
        };
        national.iter().filter(|number| is_valid(number)).count()
    };
    let best = regions.iter().rev().max_by_key(|region| valid(region))?;
    let is_clear = !national.is_empty() && valid(best) * 10 >= national.len() * 9;
    is_clear.then(|| (*best).to_owned())
}

/// The cells of a column that are not empty, without white space around them.
pub fn cells(rows: &VecDeque<Row>, column: usize) -> Vec<&str> {
    let whole = rows.iter().filter(|row| row.error.is_none());
    let cells = whole.filter_map(|row| row.cells.get(column)).map(str::trim);
    cells.filter(|cell| !cell.is_empty()).collect()
}
