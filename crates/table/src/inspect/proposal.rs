//! The map file that a table needs, guessed from its columns and first rows.

use std::collections::{BTreeMap, VecDeque};

use polynym_identifier::{Dialling, Identifier, RawIdentifier, dialling, is_international};

use super::guess::{self, Guess, Traits};
use super::headers::{attribute_name, by_name, is_dialled};
use super::states;
use crate::columns::{Columns, REJECT_COLUMNS};
use crate::field::{Field, ValueType};
use crate::locale::{Locale, NEUTRAL};
use crate::map_file::{FieldColumns, Given, MapFile};
use crate::regions::region;
use crate::rows::Row;

const DISPLAY_NAME: &str = "display_name";
const PHONE: &str = "phone";
const REGION: &str = "region";
const STATE: &str = "state";
/// The languages whose people write the family's name first.
const FAMILY_FIRST: [&str; 4] = ["hu", "ja", "ko", "zh"];

/// A proposed map file.
pub struct Proposal {
    pub file: MapFile,
    pub locale: Locale,
    /// What the columns say as far as it is known.
    pub traits: ColumnTraits,
}

/// The columns that have parts of names.
type Parts<'n> = Vec<(Guess, &'n str)>;

/// What all cells of each column say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnTraits(Vec<Traits>);

impl ColumnTraits {
    /// Adds a row.
    pub fn add(&mut self, row: &Row, locale: &Locale) {
        if row.error.is_some() {
            return;
        }
        self.0.resize(self.0.len().max(row.cells.len()), Traits::default());
        for (traits, cell) in self.0.iter_mut().zip(&row.cells) {
            traits.add(cell.trim(), locale);
        }
    }

    /// What the cells of a column say.
    pub fn of(&self, column: usize) -> Traits {
        self.0.get(column).copied().unwrap_or_default()
    }
}

impl Proposal {
    /// Guesses what is not given, from the first rows and what is known of the others.
    pub fn new(
        columns: &Columns,
        rows: &VecDeque<Row>,
        known: &ColumnTraits,
        given: &Given,
    ) -> Self {
        let names = || columns.names().iter().map(String::as_str);
        let guessed = given.locale.or_else(|| guess::locale(names()));
        let locale = guessed.unwrap_or(NEUTRAL);
        let mut traits = known.clone();
        rows.iter().for_each(|row| traits.add(row, &locale));
        let mut proposal = Self { file: MapFile::default(), locale, traits };
        proposal.file.locale = guessed.map(|locale| locale.language.to_owned());
        let mut parts = Parts::new();
        for (n, name) in names().enumerate() {
            let is_reject = REJECT_COLUMNS.get(n) == Some(&name);
            if name.is_empty() || is_reject || columns.find(name).is_err() {
                continue;
            }
            let mut cells = cells(rows, n);
            cells.retain(|cell| !given.options.absent.has(cell));
            if !cells.is_empty() {
                let traits = proposal.traits.of(n);
                proposal.column((n, name), &cells, traits, &mut parts);
            }
        }
        if !proposal.file.map.contains_key(DISPLAY_NAME) {
            let cells_of =
                |name: &str| columns.find(name).map(|n| cells(rows, n)).unwrap_or_default();
            for part in ordered(parts, cells_of) {
                proposal.set(DISPLAY_NAME.to_owned(), part);
            }
        }
        proposal.file.region = match &*given.options.region {
            "" => proposal.region(columns, rows, &given.options.definitions.regions),
            given => Some(given.to_owned()),
        };
        proposal
    }

    /// Maps a column with these cells to its field. Parts of names are left to the caller.
    fn column<'n>(
        &mut self,
        (n, name): (usize, &'n str),
        cells: &[&str],
        traits: Traits,
        parts: &mut Parts<'n>,
    ) {
        let exact = Field::named(name).filter(|field| guess::fits(field, cells, &self.locale));
        if let Some(field) = exact {
            return self.set(field.name(), name);
        }
        let is_free = !self.file.map.contains_key(STATE);
        if let Some(meanings) = states::meanings(name, cells).filter(|_| is_free) {
            self.file.values.insert(name.to_owned(), meanings);
            return self.set(STATE.to_owned(), name);
        }
        let guess = by_name(name).map(|(guess, _)| guess).or_else(|| guess::by_cells(cells));
        match guess.filter(|guess| self.takes(*guess, cells)) {
            Some(part) if part.field().is_none() => parts.push((part, name)),
            Some(guess) => {
                let field = guess.field().map_or(String::new(), |field| field.name());
                self.set(field + &separator_of(cells), name);
            }
            None => {
                let value_type = match is_dialled(name) {
                    true => ValueType::String,
                    false => guess::value_type(cells, traits, &self.locale),
                };
                let value_type = Some(value_type).filter(|known| *known != ValueType::String);
                let attribute = attribute_name(name, n);
                self.set(Field::Attribute(attribute, value_type).name(), name);
            }
        }
    }

