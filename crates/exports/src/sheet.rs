//! The tables of Okta and Microsoft Entra: CSV whose columns are known by their names.

use std::io::Read;

use polynym_proto::time;
use polynym_proto::v1::User;
use polynym_table::{Row, Table, region, without_marks};

use crate::format::ExportFormat;
use crate::notes::Notes;
use crate::person::Person;
use crate::users::{Entry, ReadOptions, Users};

/// The content of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    Id,
    Login,
    Email,
    /// Several addresses.
    Emails,
    Phone,
    Region,
    /// The parts of the name, which are attributes as well.
    GivenName,
    FamilyName,
    DisplayName,
    Status,
    /// Whether the account is enabled.
    Enabled,
    Created,
    Updated,
    /// An attribute with the name of the column.
    Attribute,
}

/// The columns of Okta, without `profile.`, spaces and capital letters.
const OKTA: [(&str, Role); 21] = [
    ("id", Role::Id),
    ("userid", Role::Id),
    ("login", Role::Login),
    ("username", Role::Login),
    ("oktausername", Role::Login),
    ("email", Role::Email),
    ("primaryemail", Role::Email),
    ("secondemail", Role::Email),
    ("secondaryemail", Role::Email),
    ("mobilephone", Role::Phone),
    ("primaryphone", Role::Phone),
    ("countrycode", Role::Region),
    ("firstname", Role::GivenName),
    ("lastname", Role::FamilyName),
    ("displayname", Role::DisplayName),
    ("status", Role::Status),
    ("userstatus", Role::Status),
    ("created", Role::Created),
    ("createddate", Role::Created),
    ("lastupdated", Role::Updated),
    ("lastupdateddate", Role::Updated),
];

/// The columns of Entra, in small letters.
const ENTRA: [(&str, Role); 17] = [
    ("objectid", Role::Id),
    ("id", Role::Id),
    ("userprincipalname", Role::Login),
    ("mail", Role::Email),
    ("alternateemailaddress", Role::Emails),
    ("othermails", Role::Emails),
    ("mobile", Role::Phone),
    ("mobilephone", Role::Phone),
    ("telephonenumber", Role::Phone),
    ("businessphones", Role::Phone),
    ("usagelocation", Role::Region),
    ("country", Role::Region),
    ("givenname", Role::GivenName),
    ("surname", Role::FamilyName),
    ("displayname", Role::DisplayName),
    ("accountenabled", Role::Enabled),
    ("createddatetime", Role::Created),
];

/// The names of a format's attributes: the id, and the name to sign in.
const OKTA_NAMES: [&str; 2] = ["okta_id", "okta_login"];
const ENTRA_NAMES: [&str; 2] = ["entra_object_id", "entra_user_principal_name"];
/// The states of Okta, with underscores: those in which nobody can sign in any more, and others.
const DISABLED: [&str; 5] = ["SUSPENDED", "DEPROVISIONED", "DELETED", "DEACTIVATED", "INACTIVE"];
const ENABLED: [&str; 11] = [
    "ACTIVE",
    "STAGED",
    "PROVISIONED",
    "PENDING_ACTIVATION",
    "PENDING_USER_ACTION",
    "RECOVERY",
    "PASSWORD_RECOVERY",
    "PASSWORD_RESET",
    "PASSWORD_EXPIRED",
    "LOCKED_OUT",
    "LOCKED",
];
/// A part of the names of guests in Entra, which are no addresses.
const GUEST: &str = "#EXT#";

/// The rows of a table.
pub struct Sheet<R: Read> {
    table: Table<R>,
    format: ExportFormat,
    /// The content of each column.
    roles: Vec<Role>,
    region: String,
    notes: Notes,
}

/// The content of the columns with these names.
fn roles<'h>(format: ExportFormat, header: impl Iterator<Item = &'h str>) -> Vec<Role> {
    let known = if format == ExportFormat::Okta { &OKTA[..] } else { &ENTRA[..] };
    let role = |name: &str| {
        let name = name.to_lowercase();
        let name = name.trim().strip_prefix("profile.").unwrap_or(name.trim()).to_owned();
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let found = known.iter().find(|(own, _)| *own == plain);
        found.map_or(Role::Attribute, |(_, role)| role.clone())
    };
    header.map(role).collect()
}

/// Whether a header is one of this format, and of no other program.
pub fn is_header(format: ExportFormat, header: &[&str]) -> bool {
    let has = |names: &[&str]| {
        names.iter().all(|name| {
            header.iter().any(|own| {
                let own = own.trim().to_lowercase();
                own.strip_prefix("profile.").unwrap_or(&own) == *name
            })
        })
    };
    match format {
        ExportFormat::Okta => has(&["login", "firstname", "lastname", "email", "secondemail"]),
        ExportFormat::Entra => {
            has(&["userprincipalname", "objectid"]) || has(&["userprincipalname", "id"])
        }
        _ => false,
    }
}

