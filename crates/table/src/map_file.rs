//! A file of TOML with all that reading a table needs: what is too long for a command line.

use std::collections::BTreeMap;

use encoding_rs::Encoding;
use serde::{Deserialize, Serialize};

use crate::absent::Absent;
use crate::locale::Locale;
use crate::mapping::{Meanings, Options, Phones};
use crate::{encoding, separator};

/// What is given; the rest is guessed.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The encoding.
    pub encoding: Option<&'static Encoding>,
    /// The separator.
    pub separator: Option<u8>,
    /// The locale.
    pub locale: Option<Locale>,
    /// The mappings; empty to guess them.
    pub maps: Vec<String>,
    /// How cells are read.
    pub options: Options,
}

/// The content of a map file. All parts may be absent.
///
/// ```
/// let file = polynym_table::MapFile::parse(
///     r#"
///     encoding = "windows-1252"
///     locale = "de"
///     [map]
///     email = "E-Mail"
///     display_name = ["Vorname", "Nachname"]
///     "#,
/// )?;
/// assert_eq!(file.maps(), ["display_name=Vorname+Nachname", "email=E-Mail"]);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MapFile {
    /// The name of the encoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The separator, by its name or sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// The tag of the locale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// The region of telephone numbers in national form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// `national` or `strict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phones: Option<String>,
    /// The words for which a cell counts as empty, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
    /// The column or columns of each field.
    #[serde(default)]
    pub map: BTreeMap<String, FieldColumns>,
    /// The meanings of values: `D` is `DE` in a column of countries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: Meanings,
}

/// The columns of a field.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum FieldColumns {
    /// One column.
    One(String),
    /// Several: identities, or the parts of a text.
    Several(Vec<String>),
}

impl FieldColumns {
    /// Whether this column is one of them.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::One(column) => column == name,
            Self::Several(columns) => columns.iter().any(|column| column == name),
        }
    }
}

impl MapFile {
    /// Parses a file.
    ///
    /// # Errors
    /// It is no such file: in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// The mappings in the form of the command line.
    pub fn maps(&self) -> Vec<String> {
        let is_identity = |field: &str| {
            let name = field.split('[').next().unwrap_or_default();
            crate::field::Field::parse(name).is_ok_and(|field| field.is_identity())
        };
        let mut maps = Vec::new();
        for (field, columns) in &self.map {
            match columns {
                FieldColumns::One(column) => maps.push(format!("{field}={column}")),
                FieldColumns::Several(columns) if is_identity(field) => {
                    maps.extend(columns.iter().map(|column| format!("{field}={column}")));
                }
                FieldColumns::Several(columns) => {
                    maps.push(format!("{field}={}", columns.join("+")));
                }
            }
        }
        maps
    }

    /// How to read a table by this file.
    ///
    /// # Errors
    /// A part has no such value: in words.
    pub fn given(&self) -> Result<Given, String> {
        let phones = match self.phones.as_deref() {
            Some("strict") => Phones::Strict,
            Some("national") | None => Phones::National,
            Some(other) => return Err(format!("phones {other}: must be national or strict")),
        };
        let options = Options {
            region: self.region.clone().unwrap_or_default(),
            phones,
            absent: self.absent.as_deref().map_or_else(Absent::default, Absent::parse),
            meanings: self.values.clone(),
            ..Options::default()
        };
        Ok(Given {
            encoding: self.encoding.as_deref().map(encoding::named).transpose()?,
            separator: self.separator.as_deref().map(separator::named).transpose()?,
            locale: self.locale.as_deref().map(Locale::parse).transpose()?,
            maps: self.maps(),
            options,
        })
    }

    /// The file as text.
    ///
    /// # Errors
    /// None that is known: in words.
    pub fn text(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let one = |name: &str| FieldColumns::One(name.to_owned());
        let several = FieldColumns::Several(vec!["Vor\"name".to_owned(), "Name".to_owned()]);
        let file = MapFile {
            separator: Some("\t".to_owned()),
            map: BTreeMap::from([
                ("email[;]".to_owned(), one("Mail, privat")),
                ("display_name".to_owned(), several),
            ]),
            ..MapFile::default()
        };
        assert_eq!(MapFile::parse(&file.text().unwrap()), Ok(file));
        assert!(MapFile::parse("regoin = \"DE\"").unwrap_err().contains("regoin"));
    }
}
