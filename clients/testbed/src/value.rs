//! Variables in the JSON of scenarios, and answers in a form that can be compared.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::Outcome;

/// The values that a scenario has saved, by name.
#[derive(Default)]
pub struct Variables(BTreeMap<String, Value>);

impl Variables {
    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// The text of `$name`; other texts are themselves.
    pub fn text(&self, text: &str) -> Outcome<String> {
        let value = self.fill(&Value::from(text))?;
        value.as_str().map(str::to_owned).ok_or_else(|| format!("{text} is no text"))
    }

    /// Replaces `$name` by the variable, and items with `$item` by many.
    pub fn fill(&self, value: &Value) -> Outcome<Value> {
        match value {
            Value::String(text) => match text.strip_prefix('$') {
                Some(name) => {
                    let value = self.0.get(name).cloned();
                    value.ok_or_else(|| format!("no variable {text}"))
                }
                None => Ok(value.clone()),
            },
            Value::Array(items) => {
                let mut filled = Vec::new();
                for item in items {
                    match item.get("$item") {
                        Some(template) => filled.extend(repeat(item, template)?),
                        None => filled.push(self.fill(item)?),
                    }
                }
                Ok(Value::Array(filled))
            }
            Value::Object(fields) => {
                let filled =
                    fields.iter().map(|(name, value)| Ok((name.clone(), self.fill(value)?)));
                filled.collect::<Outcome<Map<_, _>>>().map(Value::Object)
            }
            other => Ok(other.clone()),
        }
    }

    /// The answer without times and etags, and with variables for ids that were saved.
    pub fn normal(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.normal_text(text),
            Value::Array(items) => items.iter().map(|item| self.normal(item)).collect(),
            Value::Object(fields) => {
                let lasting = fields
                    .iter()
                    .filter(|(name, _)| *name != "etag" && !name.ends_with("Time"))
                    .map(|(name, value)| (name.clone(), self.normal(value)));
                Value::Object(lasting.collect())
            }
            other => other.clone(),
        }
    }

    fn normal_text(&self, text: &str) -> Value {
        let saved = self.0.iter().find(|(_, value)| value.as_str() == Some(text));
        match saved {
            Some((name, _)) => format!("${name}").into(),
            None if Uuid::try_parse(text).is_ok() => "<id>".into(),
            None => text.into(),
        }
    }
}

/// The template once for each number from `$from` to `$to`, in place of `{n}`. `{fill}` is a text
/// of `$fill` letters.
fn repeat(item: &Value, template: &Value) -> Outcome<Vec<Value>> {
    let number = |name: &str| item.get(name).and_then(Value::as_u64);
    let (Some(from), Some(to)) = (number("$from"), number("$to")) else {
        return Err(format!("an item without $from and $to: {item}"));
    };
    let fill = "x".repeat(number("$fill").unwrap_or_default() as usize);
    let text = template.to_string();
    let items = (from..=to).map(|n| {
        let text = text.replace("{n}", &n.to_string()).replace("{fill}", &fill);
        serde_json::from_str(&text).map_err(|error| format!("an item: {error}"))
    });
    items.collect()
}

/// The value at a path such as `user.userId`.
pub fn at<'a>(value: &'a Value, path: &str) -> Outcome<&'a Value> {
    let pointer = format!("/{}", path.replace('.', "/"));
    value.pointer(&pointer).ok_or_else(|| format!("no {path} in {value}"))
}
