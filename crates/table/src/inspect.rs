//! Proposes how to read a file, and shows what would happen with its rows.

mod guess;
mod proposal;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{Cursor, Read};

use encoding_rs::{Encoding, WINDOWS_1252};
use polynym_identifier::{Dialling, Identifier};
use polynym_lines::raw_identifier;

use crate::columns::Columns;
use crate::map_file::{Given, MapFile};
use crate::mapping::{MappedUser, Mapping, Options};
use crate::rows::{Row, Table};
use crate::separator;
use proposal::{Proposal, cells};

/// The bytes in which a file's encoding is guessed.
const HEAD_BYTES: usize = 1 << 20;
/// The rows from which columns are guessed.
const GUESSED_ROWS: usize = 1_000;
/// The bytes of those rows.
const GUESSED_BYTES: usize = 8 << 20;
/// The rows that are shown.
const SHOWN_ROWS: usize = 10;
/// The cells of a column that are shown.
const SHOWN_CELLS: usize = 3;
/// The identities that are compared with each other.
const MAX_COMPARED: usize = 2_000_000;
/// The reasons of rejects that are told apart.
const MAX_REASONS: usize = 100;

/// What a file has, and how to read it.
pub struct Inspection {
    /// The name of the encoding.
    pub encoding: &'static str,
    /// The name of the separator.
    pub separator: String,
    /// The columns.
    pub columns: Vec<InspectedColumn>,
    /// The proposal.
    pub map_file: MapFile,
    /// The first rows as they would be read, each with its line.
    pub sample: Vec<(i64, Result<MappedUser, String>)>,
    /// The rows that have text.
    pub rows: u64,
    /// The reasons for which rows would be rejected, each with its number and its first line.
    pub rejects: BTreeMap<String, (u64, i64)>,
    /// What was read in other than the plain way.
    pub tally: Tally,
}

/// A column of a file.
pub struct InspectedColumn {
    /// Its name.
    pub name: String,
    /// The name of its field; empty if it would be ignored.
    pub field: String,
    /// Some cells.
    pub examples: Vec<String>,
}

/// What was read in other than the plain way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Telephone numbers in international form.
    pub international: u64,
    /// Telephone numbers in national form, by the region as whose they were read.
    pub national: BTreeMap<String, u64>,
    /// Those of them without the national prefix, which may be of another region.
    pub without_prefix: u64,
    /// Cells with a word for no value.
    pub absent: u64,
}

impl Tally {
    /// Adds a user.
    pub fn add(&mut self, mapped: &MappedUser) {
        self.absent += mapped.absent as u64;
        for (region, dialling) in &mapped.phones {
            match dialling {
                Dialling::International => self.international += 1,
                other => {
                    *self.national.entry(region.clone()).or_default() += 1;
                    self.without_prefix += u64::from(*other == Dialling::WithoutPrefix);
                }
            }
        }
    }
}

/// Reads a whole file and proposes how to import it.
///
/// # Errors
/// The file cannot be read, or is no table: in words.
pub fn inspect(mut reader: impl Read, given: Given) -> Result<Inspection, String> {
    let mut head = Vec::new();
    let read = reader.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head);
    read.map_err(|error| error.to_string())?;
    let encoding = given.encoding.or_else(|| is_single_byte(&head).then_some(WINDOWS_1252));
    let whole = Cursor::new(head).chain(reader);
    let mut table = Table::open(whole, encoding, given.separator)?;
    let (mut first, mut bytes) = (VecDeque::new(), 0);
    while first.len() < GUESSED_ROWS && bytes < GUESSED_BYTES {
        let Some(row) = table.rows.next_row()? else { break };
        bytes += row.bytes;
        first.push_back(row);
    }

    let mut proposal = Proposal::new(&table.columns, &first, &given);
    proposal.file.encoding = given.encoding.or(encoding).map(|encoding| encoding.name().to_owned());
    proposal.file.separator = given.separator.map(separator::name);
    let options = Options { locale: proposal.locale, ..given.options.clone() };
    let region = proposal.file.region.clone().unwrap_or_default();
    let options = Options { region, ..options };
    let maps = if given.maps.is_empty() { proposal.file.maps() } else { given.maps };
    let mapping = Mapping::new(&maps, &table.columns, options)?;
    let mut inspection = Inspection {
        encoding: table.encoding,
        separator: separator::name(table.separator),
        columns: inspected(&table.columns, &first, &mapping),
        map_file: proposal.file,
        sample: Vec::new(),
        rows: 0,
        rejects: BTreeMap::new(),
        tally: Tally::default(),
    };
    let mut seen = Seen::default();
    loop {
        let row = match first.pop_front() {
            Some(row) => row,
            None => match table.rows.next_row()? {
                Some(row) => row,
                None => return Ok(inspection),
            },
        };
        inspection.add(row, &mapping, &table.columns, &mut seen);
    }
}

