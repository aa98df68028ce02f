//! Proposes how to read a file, and shows what would happen with its rows.

mod guess;
mod headers;
mod proposal;
mod states;
mod values;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, Cursor, Read};

use encoding_rs::{Encoding, WINDOWS_1252};
use polynym_identifier::{Dialling, Identifier};
use polynym_lines::raw_identifier;

use crate::columns::Columns;
use crate::locale::Locale;
use crate::map_file::{Given, MapFile};
use crate::mapping::{MappedUser, Mapping, Options};
use crate::rows::{Row, Table};
use crate::separator;
use proposal::{ColumnTraits, Proposal, cells};
use values::SpecialColumns;
pub use values::SpecialValues;

/// The bytes in which a file's encoding is guessed.
const HEAD_BYTES: usize = 1 << 20;
/// The rows from which columns are guessed.
const GUESSED_ROWS: usize = 1_000;
/// The bytes of those rows, with those that tell where their cells end.
const GUESSED_BYTES: usize = 8 << 20;
/// The rows that are shown.
const SHOWN_ROWS: usize = 10;
/// The cells of a column that are shown.
const SHOWN_CELLS: usize = 3;
/// The identities that are compared with each other.
const MAX_COMPARED: usize = 2_000_000;
/// The reasons of rejects that are told apart.
const MAX_REASONS: usize = 100;
/// The columns and words for no value that are told apart.
const MAX_ABSENT: usize = 1_000;
/// The name of what is not told apart.
const OTHER: &str = "other";

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
    /// The rows with an identity of an earlier row, and the first of them: the store and the
    /// options of the import decide what becomes of them.
    pub repeats: (u64, i64),
    /// The values that are not understood, or were given a meaning.
    pub values: Vec<SpecialValues>,
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
    /// Those of them whose rows name the region.
    pub national_by_row: BTreeMap<String, u64>,
    /// Those of them without the national prefix, which may be of another region.
    pub without_prefix: u64,
    /// Cells with a word for no value, by their columns and their words.
    pub absent: BTreeMap<(String, String), u64>,
}

impl Tally {
    /// Adds a user of a table with these columns.
    pub fn add(&mut self, mapped: &MappedUser, columns: &Columns) {
        for (column, word) in &mapped.absent {
            let key = (columns.name(*column).to_owned(), word.clone());
            let is_known = self.absent.len() < MAX_ABSENT || self.absent.contains_key(&key);
            let key = if is_known { key } else { (OTHER.to_owned(), OTHER.to_owned()) };
            *self.absent.entry(key).or_default() += 1;
        }
        for (region, dialling) in &mapped.phones {
            match dialling {
                Dialling::International => self.international += 1,
                other => {
                    *self.national.entry(region.clone()).or_default() += 1;
                    if mapped.has_region {
                        *self.national_by_row.entry(region.clone()).or_default() += 1;
                    }
                    self.without_prefix += u64::from(*other == Dialling::WithoutPrefix);
                }
            }
        }
    }
}

/// Reads a whole file and proposes how to import it. The file is opened again if a later row shows
/// that a column has no numbers.
///
/// # Errors
/// The file cannot be read, or is no table: in words.
pub fn inspect<R: Read>(
    mut open: impl FnMut() -> io::Result<R>,
    given: Given,
) -> Result<Inspection, String> {
    let mut open = || open().map_err(|error| error.to_string());
    let (inspection, all) = read(open()?, given.clone(), ColumnTraits::default())?;
    match all {
        Some(all) => read(open()?, given, all).map(|(inspection, _)| inspection),
        None => Ok(inspection),
    }
}

/// Reads a whole file. Returns what all its rows say of its columns, too, if the proposal is
/// another one with it.
fn read(
    mut reader: impl Read,
    given: Given,
    known: ColumnTraits,
) -> Result<(Inspection, Option<ColumnTraits>), String> {
    let mut head = Vec::new();
    let read = reader.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head);
    read.map_err(|error| error.to_string())?;
    let encoding = given.encoding.or_else(|| is_single_byte(&head).then_some(WINDOWS_1252));
    let whole = Cursor::new(head).chain(reader);
    let mut table = Table::open(whole, encoding, given.separator)?;
    let mut first = first_rows(&mut table)?;
    let mut proposal = Proposal::new(&table.columns, &first, &known, &given);
    proposal.file.encoding = given.encoding.or(encoding).map(|encoding| encoding.name().to_owned());
    proposal.file.separator = given.separator.map(separator::name);
    let (locale, seen_traits, mut all) = (proposal.locale, proposal.traits, known);
    let is_guess = given.maps.is_empty();
    let options = options_of(&proposal.file, given.options, locale, is_guess);
    let maps = if is_guess { proposal.file.maps() } else { given.maps };
    let mapping = Mapping::new(&maps, &table.columns, options)?;
    let mut inspection = Inspection {
        encoding: table.encoding,
        separator: separator::name(table.separator),
        columns: inspected(&table.columns, &first, &mapping),
        map_file: proposal.file,
        sample: Vec::new(),
        rows: 0,
        rejects: BTreeMap::new(),
        repeats: (0, 0),
        values: Vec::new(),
        tally: Tally::default(),
    };
    let (mut seen, mut special) = (Seen::default(), SpecialColumns::new(&mapping));
    loop {
        let row = match first.pop_front() {
            Some(row) => row,
            None => match table.rows.next_row()? {
                Some(row) => row,
                None => break,
            },
        };
        all.add(&row, &locale);
        special.add(&row.cells, &mapping, &table.columns);
        inspection.add(row, &mapping, &table.columns, &mut seen);
    }
    inspection.values = special.into_found();
    let is_other = is_guess
        && (0..inspection.columns.len()).any(|n| {
            let field = &inspection.columns[n].field;
            let is_number = field.ends_with(":int") || field.ends_with(":double");
            is_number && all.of(n) != seen_traits.of(n)
        });
    Ok((inspection, is_other.then_some(all)))
}

