//! The object of a user: its parts are taken one by one, and what is left is counted.

use polynym_proto::v1::StringList;
use polynym_proto::v1::attribute_value::Kind as ValueKind;
use prost_types::Timestamp;
use serde_json::{Map, Value};

use crate::notes::{Notes, is_secret};
use crate::person::{MAX_NAME_BYTES, Person};
use crate::times;

/// The levels of objects whose values become attributes.
const MAX_LEVELS: usize = 8;

/// An object.
#[derive(Default)]
pub struct Object(pub Map<String, Value>);

impl Object {
    /// Takes a text, or a number as text. Another value stays, and will be counted.
    pub fn text(&mut self, key: &str) -> String {
        match self.0.get_mut(key) {
            Some(Value::String(text)) => {
                let text = std::mem::take(text);
                self.0.remove(key);
                text
            }
            Some(Value::Number(number)) => {
                let text = number.to_string();
                self.0.remove(key);
                text
            }
            _ => String::new(),
        }
    }

    /// Takes yes or no. Another value stays.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        let flag = match self.0.get(key)? {
            Value::Bool(flag) => *flag,
            Value::String(text) => text.trim().to_lowercase().parse().ok()?,
            _ => return None,
        };
        self.0.remove(key);
        Some(flag)
    }

    /// Takes whether the user is disabled, of a field that is `disabled` if so. There is no user if
    /// the field says something else.
    pub fn state(&mut self, key: &str, disabled: bool, person: &mut Person<'_>) {
        match (self.flag(key), self.0.get(key)) {
            (Some(flag), _) => person.set_disabled(flag == disabled),
            (None, None | Some(Value::Null)) => {}
            (None, Some(_)) => person.unknown_state(key),
        }
    }

    /// Takes a time. Another value stays.
    pub fn time(&mut self, key: &str) -> Option<Timestamp> {
        let time = times::from_json(self.0.get(key)?)?;
        self.0.remove(key);
        Some(time)
    }

    /// Takes the times at which the user was created and updated.
    pub fn user_times(&mut self, person: &mut Person<'_>, created: &str, updated: &str) {
        person.user.create_time = self.time(created);
        person.user.update_time = self.time(updated);
    }

    /// Takes an object; an empty one if there is none. Another value stays.
    pub fn object(&mut self, key: &str) -> Self {
        match self.0.get_mut(key) {
            Some(Value::Object(object)) => {
                let object = std::mem::take(object);
                self.0.remove(key);
                Self(object)
            }
            _ => Self::default(),
        }
    }

    /// Takes the objects in a list. Another value stays, also in the list.
    pub fn objects(&mut self, key: &str) -> Vec<Self> {
        let Some(Value::Array(values)) = self.0.get_mut(key) else { return Vec::new() };
        let mut objects = Vec::new();
        values.retain_mut(|value| match value {
            Value::Object(object) => {
                objects.push(Self(std::mem::take(object)));
                false
            }
            _ => true,
        });
        objects
    }

    /// Takes a text, or the texts of a list. Another value stays, also in the list.
    pub fn texts(&mut self, key: &str) -> Vec<String> {
        let Some(Value::Array(values)) = self.0.get_mut(key) else {
            return Some(self.text(key)).filter(|text| !text.is_empty()).into_iter().collect();
        };
        let mut texts = Vec::new();
        values.retain_mut(|value| match value {
            Value::String(text) => {
                texts.push(std::mem::take(text));
                false
            }
            _ => true,
        });
        texts
    }

    /// Takes texts as attributes of ours.
    pub fn keep(&mut self, keys: &[(&str, &'static str)], person: &mut Person<'_>) {
        for (key, name) in keys {
            let text = self.text(key);
            person.own(name, &text);
        }
    }

    /// Keeps all that is left as attributes, whose names begin with a prefix.
    pub fn keep_rest(self, prefix: &str, person: &mut Person<'_>) {
        for (key, value) in self.0 {
            keep(&format!("{prefix}{key}"), value, person, MAX_LEVELS);
        }
    }

    /// Counts all that is left.
    pub fn leave_out_rest(self, prefix: &str, notes: &mut Notes) {
        for (key, value) in self.0 {
            notes.leave_out_value(&format!("{prefix}{key}"), &value);
        }
    }
}

/// Keeps a value as an attribute, and an object as one for each of its values.
fn keep(name: &str, value: Value, person: &mut Person<'_>, levels: usize) {
    if is_secret(name) || name.len() > MAX_NAME_BYTES {
        return person.notes.leave_out_value(name, &value);
    }
    if person.has_failed() {
        return;
    }
    match value {
        Value::Null => {}
        Value::Bool(yes) => person.attribute(name, ValueKind::BoolValue(yes)),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => person.attribute(name, ValueKind::IntValue(number)),
            (None, Some(number)) => person.attribute(name, ValueKind::DoubleValue(number)),
            (None, None) => person.notes.leave_out(name),
        },
        Value::String(text) => person.text(name, &text),
        Value::Array(values) => keep_list(name, values, person),
        Value::Object(object) if levels > 0 => {
            for (key, value) in object {
                keep(&format!("{name}.{key}"), value, person, levels - 1);
            }
        }
        Value::Object(_) => person.notes.leave_out(name),
    }
}

/// Keeps a list of texts, numbers and flags. One with lists or objects is counted.
fn keep_list(name: &str, values: Vec<Value>, person: &mut Person<'_>) {
    let text = |value: Value| match value {
        Value::String(text) => Some(text),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    };
    let is_empty = values.is_empty();
    match values.into_iter().map(text).collect::<Option<Vec<_>>>() {
        Some(_) if is_empty => {}
        Some(values) => person.attribute(name, ValueKind::ListValue(StringList { values })),
        None => person.notes.leave_out(name),
    }
}