impl<R: Read> Sheet<R> {
    /// Opens a table.
    ///
    /// # Errors
    /// It cannot be read, or lacks the columns: in words.
    pub fn open(format: ExportFormat, reader: R, options: &ReadOptions) -> Result<Self, String> {
        let table = Table::open(reader, options.encoding, None)?;
        let roles = roles(format, table.header.iter());
        if !roles.contains(&Role::Login) {
            let (words, column) = match format {
                ExportFormat::Okta => (format.words(), "login"),
                _ => (format.words(), "userPrincipalName"),
            };
            return Err(format!(
                "{words} has a column {column}, and this has none: with --format csv, --map says \
                 what its columns are"
            ));
        }
        let (region, mut notes) = (options.region.clone(), Notes::default());
        if !roles.iter().any(|role| matches!(role, Role::Status | Role::Enabled)) {
            notes.no_state(if format == ExportFormat::Okta { "status" } else { "accountEnabled" });
        }
        Ok(Self { table, format, roles, region, notes })
    }

    /// The user of a row.
    fn user(&mut self, row: &Row) -> Result<User, String> {
        let is_okta = self.format == ExportFormat::Okta;
        let names = if is_okta { OKTA_NAMES } else { ENTRA_NAMES };
        let mut person = Person::new(self.format.name(), &self.region, &mut self.notes);
        let cells: Vec<_> = row.cells.iter().map(|cell| without_marks(cell).into_owned()).collect();
        let with = |role: Role| {
            let both = self.roles.iter().zip(&cells);
            both.filter(move |(own, _)| **own == role).map(|(_, cell)| &**cell)
        };
        if let Some(known) = with(Role::Region).find_map(region) {
            known.clone_into(&mut person.region);
        }
        for name in with(Role::DisplayName) {
            person.display_name(name);
            person.display_name_differs("display names", name);
        }
        let parts = [Role::GivenName, Role::FamilyName].map(|part| with(part).collect::<String>());
        person.display_name(&parts.join(" "));
        let header = &self.table.header;
        for ((role, cell), column) in self.roles.iter().zip(&cells).zip(header) {
            if !cell.trim().is_empty() {
                read(&mut person, role, (column, cell.trim()), names);
            }
        }
        person.finish()
    }
}

/// Reads a cell.
fn read(
    person: &mut Person<'_>,
    role: &Role,
    (column, cell): (&str, &str),
    names: [&'static str; 2],
) {
    let [id, login] = names;
    match role {
        Role::Id => person.own(id, cell),
        Role::Login if cell.contains(GUEST) => {
            person.notes.kept.add(login);
            person.own(login, cell);
        }
        Role::Login => person.login(login, cell),
        Role::Email => {
            person.email(cell);
        }
        Role::Emails => {
            let emails =
                cell.split([';', ',']).map(|email| email.trim_matches(['[', ']', '"', ' ']));
            for email in emails.filter(|email| !email.is_empty()) {
                person.email(email);
            }
        }
        Role::Phone => {
            person.phone(cell.trim_matches(['[', ']', '"', ' ']));
        }
        Role::Status => status(person, column, cell),
        Role::Enabled => match cell.to_lowercase().parse::<bool>() {
            Ok(is_enabled) => person.set_disabled(!is_enabled),
            Err(_) => person.unknown_state(column),
        },
        Role::Created => match time::parse(cell) {
            Some(time) => person.user.create_time = Some(time),
            None => person.text(column, cell),
        },
        Role::Updated => match time::parse(cell) {
            Some(time) => person.user.update_time = Some(time),
            None => person.text(column, cell),
        },
        Role::DisplayName => {}
        Role::GivenName => person.own("given_name", cell),
        Role::FamilyName => person.own("family_name", cell),
        Role::Region | Role::Attribute => person.text(column.trim(), cell),
    }
}

/// Reads the state of Okta.
fn status(person: &mut Person<'_>, column: &str, cell: &str) {
    let state = cell.to_uppercase().replace([' ', '-'], "_");
    match (DISABLED.contains(&&*state), ENABLED.contains(&&*state)) {
        (false, false) => person.unknown_state(column),
        (is_disabled, _) => person.set_disabled(is_disabled),
    }
    person.own("okta_status", cell);
}

impl<R: Read> Users for Sheet<R> {
    fn next_user(&mut self) -> Result<Option<Entry>, String> {
        while let Some(mut row) = self.table.rows.next_row()? {
            if row.is_blank() {
                continue;
            }
            let user = match row.error.take() {
                Some(error) => Err(error),
                None => self.user(&row),
            };
            return Ok(Some(Entry { line: row.line, bytes: row.bytes, user }));
        }
        Ok(None)
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }
}
