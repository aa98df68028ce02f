//! What changed, as a line of the audit says it: the first values, in few characters.

use super::event::ChangeView;
use super::text::cut;

/// The changes that a line shows.
const MAX_CHANGES: usize = 2;
/// The characters of a value.
const MAX_VALUE: usize = 60;

/// The first changes of an event.
#[derive(Clone, Debug, Default)]
pub struct Details {
    pub shown: Vec<Detail>,
    /// The number of other changes.
    pub more: usize,
}

/// A changed value.
#[derive(Clone, Debug)]
pub struct Detail {
    /// The name of the field; empty for an identity, which says itself what it is.
    pub name: String,
    /// Whether the name is that of an attribute, which is data.
    pub is_attribute: bool,
    /// Whether the values are states, which are words.
    pub is_state: bool,
    /// The values before and after, without those that are none.
    pub sides: Vec<Side>,
}

/// A value.
#[derive(Clone, Debug)]
pub struct Side {
    pub value: String,
    /// The marks of an identity, such as `(primary, not verified)`; else empty.
    pub marks: String,
}

impl Details {
    /// The first of these changes.
    pub fn of(changes: &[ChangeView]) -> Self {
        let shown = changes.iter().take(MAX_CHANGES).map(Detail::of).collect();
        Self { shown, more: changes.len().saturating_sub(MAX_CHANGES) }
    }
}

impl Detail {
    fn of(change: &ChangeView) -> Self {
        let is_identity = !change.is_attribute && change.name.starts_with("identity");
        let name = change.name.strip_prefix("identity").filter(|_| is_identity);
        let sides = change.sides().into_iter().filter(|value| !value.is_empty());
        Self {
            name: name.map_or(&*change.name, str::trim_start).to_owned(),
            is_attribute: change.is_attribute,
            is_state: change.is_state(),
            sides: sides.map(|value| Side::of(value, is_identity)).collect(),
        }
    }
}

impl Side {
    fn of(value: String, is_identity: bool) -> Self {
        let marked = value.rsplit_once(" (").filter(|_| is_identity && value.ends_with(')'));
        let (own, marks) = match marked {
            Some((own, marks)) => (own.to_owned(), format!("({marks}")),
            None => (value, String::new()),
        };
        Self { value: cut(own, MAX_VALUE), marks: cut(marks, MAX_VALUE) }
    }
}
