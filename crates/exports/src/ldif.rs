//! LDIF (RFC 2849): the entries of people, of `inetOrgPerson` or of Active Directory.

mod states;

use std::collections::BTreeMap;
use std::io::BufRead;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polynym_proto::v1::User;
use prost_types::Timestamp;

use crate::notes::{Notes, is_secret};
use crate::person::Person;
use crate::times;
use crate::unfolded::{LINE_COST, Unfolded, UnfoldedLines};
use crate::users::{Entry, Users};

/// The limits of an entry.
const MAX_ENTRY_BYTES: usize = 4 << 20;

/// The classes of people, and those of other things that have one of these, too.
const PEOPLE: [&str; 7] = [
    "account",
    "inetorgperson",
    "inetuser",
    "organizationalperson",
    "person",
    "posixaccount",
    "user",
];
const MACHINES: [&str; 2] = ["computer", "msds-groupmanagedserviceaccount"];
/// The attributes by which an entry without classes is a person.
const NAMES: [&str; 4] = ["mail", "samaccountname", "uid", "userprincipalname"];
/// The attributes that are left out: those of the server itself, memberships, and binary values.
const LEFT_OUT: [&str; 33] = [
    "audio",
    "badpwdcount",
    "codepage",
    "countrycode",
    "creatorsname",
    "dscorepropagationdata",
    "entrycsn",
    "entrydn",
    "hassubordinates",
    "instancetype",
    "jpegphoto",
    "lastlogoff",
    "lastlogon",
    "lastlogontimestamp",
    "logoncount",
    "memberof",
    "modifiersname",
    "numsubordinates",
    "objectcategory",
    "objectsid",
    "photo",
    "primarygroupid",
    "pwdlastset",
    "samaccounttype",
    "showinaddressbook",
    "subschemasubentry",
    "thumbnailphoto",
    "usercertificate",
    "usersmimecertificate",
    "usnchanged",
    "usncreated",
    "userpkcs12",
    "x500uniqueidentifier",
];
/// The attributes that say nothing about a person.
const FORM: [&str; 5] =
    ["changetype", "control", "objectclass", "structuralobjectclass", "version"];
/// The records with which a command ends its output.
const ENDS: [&str; 4] = ["search", "result", "ref", "version"];

/// The entries of a file.
pub struct Entries<R> {
    lines: UnfoldedLines<R>,
    region: String,
    notes: Notes,
}

/// The lines of an entry.
#[derive(Default)]
struct Record {
    /// The number of its first line, and its bytes.
    line: i64,
    bytes: usize,
    /// The values by the name in small letters, with the name as written.
    values: BTreeMap<String, (String, Vec<Vec<u8>>)>,
    /// Values that are too long or in other files, by name.
    missing: Vec<String>,
    /// Whether it has a name.
    has_dn: bool,
    error: Option<String>,
}

impl<R: BufRead> Entries<R> {
    /// The entries of a reader.
    pub fn new(reader: R, region: &str) -> Self {
        let (lines, region) = (UnfoldedLines::new(reader), region.to_owned());
        Self { lines, region, notes: Notes::default() }
    }

    /// The next record; none at the end. `bytes` counts what is before it.
    fn record(&mut self, mut bytes: usize) -> Result<Option<Record>, String> {
        let mut record = Record::default();
        while let Some(line) = self.lines.next_line()? {
            bytes += line.bytes;
            match line.text.first() {
                None if line.is_cut => record.add(&line),
                None if record.line > 0 => break,
                None | Some(b'#') => {}
                Some(_) => record.add(&line),
            }
        }
        record.bytes = bytes;
        Ok((record.line > 0).then_some(record))
    }

