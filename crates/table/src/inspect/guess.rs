//! Guesses what a column has, by its name in several languages and by its cells.

use std::collections::BTreeMap;

use polynym_identifier::is_international;
use unicode_normalization::UnicodeNormalization;

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
    FamilyName,
    FullName,
}

use Guess::{Email, FamilyName, FullName, GivenName, Handle, Phone, Region, Url};

/// Names of columns, in lower case and without signs and marks, and the languages that have them.
const NAMES: [(Guess, &str, &[&str]); 34] = [
    (Email, "", &["mail", "email", "emailaddress", "emails", "mailaddress", "workemail"]),
    (Email, "de", &["emailadresse", "mailadresse", "emailprivat", "emailgeschaeftlich"]),
    (Email, "fr", &["courriel", "adressemail", "adresseemail", "adresseelectronique"]),
    (Email, "es", &["correo", "correoelectronico"]),
    (Email, "it", &["postaelettronica", "indirizzoemail"]),
    (Email, "nl", &["mailadres", "emailadres"]),
    (Email, "sv", &["epost", "epostadress"]),
    (
        Phone,
        "",
        &["phone", "tel", "phonenumber", "mobile", "telephone", "cell", "cellphone", "gsm"],
    ),
    (Phone, "de", &["telefon", "telefonnummer", "handy", "handynummer", "mobil", "rufnummer"]),
    (Phone, "fr", &["portable", "numerodetelephone", "telephoneportable", "telportable"]),
    (Phone, "es", &["telefono", "movil", "telefonomovil"]),
    (Phone, "it", &["cellulare", "numeroditelefono"]),
    (Phone, "nl", &["telefoon", "telefoonnummer", "mobiel"]),
    (Handle, "", &["login", "username", "userid", "nickname", "handle", "screenname"]),
    (Handle, "de", &["benutzername", "benutzer", "benutzerkennung", "anmeldename"]),
    (Handle, "fr", &["identifiant", "nomdutilisateur", "pseudo"]),
    (Handle, "es", &["usuario", "nombredeusuario"]),
    (Handle, "it", &["utente", "nomeutente"]),
    (Url, "", &["profile", "profileurl", "linkedin", "linkedinurl", "profil"]),
    (Region, "", &["country", "countrycode", "region", "iso"]),
    (Region, "de", &["land", "laendercode", "staat"]),
    (Region, "fr", &["pays", "codepays"]),
    (Region, "es", &["pais"]),
    (Region, "it", &["paese", "nazione"]),
    (GivenName, "", &["firstname", "givenname", "forename"]),
    (GivenName, "de", &["vorname", "rufname"]),
    (GivenName, "fr", &["prenom"]),
    (GivenName, "es", &["nombre", "nombres"]),
    (FamilyName, "", &["lastname", "surname", "familyname"]),
    (FamilyName, "de", &["nachname", "familienname"]),
    (FamilyName, "fr", &["nom", "nomdefamille"]),
    (FamilyName, "es", &["apellido", "apellidos"]),
    (FamilyName, "it", &["cognome"]),
    (FullName, "", &["name", "fullname", "displayname", "contact", "contactname", "anzeigename"]),
];

/// What the name of a column says: the guess, and the language of the name, which is empty for
/// names of many languages.
pub fn by_name(column: &str) -> Option<(Guess, &'static str)> {
    let name = folded(column).replace('_', "");
    let found = NAMES.iter().find(|(_, _, names)| names.contains(&&*name));
    found.map(|(guess, language, _)| (*guess, *language))
}

/// The letters and digits of a name, in lower case and without marks, with underscores between
/// words.
fn folded(name: &str) -> String {
    let lower = name.to_lowercase().replace('ä', "ae").replace('ö', "oe").replace('ü', "ue");
    let plain = lower.replace('ß', "ss").nfkd().filter(char::is_ascii).collect::<String>();
    let words = plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}

/// The name of the attribute for a column, from its own.
pub fn attribute_name(column: &str, position: usize) -> String {
    let name = folded(column);
    match name.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => name,
        _ => format!("column_{}", position + 1),
    }
}

/// The share of cells that decides, in hundredths: some may be dirty.
const MOST: usize = 90;

/// What most cells of a column are.
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

/// The type of the attribute that most cells of a column are.
pub fn value_type(cells: &[&str], locale: &Locale) -> ValueType {
    let most = |is: &dyn Fn(&str) -> bool| {
        let count = cells.iter().filter(|cell| is(cell)).count();
        !cells.is_empty() && count * 100 >= cells.len() * MOST
    };
    // Numbers that begin with 0 are names: 01067 is a postal code.
    let is_name =
        |cell: &&&str| cell.len() > 1 && cell.starts_with('0') && !cell.contains(['.', ',']);
    let has_names = cells.iter().any(|cell| is_name(&cell));
    let number = |cell: &str| numbers::plain(cell, locale);
    if most(&|cell| !cell.bytes().all(|b| b.is_ascii_digit()) && locale.yes_or_no(cell).is_some()) {
        ValueType::Bool
    } else if !has_names && most(&|cell| number(cell).is_some_and(|n| n.parse::<i64>().is_ok())) {
        ValueType::Int
    } else if !has_names && most(&|cell| number(cell).is_some_and(|n| n.parse::<f64>().is_ok())) {
        ValueType::Double
    } else if most(&|cell| times::parse(cell, locale).is_ok()) {
        ValueType::Time
    } else {
        ValueType::String
    }
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
            GivenName | FamilyName | FullName => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_are_known_in_several_languages() {
        for (column, guess) in [
            ("E-Mail", Email),
            ("Téléphone portable", Phone),
            ("Correo electrónico", Email),
            ("Länder-Code", Region),
            ("PRÉNOM", GivenName),
            ("User ID", Handle),
        ] {
            assert_eq!(by_name(column).map(|(guess, _)| guess), Some(guess), "{column}");
        }
        assert_eq!(by_name("Notes"), None);
        let german = locale(["Vorname", "Land", "Nom"].into_iter()).unwrap();
        assert_eq!(german.language, "de");
        assert_eq!(attribute_name("Straße & Nr.", 0), "strasse_nr");
        assert_eq!(attribute_name("住所", 2), "column_3");
    }

    #[test]
    fn cells_tell_their_type() {
        let german = Locale::parse("de").unwrap();
        for (cells, wanted) in [
            (["1", "25", "300"], ValueType::Int),
            (["1,5", "2", "3"], ValueType::Double),
            (["ja", "nein", "ja"], ValueType::Bool),
            (["04.12.2021", "1.1.2020", "31.12.1999"], ValueType::Time),
            (["01067", "10115", "80331"], ValueType::String),
            (["a", "b", "1"], ValueType::String),
        ] {
            assert_eq!(value_type(&cells, &german), wanted, "{cells:?}");
        }
        assert_eq!(by_cells(&["a@example.com", "b@example.com"]), Some(Email));
        assert_eq!(by_cells(&["+49 30 123456"]), Some(Phone));
        assert_eq!(by_cells(&[]), None);
    }
}
