//! vCards 3.0 (RFC 2426) and 4.0 (RFC 6350).

mod property;

use std::io::BufRead;

use polynym_proto::time;
use polynym_proto::v1::User;

use crate::notes::Notes;
use crate::person::Person;
use crate::times;
use crate::unfolded::{LINE_COST, UnfoldedLines};
use crate::users::{Entry, Users};
use property::Property;

/// The limit of a card.
const MAX_CARD_BYTES: usize = 4 << 20;

/// The scheme of an email in the form of an address of the web.
const MAILTO: &str = "mailto:";
/// Numbers of machines.
const NO_VOICE: [&str; 5] = ["fax", "pager", "modem", "bbs", "textphone"];
/// The properties that are kept as attributes.
const KEPT: [&str; 16] = [
    "ADR",
    "ANNIVERSARY",
    "BDAY",
    "CATEGORIES",
    "GENDER",
    "GEO",
    "IMPP",
    "LANG",
    "NICKNAME",
    "NOTE",
    "ORG",
    "RELATED",
    "ROLE",
    "TITLE",
    "TZ",
    "URL",
];
/// The properties that say nothing about the person.
const FORM: [&str; 5] = ["PRODID", "CLIENTPIDMAP", "SORT-STRING", "X-ABLABEL", "X-ABADR"];

/// The cards of a file.
pub struct Cards<R> {
    lines: UnfoldedLines<R>,
    region: String,
    notes: Notes,
}

/// A card.
#[derive(Default)]
struct Card {
    line: i64,
    bytes: usize,
    size: usize,
    properties: Vec<Property>,
    /// The names of properties that are too long.
    missing: Vec<String>,
    error: Option<String>,
}

impl<R: BufRead> Cards<R> {
    /// The cards of a reader.
    pub fn new(reader: R, region: &str) -> Self {
        let (lines, region) = (UnfoldedLines::new(reader), region.to_owned());
        Self { lines, region, notes: Notes::default() }
    }

    /// The next card; none at the end. `bytes` counts what is before it.
    fn card(&mut self, bytes: usize) -> Result<Option<Card>, String> {
        let mut card = Card { bytes, ..Card::default() };
        while let Some(line) = self.lines.next_line()? {
            card.bytes += line.bytes;
            if line.text.trim_ascii().is_empty() && !line.is_cut {
                continue;
            }
            let is = |text: &[u8]| line.text.trim_ascii().eq_ignore_ascii_case(text);
            if card.line == 0 {
                if !is(b"BEGIN:VCARD") {
                    let n = line.line;
                    return Err(format!("line {n}: a card begins with BEGIN:VCARD; correct it"));
                }
                card.line = line.line;
            } else if is(b"END:VCARD") {
                return Ok(Some(card));
            } else if is(b"BEGIN:VCARD") {
                let n = line.line;
                card.error.get_or_insert(format!("line {n}: a card begins within this one"));
            } else {
                card.size += line.text.len() + LINE_COST;
                card.add(Property::parse(&line), line.is_cut);
            }
        }
        if card.line == 0 {
            return Ok(None);
        }
        let advice = "the card has no END:VCARD: the file was cut off; export it again";
        card.error = Some(advice.to_owned());
        Ok(Some(card))
    }

    /// The user of a card; none if it is about something else.
    fn user(&mut self, card: &mut Card) -> Option<Result<User, String>> {
        if let Some(error) = card.error.take() {
            return Some(Err(error));
        }
        match card.value("VERSION").as_deref().map(str::trim) {
            Some("3.0" | "4.0") => {}
            Some(other) => {
                let other: String = other.chars().take(10).collect();
                let advice = "export the cards as 3.0 or 4.0";
                return Some(Err(format!("vCard {other} is not read: {advice}")));
            }
            None => return Some(Err("the card has no VERSION: export it again".to_owned())),
        }
        let kind = card.value("KIND").or_else(|| card.value("X-ADDRESSBOOKSERVER-KIND"));
        let kind = kind.unwrap_or_default().to_lowercase();
        if !matches!(&*kind, "" | "individual") {
            self.notes.leave_out(&format!("cards of the kind {kind}"));
            return None;
        }
        let mut person = Person::new("vcard", &self.region, &mut self.notes);
        card.missing.drain(..).for_each(|name| person.notes.leave_out(&name));
        read(std::mem::take(&mut card.properties), &mut person);
        Some(person.finish())
    }
}