    /// The user of a record; none if it is about something else.
    fn user(&mut self, record: &mut Record) -> Option<Result<User, String>> {
        if let Some(error) = record.error.take() {
            return Some(Err(error));
        }
        let change = record.text("changetype").unwrap_or_default().to_lowercase();
        if !matches!(&*change, "" | "add") {
            self.notes.leave_out(&format!("changes of the kind {change}"));
            return None;
        }
        if !record.has_dn {
            let is_end = record.values.keys().all(|name| ENDS.contains(&&**name));
            let advice = "an entry begins with its dn: correct the file's source".to_owned();
            return (!is_end).then_some(Err(advice));
        }
        let classes = record.texts("objectclass");
        if let Some(error) = record.error.take() {
            return Some(Err(error));
        }
        let has =
            |names: &[&str]| classes.iter().any(|class| names.contains(&&*class.to_lowercase()));
        let is_person = match classes.last() {
            Some(_) => has(&PEOPLE) && !has(&MACHINES),
            None => NAMES.iter().any(|name| record.values.contains_key(*name)),
        };
        if !is_person {
            let last = classes.last().map_or("an unknown class", String::as_str);
            self.notes.leave_out(&format!("entries of {last}"));
            return None;
        }
        if states::is_deleted(record) {
            self.notes.leave_out("entries that are deleted");
            return None;
        }
        let mut person = Person::new("ldif", &self.region, &mut self.notes);
        record.read(&mut person);
        if let Some(error) = record.error.take() {
            person.fail(error);
        }
        Some(person.finish())
    }
}

impl<R: BufRead> Users for Entries<R> {
    fn next_user(&mut self) -> Result<Option<Entry>, String> {
        let mut before = 0;
        while let Some(mut record) = self.record(before)? {
            if let Some(user) = self.user(&mut record) {
                return Ok(Some(Entry { line: record.line, bytes: record.bytes, user }));
            }
            before = record.bytes;
        }
        Ok(None)
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }
}

impl Record {
    fn add(&mut self, line: &Unfolded) {
        if self.line == 0 {
            self.line = line.line;
        }
        self.bytes += line.text.len() + LINE_COST;
        if self.bytes > MAX_ENTRY_BYTES {
            self.values = BTreeMap::new();
            let mib = MAX_ENTRY_BYTES >> 20;
            self.error.get_or_insert(format!("the entry has more than {mib} MiB"));
        }
        if self.error.is_some() || line.text == b"-" {
            return;
        }
        let parsed = parse(line);
        if let Ok((name, _)) = &parsed
            && name.eq_ignore_ascii_case("dn")
        {
            self.dn(line.line);
        }
        match parsed {
            Ok((name, Some(value))) => {
                let entry = self.values.entry(name.to_lowercase());
                entry.or_insert_with(|| (name, Vec::new())).1.push(value);
            }
            Ok((name, None)) => self.missing.push(name),
            Err(error) => self.error = Some(error),
        }
    }

    /// Notes the name of the entry: it has one, at its beginning. Otherwise the values of two
    /// entries are mixed.
    fn dn(&mut self, line: i64) {
        let is_first = self.values.keys().all(|name| ENDS.contains(&&**name));
        if self.has_dn || !is_first {
            let first = self.line;
            self.error.get_or_insert(format!(
                "line {line}: a dn within the entry that begins in line {first}: a blank line is \
                 missing before it"
            ));
        }
        self.has_dn = true;
    }

    /// Takes the texts of a name. The entry has an error if one is no text.
    fn texts(&mut self, name: &str) -> Vec<String> {
        let (written, values) = self.values.remove(name).unwrap_or_default();
        let texts: Result<Vec<_>, _> = values.into_iter().map(String::from_utf8).collect();
        texts.unwrap_or_else(|_| {
            let advice = "export the file as UTF-8, or name its encoding by --encoding";
            self.error.get_or_insert(format!("{written} is not UTF-8: {advice}"));
            Vec::new()
        })
    }

    /// Takes the first text of a name. Further ones are counted.
    fn text(&mut self, name: &str) -> Option<String> {
        let written = self.values.get(name).map(|(written, _)| written.clone())?;
        let mut texts = self.texts(name).into_iter().filter(|text| !text.trim().is_empty());
        let first = texts.next();
        self.missing.extend(texts.map(|_| written.clone()));
        first
    }

    /// Takes a time. One that is not understood is counted.
    fn time(&mut self, name: &str) -> Option<Timestamp> {
        let text = self.text(name)?;
        let time = times::from_digits(&text);
        if time.is_none() {
            self.missing.push(name.to_owned());
        }
        time
    }