impl Inspection {
    fn add(&mut self, row: Row, mapping: &Mapping, columns: &Columns, seen: &mut Seen) {
        let line = row.line;
        if row.is_blank() {
            return;
        }
        let mapped = match row.error {
            None => mapping.user(&row.cells).map_err(|error| error.text(columns)),
            Some(error) => Err(error),
        };
        self.rows += 1;
        if let Err(reason) = mapped.as_ref().map_err(String::clone).and_then(|mapped| {
            self.tally.add(mapped);
            seen.check(mapped, columns, line)
        }) {
            let is_known = self.rejects.contains_key(&reason);
            let reason = if is_known || self.rejects.len() < MAX_REASONS {
                reason
            } else {
                "other".to_owned()
            };
            self.rejects.entry(reason).or_insert((0, line)).0 += 1;
        }
        if self.sample.len() < SHOWN_ROWS {
            self.sample.push((line, mapped));
        }
    }
}

/// Whether bytes are text of one byte for each letter: no UTF-8, and no mark of UTF-16.
fn is_single_byte(head: &[u8]) -> bool {
    let is_marked = Encoding::for_bom(head).is_some();
    // The last character may be cut off.
    let is_utf8 = std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |_| true);
    !is_marked && !is_utf8 && !head.contains(&0)
}

/// The columns with their fields and some cells.
fn inspected(columns: &Columns, rows: &VecDeque<Row>, mapping: &Mapping) -> Vec<InspectedColumn> {
    let names = columns.names().iter().enumerate();
    let column = |(n, name): (usize, &String)| InspectedColumn {
        name: name.clone(),
        field: mapping.field_of(n),
        examples: cells(rows, n).into_iter().take(SHOWN_CELLS).map(str::to_owned).collect(),
    };
    names.map(column).collect()
}

/// The identities of earlier rows, by their hashes, with their lines.
#[derive(Default)]
struct Seen(HashMap<u64, i64>);

impl Seen {
    /// Fails if an identity would be rejected, or an earlier row has it.
    fn check(&mut self, mapped: &MappedUser, columns: &Columns, line: i64) -> Result<(), String> {
        let identities = mapped.user.identities.iter().zip(&mapped.identity_columns);
        for (identity, column) in identities {
            let Some(raw) = raw_identifier(identity.identifier.as_ref()) else { continue };
            let name = columns.name(*column);
            let identifier = Identifier::parse(raw).map_err(|rejection| {
                let (rule, kind) = (rejection.rule(), raw.kind());
                format!("{name}: not a valid {kind}: rule {rule}; {}", rule.advice())
            })?;
            let hash = BuildHasherDefault::<DefaultHasher>::default()
                .hash_one((identifier.kind() as u8, identifier.canonical()));
            if self.0.len() < MAX_COMPARED && *self.0.entry(hash).or_insert(line) != line {
                return Err(format!("{name}: an earlier row has the same identity"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUSTOMERS: &str = "Kundennr.;Vorname;Nachname;E-Mail;Telefon;Umsatz;Seit\n\
        0001;Anna;Müller;anna@example.com;030 1234567;1.234,50;04.12.2021\n\
        0002;Jörg;Groß;jg@example.com;+43 1 5123456;17,00;31.01.2020\n\
        0003;Eva;Weiß;eva@example.org, e2@example.org;0171 1234567;0,99;1.1.1999\n\
        0004;Nora;Falsch;nora@@example.org;;12,00;2.3.2001\n\
        0005;Anna;Müller;Anna@example.com;;12,00;2.3.2001\n\
        ;;;;; ;\n";

    #[test]
    fn a_file_of_customers_is_understood() {
        let (bytes, ..) = WINDOWS_1252.encode(CUSTOMERS);
        let inspection = inspect(&*bytes, Given::default()).unwrap();
        assert_eq!((inspection.encoding, &*inspection.separator), ("windows-1252", "semicolon"));
        let file = &inspection.map_file;
        assert_eq!((file.locale.as_deref(), file.region.as_deref()), (Some("de"), Some("DE")));
        assert_eq!(
            file.maps(),
            [
                "attributes.kundennr=Kundennr.",
                "attributes.seit:time=Seit",
                "attributes.umsatz:double=Umsatz",
                "display_name=Vorname+Nachname",
                "email[,]=E-Mail",
                "phone=Telefon",
            ]
        );
        assert_eq!(inspection.rows, 5);
        assert_eq!(inspection.tally.international, 1);
        assert_eq!(inspection.tally.national["DE"], 2);
        assert_eq!(inspection.rejects.values().map(|(count, _)| count).sum::<u64>(), 2);
        assert_eq!(inspection.rejects["E-Mail: an earlier row has the same identity"], (1, 6));
        assert_eq!(inspection.sample[1].1.as_ref().unwrap().user.display_name, "Jörg Groß");
        assert_eq!(inspection.columns[3].field, "email");
    }

    #[test]
    fn a_mapping_may_be_given() {
        let given = Given { maps: vec!["handle=Kundennr.".to_owned()], ..Given::default() };
        let inspection = inspect(CUSTOMERS.as_bytes(), given).unwrap();
        assert_eq!(inspection.encoding, "UTF-8");
        assert_eq!(inspection.columns[0].field, "handle");
    }
}