    /// Whether a column can have what its name says: numbers are ids of a program, and no handles,
    /// and a row has one country.
    fn takes(&self, guess: Guess, cells: &[&str]) -> bool {
        let is_number = |cell: &&str| cell.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        match guess {
            Guess::Handle => !cells.iter().all(is_number),
            Guess::Region => !self.file.map.contains_key(REGION),
            _ => true,
        }
    }

    /// The region of telephone numbers whose rows have none: the most frequent one of rows, or one
    /// that numbers fit, of those of the tenant or of the language.
    fn region(&self, columns: &Columns, rows: &VecDeque<Row>, likely: &[String]) -> Option<String> {
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
        own.map(str::to_owned).or_else(|| region_of(&numbers, likely, self.locale.language))
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

/// The columns of a display name in the order in which its people write them. A whole name stands
/// for the part that has no column of its own.
fn ordered<'n>(parts: Parts<'n>, cells_of: impl Fn(&str) -> Vec<&'n str>) -> Vec<&'n str> {
    let of = |wanted: Guess| {
        let own = parts.iter().filter(move |(part, _)| *part == wanted);
        own.map(|(_, name)| *name).collect::<Vec<_>>()
    };
    let (given, middle) = (of(Guess::GivenName), of(Guess::MiddleName));
    let (family, whole) = (of(Guess::FamilyName), of(Guess::FullName));
    let (given, family) = match (given.is_empty(), family.is_empty()) {
        (true, _) => (whole, family),
        (false, true) => (given, whole),
        (false, false) => (given, family),
    };
    let is_last_first = family.iter().any(|name| {
        let language = by_name(name).map_or("", |(_, language)| language);
        FAMILY_FIRST.contains(&language) || guess::is_east_asian(&cells_of(name))
    });
    match is_last_first {
        true => [family, given, middle].concat(),
        false => [given, middle, family].concat(),
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
const REGIONS: [(&str, &[&str]); 12] = [
    ("de", &["DE", "AT", "CH"]),
    ("fr", &["FR", "BE", "CH", "LU"]),
    ("es", &["ES", "MX", "AR", "CO", "CL"]),
    ("it", &["IT", "CH"]),
    ("pt", &["BR", "PT"]),
    ("nl", &["NL", "BE"]),
    ("en", &["US", "GB", "AU", "IE", "IN"]),
    ("sv", &["SE", "FI"]),
    ("hu", &["HU"]),
    ("ja", &["JP"]),
    ("ko", &["KR"]),
    ("zh", &["CN", "TW", "HK"]),
];

/// The region of most telephone numbers in national form: the first likely one that they fit, or
/// the best of those of the language. None if there are no numbers, or if fewer than nine of ten
/// are valid numbers of one region with its national prefix.
fn region_of(numbers: &[&str], likely: &[String], language: &str) -> Option<String> {
    let national: Vec<_> = numbers.iter().filter(|number| !is_international(number)).collect();
    let valid = |region: &str| {
        let is_valid = |number: &str| {
            dialling(number, region) == Some(Dialling::National)
                && Identifier::parse(RawIdentifier::Phone { number, region }).is_ok()
        };
        national.iter().filter(|number| is_valid(number)).count()
    };
    let is_clear = |region: &str| !national.is_empty() && valid(region) * 10 >= national.len() * 9;
    if let Some(region) = likely.iter().find(|region| is_clear(region)) {
        return Some(region.clone());
    }
    let regions = REGIONS.iter().find(|(known, _)| *known == language)?.1;
    let best = regions.iter().rev().max_by_key(|region| valid(region))?;
    is_clear(best).then(|| (*best).to_owned())
}

/// The cells of a column that are not empty, without white space around them.
pub fn cells(rows: &VecDeque<Row>, column: usize) -> Vec<&str> {
    let whole = rows.iter().filter(|row| row.error.is_none());
    let cells = whole.filter_map(|row| row.cells.get(column)).map(str::trim);
    cells.filter(|cell| !cell.is_empty()).collect()
}