    /// Reads the values of a person.
    fn read(&mut self, person: &mut Person<'_>) {
        for (created, updated) in
            [("createtimestamp", "modifytimestamp"), ("whencreated", "whenchanged")]
        {
            let [created, updated] = [created, updated].map(|name| self.time(name));
            person.user.create_time = person.user.create_time.or(created);
            person.user.update_time = person.user.update_time.or(updated);
        }
        self.ids(person);
        self.identities(person);
        person.display_name(&self.text("displayname").unwrap_or_default());
        let common = self.text("cn").unwrap_or_default();
        person.display_name(&common);
        if common.trim() != person.user.display_name {
            person.own("cn", &common);
        }
        let first = |key: &str| {
            let (_, values) = self.values.get(key)?;
            std::str::from_utf8(values.first()?).ok()
        };
        let parts = [first("givenname"), first("sn")].map(Option::unwrap_or_default);
        person.display_name(&parts.join(" "));
        states::read(self, person);
        self.rest(person);
        self.missing.drain(..).for_each(|name| person.notes.leave_out(&name));
    }

    fn ids(&mut self, person: &mut Person<'_>) {
        let (_, guids) = self.values.remove("objectguid").unwrap_or_default();
        match (guids.first().map(guid), guids.len()) {
            (None, _) => {}
            (Some(Some(guid)), 1) => person.own("ldap_object_guid", &guid),
            _ => person.notes.leave_out("objectGUID"),
        }
        for (key, name) in [
            ("dn", "ldap_dn"),
            ("entryuuid", "ldap_entry_uuid"),
            ("ipauniqueid", "ldap_ipa_unique_id"),
            ("nsuniqueid", "ldap_ns_unique_id"),
        ] {
            person.own(name, &self.text(key).unwrap_or_default());
        }
    }

    fn identities(&mut self, person: &mut Person<'_>) {
        for mail in self.texts("mail").iter().chain(&self.texts("email")) {
            person.email(mail);
        }
        for address in self.texts("proxyaddresses") {
            match address.split_once(':') {
                Some((kind, mail)) if kind.eq_ignore_ascii_case("smtp") => {
                    let n = person.email(mail);
                    if kind == "SMTP" {
                        person.make_primary(n);
                    }
                }
                _ => person.notes.leave_out("proxyAddresses that are no email"),
            }
        }
        for (key, name) in [
            ("uid", "ldap_uid"),
            ("samaccountname", "ldap_account_name"),
            ("userprincipalname", "ldap_user_principal_name"),
        ] {
            self.texts(key).iter().for_each(|text| person.login(name, text));
        }
        for number in self.texts("mobile").iter().chain(&self.texts("telephonenumber")) {
            person.phone(number);
        }
    }

    /// Keeps the other values as attributes, or counts them.
    fn rest(&mut self, person: &mut Person<'_>) {
        for (key, (name, values)) in std::mem::take(&mut self.values) {
            if FORM.contains(&&*key) {
                continue;
            }
            let is_binary = key.ends_with(";binary");
            let base = key.split(';').next().unwrap_or_default();
            if is_secret(base) || is_binary || LEFT_OUT.contains(&base) {
                person.notes.leave_out(&name);
                continue;
            }
            let texts: Result<Vec<_>, _> = values.into_iter().map(String::from_utf8).collect();
            match texts {
                Ok(texts) => person.texts(&name, texts),
                Err(_) => person.notes.leave_out(&name),
            }
        }
    }
}

/// The name and the value of a line; no value if it is too long, or in another file.
fn parse(line: &Unfolded) -> Result<(String, Option<Vec<u8>>), String> {
    let number = line.line;
    let wrong = || match line.is_cut {
        true => format!("line {number} is too long: export the entry without it, or wrap lines"),
        false => format!("line {number}: a line of LDIF is NAME: VALUE; correct its source"),
    };
    let colon = line.text.iter().position(|byte| *byte == b':').ok_or_else(wrong)?;
    let (name, value) = line.text.split_at(colon);
    let name = str::from_utf8(name).map_err(|_| wrong())?.trim();
    if name.is_empty() {
        return Err(wrong());
    }
    let value = &value[1..];
    let value = match value.first() {
        _ if line.is_cut => None,
        Some(b'<') => None,
        Some(b':') => {
            let decoded = STANDARD.decode(value[1..].trim_ascii());
            Some(decoded.map_err(|_| {
                format!("line {number}: {name} is not base64: the file may have been cut off")
            })?)
        }
        _ => Some(value.trim_ascii().to_vec()),
    };
    Ok((name.to_owned(), value))
}

/// The text form of an id of Active Directory, whose first three parts have their bytes reversed.
fn guid(bytes: &Vec<u8>) -> Option<String> {
    let bytes: [u8; 16] = bytes.as_slice().try_into().ok()?;
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let hex: String = order.iter().map(|n| format!("{:02x}", bytes[*n])).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Some(parts.join("-"))
}
