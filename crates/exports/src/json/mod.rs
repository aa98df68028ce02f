//! Files of JSON: the users of a list, one after another.

mod elements;
mod object;
mod scanner;

use std::collections::BTreeMap;
use std::io::{BufRead, Chain, Cursor, Read};

use polynym_lines::{Lines, UniqueValue};
use polynym_proto::v1::User;
use serde_json::Value;

use crate::guess::{HEAD_BYTES, keys};
use crate::notes::Notes;
use crate::person::Person;
use crate::users::{Entry, Users};
use elements::{Element, Elements, MAX_USER_BYTES, next_line};
pub use object::Object;

/// The place of the users in a format, and the reader of one user.
pub struct Shape {
    /// The name of the format.
    pub source: &'static str,
    /// The keys of the lists of users in an object.
    pub lists: &'static [&'static str],
    /// Whether each line is a user, unless the file is a list.
    pub is_lines: bool,
    /// Keys of users, by which a file that is a sequence of them is known.
    pub of_users: &'static [&'static str],
    /// A key of what has the users, which an element must not be, and what to do then.
    pub container: Option<(&'static str, &'static str)>,
    /// The field that says whether a user is disabled, if its absence from a file is told.
    pub state: &'static str,
    /// The key of the object in which each provider has its `alias` and its kind, `providerId`.
    pub providers: &'static str,
    /// The name under which other keys of the object are counted; empty for their own.
    pub outside: &'static str,
    /// The advice if there is no list.
    pub advice: &'static str,
    /// Reads a user. Returns false for what is no person, and fails if it is no user: in words.
    pub read: fn(Object, &mut Person<'_>) -> Result<bool, String>,
}

/// The users of a file of JSON.
pub struct JsonUsers<R> {
    source: Source<R>,
    shape: &'static Shape,
    region: String,
    line: i64,
    notes: Notes,
    /// The kinds of providers by the names that somebody chose.
    kinds: BTreeMap<String, String>,
    /// Whether there was a user, and whether one had a state.
    has_users: bool,
    has_state: bool,
}

/// A reader whose first bytes were looked at.
type Headed<R> = Chain<Cursor<Vec<u8>>, R>;

/// The kinds of the providers in a list, by their aliases.
fn kinds(content: &[u8]) -> BTreeMap<String, String> {
    let providers: Vec<Value> = serde_json::from_slice(content).unwrap_or_default();
    let text = |provider: &Value, key: &str| Some(provider.get(key)?.as_str()?.to_owned());
    let kind = |provider: &Value| Some((text(provider, "alias")?, text(provider, "providerId")?));
    providers.iter().filter_map(kind).collect()
}

/// The place of the users in the file.
enum Source<R> {
    /// In a list.
    List(Elements<R>),
    /// In lines.
    Lines(Lines<R>),
}

impl<R: BufRead> JsonUsers<Headed<R>> {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read: in words.
    pub fn open(mut reader: R, shape: &'static Shape, region: &str) -> Result<Self, String> {
        let mut head = Vec::new();
        let read = reader.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head);
        read.map_err(|error| error.to_string())?;
        let start = head.trim_ascii_start();
        let is_lines = shape.is_lines && !start.starts_with(b"[");
        let is_sequence = start.starts_with(b"{") && {
            let [outer, ..] = keys(start);
            shape.of_users.iter().any(|key| outer.contains(*key))
        };
        let reader = Cursor::new(head).chain(reader);
        let source = match is_lines {
            true => Source::Lines(Lines::new(reader)),
            false if is_sequence => Source::List(Elements::sequence(reader)),
            false => Source::List(Elements::new(reader, shape.lists, shape.providers)),
        };
        let (region, notes) = (region.to_owned(), Notes::default());
        let (has_users, has_state) = (false, false);
        let kinds = BTreeMap::new();
        Ok(Self { source, shape, region, line: 0, notes, kinds, has_users, has_state })
    }
}

impl<R: BufRead> JsonUsers<R> {
    fn next_element(&mut self) -> Result<Option<Element>, String> {
        let elements = match &mut self.source {
            Source::Lines(lines) => return next_line(lines),
            Source::List(elements) => elements,
        };
        let element = elements.next()?;
        if let Some(content) = elements.providers.take() {
            self.kinds = kinds(&content);
        }
        let outside = self.shape.outside;
        for key in elements.other_keys.drain(..) {
            self.notes.leave_out(if outside.is_empty() { &key } else { outside });
        }
        if element.is_none() && !elements.has_list {
            return Err(self.shape.advice.to_owned());
        }
        Ok(element)
    }

    /// The object of an element.
    fn object(&self, content: Result<Vec<u8>, usize>) -> Result<Object, String> {
        let content = content.map_err(|size| {
            let mib = MAX_USER_BYTES >> 20;
            let advice = self.shape.container.map_or("", |(_, advice)| advice);
            let advice = if advice.is_empty() { "" } else { &format!(". If it is none: {advice}") };
            format!("the user has {size} bytes; at most {mib} MiB are allowed{advice}")
        })?;
        match serde_json::from_slice(&content) {
            Ok(UniqueValue(Value::Object(object))) => Ok(Object(object)),
            Ok(_) => Err("a user must be an object: {...}".to_owned()),
            Err(error) => Err(format!("not JSON, counted from where the user begins: {error}")),
        }
    }

    /// The user of an object; none if it is no person.
    fn user(&mut self, object: Object) -> Result<Option<User>, String> {
        let mut person = Person::new(self.shape.source, &self.region, &mut self.notes);
        person.kinds = Some(&self.kinds);
        let is_person = (self.shape.read)(object, &mut person)?;
        if !is_person {
            return Ok(None);
        }
        self.has_users = true;
        self.has_state |= person.has_state;
        person.finish().map(Some)
    }

    /// Notes once that no user had a state.
    fn end(&mut self) {
        let state = self.shape.state;
        if self.has_users && !self.has_state && !state.is_empty() {
            self.notes.no_state(state);
            self.has_users = false;
        }
    }
}

impl<R: BufRead> Users for JsonUsers<R> {
    fn next_user(&mut self) -> Result<Option<Entry>, String> {
        let mut before = 0;
        while let Some(Element { line, bytes, content }) = self.next_element()? {
            self.line = line.max(self.line + 1);
            let object = self.object(content);
            if let (Ok(object), Some((key, advice))) = (&object, self.shape.container)
                && object.0.contains_key(key)
            {
                return Err(format!("line {}: this is a {key}, and no user: {advice}", self.line));
            }
            if let Some(user) = object.and_then(|object| self.user(object)).transpose() {
                return Ok(Some(Entry { line: self.line, bytes: before + bytes, user }));
            }
            before += bytes;
        }
        self.end();
        Ok(None)
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }
}
