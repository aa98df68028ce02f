//! Files of JSON: the users of a list, one after another.

mod elements;
mod object;
mod scanner;

use std::io::BufRead;

use polynym_lines::{Lines, UniqueValue};
use polynym_proto::v1::User;
use serde_json::Value;

use crate::notes::Notes;
use crate::person::Person;
use crate::users::{Entry, Users};
use elements::{Element, Elements, MAX_USER_BYTES, next_line};
pub use object::Object;

/// Where a format has its users, and how to read one.
pub struct Shape {
    /// The name of the format.
    pub source: &'static str,
    /// The keys of the lists of users in an object.
    pub lists: &'static [&'static str],
    /// Whether each line is a user, unless the file is a list.
    pub is_lines: bool,
    /// The name under which other keys of the object are counted; empty for their own.
    pub outside: &'static str,
    /// What to do if there is no list.
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
}

/// Where the users are.
enum Source<R> {
    /// In a list.
    List(Elements<R>),
    /// In lines.
    Lines(Lines<R>),
}

impl<R: BufRead> JsonUsers<R> {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read: in words.
    pub fn open(mut reader: R, shape: &'static Shape, region: &str) -> Result<Self, String> {
        let start = reader.fill_buf().map_err(|error| error.to_string())?.trim_ascii_start();
        let is_lines = shape.is_lines && !start.starts_with(b"[");
        let source = match is_lines {
            true => Source::Lines(Lines::new(reader)),
            false => Source::List(Elements::new(reader, shape.lists)),
        };
        let (region, notes) = (region.to_owned(), Notes::default());
        Ok(Self { source, shape, region, line: 0, notes })
    }

    fn next_element(&mut self) -> Result<Option<Element>, String> {
        let elements = match &mut self.source {
            Source::Lines(lines) => return next_line(lines),
            Source::List(elements) => elements,
        };
        let element = elements.next()?;
        let outside = self.shape.outside;
        for key in elements.other_keys.drain(..) {
            self.notes.leave_out(if outside.is_empty() { &key } else { outside });
        }
        if element.is_none() && !elements.has_list {
            return Err(self.shape.advice.to_owned());
        }
        Ok(element)
    }

    /// The user of an element; none if it is no person.
    fn user(&mut self, content: Result<Vec<u8>, usize>) -> Result<Option<User>, String> {
        let content = content.map_err(|size| {
            let mib = MAX_USER_BYTES >> 20;
            format!("the user has {size} bytes; at most {mib} MiB are allowed")
        })?;
        let object = match serde_json::from_slice(&content) {
            Ok(UniqueValue(Value::Object(object))) => Object(object),
            Ok(_) => return Err("a user must be an object: {...}".to_owned()),
            Err(error) => {
                return Err(format!("not JSON, counted from where the user begins: {error}"));
            }
        };
        let mut person = Person::new(self.shape.source, &self.region, &mut self.notes);
        let is_person = (self.shape.read)(object, &mut person)?;
        Ok(is_person.then_some(person.user))
    }
}

impl<R: BufRead> Users for JsonUsers<R> {
    fn next_user(&mut self) -> Result<Option<Entry>, String> {
        let mut before = 0;
        while let Some(Element { line, bytes, content }) = self.next_element()? {
            self.line = line.max(self.line + 1);
            if let Some(user) = self.user(content).transpose() {
                return Ok(Some(Entry { line: self.line, bytes: before + bytes, user }));
            }
            before += bytes;
        }
        Ok(None)
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }
}