impl<R: BufRead> Users for Cards<R> {
    fn next_user(&mut self) -> Result<Option<Entry>, String> {
        let mut before = 0;
        while let Some(mut card) = self.card(before)? {
            if let Some(user) = self.user(&mut card) {
                return Ok(Some(Entry { line: card.line, bytes: card.bytes, user }));
            }
            before = card.bytes;
        }
        Ok(None)
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }
}

impl Card {
    fn add(&mut self, property: Result<Property, String>, is_cut: bool) {
        if self.size > MAX_CARD_BYTES {
            self.properties = Vec::new();
            self.error.get_or_insert("the card has more than 4 MiB".to_owned());
        }
        if self.error.is_some() {
            return;
        }
        match property {
            Ok(property) if is_cut => self.missing.push(property.name),
            Ok(property) => self.properties.push(property),
            Err(error) => self.error = Some(error),
        }
    }

    /// Takes the value of a property.
    fn value(&mut self, name: &str) -> Option<String> {
        let n = self.properties.iter().position(|property| property.name == name)?;
        Some(self.properties.remove(n).text())
    }
}

/// Reads the properties of a person.
fn read(properties: Vec<Property>, person: &mut Person<'_>) {
    let mut kept: Vec<(String, Vec<String>)> = Vec::new();
    let mut keep = |name: String, text: String| match kept.iter_mut().find(|(own, _)| *own == name)
    {
        _ if text.trim().is_empty() => {}
        Some((_, texts)) => texts.push(text),
        None => kept.push((name, vec![text])),
    };
    let mut parts = Vec::new();
    for property in properties {
        let name = property.name.clone();
        match &*name {
            "FN" => {
                person.display_name(&property.text());
                person.display_name_differs("further FN", &property.text());
            }
            "N" => parts = property.parts(),
            "UID" => person.own("vcard_uid", &property.text()),
            "REV" => rev(&property.text(), person),
            "EMAIL" => email(&property, person),
            "TEL" => match property.types().find(|own| NO_VOICE.contains(&&**own)) {
                Some(kind) => keep(kind, property.text()),
                None => phone(&property, person),
            },
            "X-SOCIALPROFILE" | "SOCIALPROFILE" if property.text().starts_with("http") => {
                person.url(&property.text());
            }
            "ADR" | "ORG" => keep(name.to_lowercase(), property.joined()),
            name if KEPT.contains(&name) => keep(name.to_lowercase(), property.text()),
            name if FORM.contains(&name) => {}
            name => person.notes.leave_out(name),
        }
    }
    if parts.iter().skip(2).any(|part| !part.trim().is_empty()) {
        person.notes.left_out.add("further parts of N");
    }
    if let [family, given, ..] = &*parts {
        person.display_name(&format!("{} {}", given.trim(), family.trim()));
        person.own("given_name", given);
        person.own("family_name", family);
    }
    kept.into_iter().for_each(|(name, texts)| person.texts(&name, texts));
}

/// The time of the last change.
fn rev(text: &str, person: &mut Person<'_>) {
    let time = time::parse(text.trim()).or_else(|| times::from_digits(text.trim()));
    match time {
        Some(_) => person.user.update_time = time,
        None => person.notes.leave_out("REV without an offset"),
    }
}

fn email(property: &Property, person: &mut Person<'_>) {
    let text = property.text();
    let text = text.trim();
    let (scheme, rest) = text.split_at_checked(MAILTO.len()).unwrap_or_default();
    let n = person.email(if scheme.eq_ignore_ascii_case(MAILTO) { rest } else { text });
    if property.is_preferred() {
        person.make_primary(n);
    }
}

fn phone(property: &Property, person: &mut Person<'_>) {
    let n = person.phone(&property.text());
    if property.is_preferred() {
        person.make_primary(n);
    }
}