/// The given options, with those that are guessed.
fn options_of(file: &MapFile, given: Options, locale: Locale, is_guess: bool) -> Options {
    let mut meanings = given.meanings;
    for (column, own) in file.values.iter().filter(|_| is_guess) {
        meanings.entry(column.clone()).or_insert_with(|| own.clone());
    }
    let region = file.region.clone().unwrap_or_default();
    Options { locale, region, meanings, ..given }
}

/// The rows from which columns are guessed.
fn first_rows<R: Read>(table: &mut Table<R>) -> Result<VecDeque<Row>, String> {
    let (mut first, mut bytes) = (VecDeque::new(), 0);
    while first.len() < GUESSED_ROWS && bytes < GUESSED_BYTES {
        let Some(row) = table.rows.next_row()? else { break };
        bytes += row.bytes + row.cells.len() * size_of::<usize>();
        first.push_back(row);
    }
    Ok(first)
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
        let checked = mapped.as_ref().map_err(String::clone).and_then(|mapped| {
            self.tally.add(mapped, columns);
            seen.check(mapped, columns, line)
        });
        if checked == Ok(true) {
            self.repeats =
                (self.repeats.0 + 1, if self.repeats.0 == 0 { line } else { self.repeats.1 });
        }
        if let Err(reason) = checked {
            let is_known = self.rejects.contains_key(&reason);
            let reason = if is_known || self.rejects.len() < MAX_REASONS {
                reason
            } else {
                OTHER.to_owned()
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
    /// Whether an earlier row has an identity of this one. Fails if one would be rejected.
    fn check(&mut self, mapped: &MappedUser, columns: &Columns, line: i64) -> Result<bool, String> {
        let mut is_repeated = false;
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
            is_repeated |= match self.0.get(&hash) {
                Some(earlier) => *earlier != line,
                None if self.0.len() < MAX_COMPARED => {
                    self.0.insert(hash, line);
                    false
                }
                None => false,
            };
        }
        Ok(is_repeated)
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
        let inspection = inspect(|| Ok(&*bytes), Given::default()).unwrap();
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
        assert_eq!(inspection.rejects.values().map(|(count, _)| count).sum::<u64>(), 1);
        assert_eq!(inspection.repeats, (1, 6));
        assert_eq!(inspection.sample[1].1.as_ref().unwrap().user.display_name, "Jörg Groß");
        assert_eq!(inspection.columns[3].field, "email");
    }

    #[test]
    fn a_mapping_may_be_given() {
        let given = Given { maps: vec!["handle=Kundennr.".to_owned()], ..Given::default() };
        let inspection = inspect(|| Ok(CUSTOMERS.as_bytes()), given).unwrap();
        assert_eq!(inspection.encoding, "UTF-8");
        assert_eq!(inspection.columns[0].field, "handle");
    }

    #[test]
    fn values_that_are_not_understood_are_counted() {
        let rows = (0..200).map(|n| format!("a{n}@example.com,D,030 1234567,{}\n", n % 100));
        let text = format!("email,land,phone,vip\n{}", rows.collect::<String>());
        let maps = ["email=email", "phone=phone", "region=land", "attributes.vip:bool=vip"];
        let given = Given { maps: maps.map(str::to_owned).into(), ..Given::default() };
        let inspection = inspect(|| Ok(text.as_bytes()), given).unwrap();
        let [vip, land] = &*inspection.values else { panic!("{:?}", inspection.values) };
        let [vip, land] = if vip.column == "vip" { [vip, land] } else { [land, vip] };
        assert_eq!(land.rows, BTreeMap::from([("D".to_owned(), 200)]));
        // 0 and 1 are no and yes.
        assert_eq!((vip.rows.len(), vip.other_rows), (50, 200 - 4 - 100));
    }

    fn maps(text: &str) -> Vec<String> {
        inspect(|| Ok(text.as_bytes()), Given::default()).unwrap().map_file.maps()
    }

    /// One row after those from which columns are guessed makes a column one of texts.
    #[test]
    fn the_whole_file_decides_on_numbers() {
        let rows = |last: &str| {
            let mut text = "number,amount\n".to_owned();
            (1..=GUESSED_ROWS + 1).for_each(|n| text += &format!("{n},{n}\n"));
            text + last
        };
        for (last, wanted) in [
            ("7,7\n", ["attributes.amount:int=amount", "attributes.number:int=number"]),
            ("007,7.5\n", ["attributes.amount:double=amount", "attributes.number=number"]),
            (
                "4000000000000001,7.0\n",
                ["attributes.amount:int=amount", "attributes.number=number"],
            ),
        ] {
            assert_eq!(maps(&rows(last)), wanted, "{last}");
        }
        let inspection = inspect(|| Ok(Cursor::new(rows("007,7.5\n"))), Given::default());
        let inspection = inspection.unwrap();
        assert_eq!((inspection.rows, inspection.rejects.len()), (GUESSED_ROWS as u64 + 2, 0));
    }

    /// Tables with the mappings that they need.
    const TABLES: &[(&str, &[&str])] = &[
        // Outlook.
        (
            "First Name,Middle Name,Last Name,E-mail Address,E-mail 2 Address,Business Phone,\
                 Business Fax,Company Main Phone,Home Country/Region,Business Country/Region\n\
                 Ann,B.,Lee,a@example.com,b@example.com,4155552671,4155552672,4155552673,US,US\n",
            &[
                "attributes.business_country_region=Business Country/Region",
                "attributes.business_fax=Business Fax",
                "attributes.company_main_phone=Company Main Phone",
                "display_name=First Name+Middle Name+Last Name",
                "email=E-mail Address",
                "email=E-mail 2 Address",
                "phone=Business Phone",
                "region=Home Country/Region",
            ],
        ),
        // Google, with a whole name beside its parts.
        (
            "Name,Given Name,Family Name,E-mail 1 - Value,Phone 1 - Value\n\
                 Ann Lee,Ann,Lee,a@example.com,4155552671\n",
            &[
                "display_name=Given Name+Family Name",
                "email=E-mail 1 - Value",
                "phone=Phone 1 - Value",
            ],
        ),
        // Entra: a state is a part of an address.
        (
            "displayName,userPrincipalName,objectId,state,mobilePhone,usageLocation\n\
                 Ann Lee,ann@example.com,7f3c,Bayern,01711234567,DE\n",
            &[
                "attributes.objectid=objectId",
                "attributes.state=state",
                "display_name=displayName",
                "email=userPrincipalName",
                "phone=mobilePhone",
                "region=usageLocation",
            ],
        ),
        // Salesforce: its ids are others.
        (
            "User ID,FirstName,LastName,Email,MobilePhone,MailingCountry\n\
                 1047,Ann,Lee,ann@example.com,4155552671,US\n",
            &[
                "attributes.user_id:int=User ID",
                "display_name=FirstName+LastName",
                "email=Email",
                "phone=MobilePhone",
                "region=MailingCountry",
            ],
        ),
        (
            "Nome,Sobrenome,Telefone,País\nAna,Silva,21 2345-6789,Brasil\n",
            &["display_name=Nome+Sobrenome", "phone=Telefone", "region=País"],
        ),
        (
            "Voornaam,Tussenvoegsel,Achternaam,Telefoon\nJan,van,Dijk,020 1234567\n",
            &["display_name=Voornaam+Tussenvoegsel+Achternaam", "phone=Telefoon"],
        ),
        (
            "Förnamn,Efternamn,E-post\nEva,Berg,eva@example.com\n",
            &["display_name=Förnamn+Efternamn", "email=E-post"],
        ),
        (
            "Keresztnév,Vezetéknév,Telefonszám\nAnna,Nagy,06 1 234 5678\n",
            &["display_name=Vezetéknév+Keresztnév", "phone=Telefonszám"],
        ),
        (
            "名,姓,電話番号,メールアドレス\n太郎,山田,03-1234-5678,taro@example.com\n",
            &["display_name=姓+名", "email=メールアドレス", "phone=電話番号"],
        ),
        (
            "姓名,手机号码,邮箱\n王小明,13812345678,wang@example.com\n",
            &["display_name=姓名", "email=邮箱", "phone=手机号码"],
        ),
        ("이름,성,휴대폰\n민수,김,010-1234-5678\n", &["display_name=성+이름", "phone=휴대폰"]),
        // Names of East Asia below English headers.
        ("First Name,Last Name\n太郎,山田\n花子,佐藤\n", &["display_name=Last Name+First Name"]),
    ];

    #[test]
    fn files_of_programs_and_languages_are_understood() {
        for (text, wanted) in TABLES {
            assert_eq!(maps(text), *wanted, "{text}");
        }
    }
}
