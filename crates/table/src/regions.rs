//! Regions by their codes and their names: ISO 3166-1 and CLDR's territories.

use std::collections::HashMap;
use std::sync::OnceLock;

use intl::display::region_name;

use crate::locale::Locale;

/// Codes of three letters, and other usual ones, that no locale's names have.
const OTHER: [(&str, &str); 24] = [
    ("uk", "GB"),
    ("gbr", "GB"),
    ("england", "GB"),
    ("great britain", "GB"),
    ("usa", "US"),
    ("u.s.a.", "US"),
    ("u.s.", "US"),
    ("deu", "DE"),
    ("brd", "DE"),
    ("aut", "AT"),
    ("che", "CH"),
    ("fra", "FR"),
    ("esp", "ES"),
    ("ita", "IT"),
    ("nld", "NL"),
    ("holland", "NL"),
    ("bel", "BE"),
    ("pol", "PL"),
    ("prt", "PT"),
    ("swe", "SE"),
    ("dnk", "DK"),
    ("nor", "NO"),
    ("fin", "FI"),
    ("cze", "CZ"),
];

/// The region of a cell: a code such as `AT`, or a name in a language of [`Locale::languages`].
pub fn region(cell: &str) -> Option<&'static str> {
    static NAMES: OnceLock<HashMap<String, String>> = OnceLock::new();
    let name = cell.trim().to_lowercase();
    NAMES.get_or_init(names).get(&name).map(String::as_str)
}

/// The usual names of all regions in English, with their codes, in the order of the names.
pub fn region_names() -> &'static [(String, String)] {
    static NAMES: OnceLock<Vec<(String, String)>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let named = codes().filter_map(|code| Some((region_name("en", &code)?.to_string(), code)));
        let mut names: Vec<_> = named.collect();
        names.sort();
        names
    })
}

/// The region that lists of addresses and telephone numbers often mean by a sign for vehicles.
pub fn likely_region(cell: &str) -> Option<&'static str> {
    const SIGNS: [(&str, &str); 13] = [
        ("A", "AT"),
        ("B", "BE"),
        ("D", "DE"),
        ("E", "ES"),
        ("F", "FR"),
        ("FIN", "FI"),
        ("H", "HU"),
        ("I", "IT"),
        ("L", "LU"),
        ("N", "NO"),
        ("P", "PT"),
        ("PL", "PL"),
        ("S", "SE"),
    ];
    SIGNS.iter().find(|(sign, _)| *sign == cell.trim()).map(|(_, code)| *code)
}

/// The codes of all names, in lower case.
fn names() -> HashMap<String, String> {
    let mut names = HashMap::new();
    for code in codes() {
        for language in Locale::languages() {
            if let Some(name) = region_name(language, &code) {
                names.entry(name.to_lowercase()).or_insert_with(|| code.clone());
            }
        }
        names.insert(code.to_lowercase(), code);
    }
    names.extend(OTHER.map(|(name, code)| (name.to_owned(), code.to_owned())));
    names
}

/// The codes of all regions whose telephone numbers are known.
fn codes() -> impl Iterator<Item = String> {
    let letters = || 'A'..='Z';
    let pairs = letters().flat_map(move |one| letters().map(move |other| [one, other]));
    let codes = pairs.map(String::from_iter);
    codes.filter(|code| polynym_identifier::dialling("0", code).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_have_names_in_many_languages() {
        for (cell, code) in [
            ("DE", "DE"),
            ("de", "DE"),
            ("Deutschland", "DE"),
            ("Allemagne", "DE"),
            ("ÖSTERREICH", "AT"),
            (" Schweiz ", "CH"),
            ("España", "ES"),
            ("Türkiye", "TR"),
            ("Royaume-Uni", "GB"),
            ("UK", "GB"),
            ("USA", "US"),
            ("Vereinigte Staaten", "US"),
            ("日本", "JP"),
            ("Россия", "RU"),
        ] {
            assert_eq!(region(cell), Some(code), "{cell}");
        }
        assert_eq!(region("Atlantis"), None);
        assert!(region_names().contains(&("Germany".to_owned(), "DE".to_owned())));
        assert_eq!((region("D"), likely_region("D")), (None, Some("DE")));
    }
}
