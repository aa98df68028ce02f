//! Guesses what a column has by its cells, and the locale of a file by the names of its columns.

use std::collections::BTreeMap;

use polynym_identifier::is_international;

use super::headers::by_name;
use crate::field::{Field, ValueType};
use crate::locale::{Locale, NEUTRAL};
use crate::{numbers, times};

/// The part of a person that a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guess {
    Email,
    Phone,
    Handle,
    Url,
    Region,
    GivenName,
    MiddleName,
    FamilyName,
    FullName,
}

use Guess::{Email, FamilyName, FullName, GivenName, Handle, MiddleName, Phone, Region, Url};

/// The share of cells that decides, in hundredths: some may be dirty.
const MOST: usize = 90;

/// The kind of most cells of a column.
pub fn by_cells(cells: &[&str]) -> Option<Guess> {
    let most = |is: &dyn Fn(&str) -> bool| {
        let count = cells.iter().filter(|cell| is(cell)).count();
        !cells.is_empty() && count * 100 >= cells.len() * MOST
    };
    if most(&|cell| cell.contains('@') && cell.contains('.') && !cell.starts_with('@')) {
        Some(Email)
    } else if most(&|cell| {
        is_international(cell) && cell.chars().filter(char::is_ascii_digit).count() > 6
    }) {
        Some(Phone)
    } else {
        None
    }
}

/// Properties of a column that each of its cells can decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// Whether a cell is a name in digits: it begins with 0, as `01067`, or has more digits than
    /// spreadsheets keep.
    pub has_names: bool,
    /// Whether a number has decimals other than 0.
    pub has_decimals: bool,
}

/// The digits that spreadsheets keep of a number.
const KEPT_DIGITS: usize = 15;

impl Traits {
    /// Adds a cell.
    pub fn add(&mut self, cell: &str, locale: &Locale) {
        let digits = cell.strip_prefix(['+', '-']).unwrap_or(cell);
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            self.has_names |=
                digits.len() > KEPT_DIGITS || (digits.len() > 1 && digits.starts_with('0'));
        } else if !self.has_decimals && cell.contains(['.', ',']) {
            self.has_decimals = numbers::plain(cell, locale)
                .and_then(|number| number.parse().ok())
                .is_some_and(|number: f64| number.fract() != 0.0);
        }
    }
}

/// The type of the attribute that most cells of a column are.
pub fn value_type(cells: &[&str], traits: Traits, locale: &Locale) -> ValueType {
    let most = |is: &dyn Fn(&str) -> bool| {
        let count = cells.iter().filter(|cell| is(cell)).count();
        !cells.is_empty() && count * 100 >= cells.len() * MOST
    };
    // A number that may be two is asked about: either is a double.
    let is_ambiguous = |cell: &str| numbers::is_ambiguous(cell, locale);
    let number = |cell: &str| numbers::plain(cell, locale);
    let is_whole = |cell: &str| number(cell).is_some_and(|n| numbers::whole(&n).is_some());
    let is_double =
        |cell: &str| is_ambiguous(cell) || number(cell).is_some_and(|n| n.parse::<f64>().is_ok());
    if most(&|cell| !cell.bytes().all(|b| b.is_ascii_digit()) && locale.yes_or_no(cell).is_some()) {
        ValueType::Bool
    } else if !traits.has_names && !traits.has_decimals && most(&is_whole) {
        ValueType::Int
    } else if !traits.has_names && most(&is_double) {
        ValueType::Double
    } else if most(&|cell| times::parse(cell, locale).is_ok()) {
        ValueType::Time
    } else {
        ValueType::String
    }
}

/// Whether most cells of a column can be read as a field that has the column's name.
pub fn fits(field: &Field, cells: &[&str], locale: &Locale) -> bool {
    let most = |is: &dyn Fn(&str) -> bool| {
        cells.iter().filter(|cell| is(cell)).count() * 100 >= cells.len() * MOST
    };
    match field {
        Field::UserId => most(&|cell| cell.len() == 36 && cell.matches('-').count() == 4),
        Field::State => most(&|cell| crate::value::state(cell).is_ok()),
        Field::CreateTime | Field::UpdateTime => most(&|cell| times::parse(cell, locale).is_ok()),
        _ => true,
    }
}

/// Whether most cells are in a script of East Asia, whose people write the family's name first.
pub fn is_east_asian(cells: &[&str]) -> bool {
    let is_own = |c: char| matches!(u32::from(c), 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7af | 0x20000..=0x3ffff);
    cells.iter().filter(|cell| cell.contains(is_own)).count() * 2 > cells.len()
}

/// The locale of a file, from the languages of its columns' names: the most frequent one.
pub fn locale<'n>(names: impl Iterator<Item = &'n str>) -> Option<Locale> {
    let mut counts = BTreeMap::new();
    for (_, language) in names.filter_map(by_name).filter(|(_, language)| !language.is_empty()) {
        *counts.entry(language).or_insert(0) += 1;
    }
    let (language, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    Locale::parse(language).ok().filter(|locale| *locale != NEUTRAL)
}

impl Guess {
    /// The field; none for a part of a name.
    pub const fn field(self) -> Option<Field> {
        match self {
            Email => Some(Field::Email),
            Phone => Some(Field::Phone),
            Handle => Some(Field::Handle),
            Url => Some(Field::Url),
            Region => Some(Field::Region),
            GivenName | MiddleName | FamilyName | FullName => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(cells: &[&str], locale: &Locale) -> ValueType {
        let mut traits = Traits::default();
        cells.iter().for_each(|cell| traits.add(cell, locale));
        value_type(cells, traits, locale)
    }

    #[test]
    fn cells_tell_their_type() {
        let german = Locale::parse("de").unwrap();
        for (cells, wanted) in [
            (["1", "25", "300"], ValueType::Int),
            (["1,5", "2", "3"], ValueType::Double),
            (["1,0", "2,0", "3"], ValueType::Int),
            (["1,0", "2,0", "3,5"], ValueType::Double),
            (["ja", "nein", "ja"], ValueType::Bool),
            (["04.12.2021", "1.1.2020", "31.12.1999"], ValueType::Time),
            (["01067", "10115", "80331"], ValueType::String),
            (["4000000000000001", "1", "2"], ValueType::String),
            (["a", "b", "1"], ValueType::String),
        ] {
            assert_eq!(types(&cells, &german), wanted, "{cells:?}");
        }
        assert_eq!(types(&["4,750", "1,200"], &NEUTRAL), ValueType::Double);
        assert_eq!(by_cells(&["a@example.com", "b@example.com"]), Some(Email));
        assert_eq!(by_cells(&["+49 30 123456"]), Some(Phone));
        assert_eq!(by_cells(&[]), None);
        assert_eq!(locale(["Vorname", "Land", "Nom"].into_iter()).unwrap().language, "de");
    }

    #[test]
    fn fields_are_recognised_by_their_cells() {
        assert!(fits(&Field::State, &["Active", "disabled"], &NEUTRAL));
        assert!(!fits(&Field::State, &["Bayern", "Hessen"], &NEUTRAL));
        assert!(!fits(&Field::UserId, &["1047", "1048"], &NEUTRAL));
        assert!(is_east_asian(&["山田", "김", "Lee"]) && !is_east_asian(&["Lee", "王"]));
    }
}
