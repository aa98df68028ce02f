//! The elements of a user: the values that conditions test and indexes store.

use super::field::Field;
use super::name::forms;
use super::scalar::Scalar;
use crate::model::attribute::Value;
use crate::model::policies::Policies;
use crate::model::user::{State, User};
use crate::timestamp::Timestamp;
use polynym_identifier::Kind;

/// The maximum size of a searchable text. A longer one is no element: neither conditions nor
/// indexes include it.
pub const MAX_SEARCHED_BYTES: usize = 256;

/// The words of a display name by which users are found: the first ones.
pub const MAX_NAME_WORDS: usize = 16;

/// A value of a user, borrowed from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScalarRef<'a> {
    /// See [`Scalar::Int`].
    Int(i64),
    /// See [`Scalar::Double`].
    Double(f64),
    /// See [`Scalar::String`].
    Text(&'a str),
    /// See [`Scalar::Bool`].
    Bool(bool),
    /// See [`Scalar::Time`].
    Time(Timestamp),
}

impl ScalarRef<'_> {
    /// Whether users can be searched by it, as the value of an attribute.
    pub const fn is_searched(&self) -> bool {
        !matches!(self, Self::Text(text) if text.len() > MAX_SEARCHED_BYTES)
    }
}

impl From<ScalarRef<'_>> for Scalar {
    fn from(scalar: ScalarRef<'_>) -> Self {
        match scalar {
            ScalarRef::Int(number) => Self::Int(number),
            ScalarRef::Double(number) => Self::Double(number),
            ScalarRef::Text(text) => Self::String(text.to_owned()),
            ScalarRef::Bool(yes) => Self::Bool(yes),
            ScalarRef::Time(time) => Self::Time(time),
        }
    }
}

impl<'a> From<&'a Scalar> for ScalarRef<'a> {
    fn from(scalar: &'a Scalar) -> Self {
        match scalar {
            Scalar::Int(number) => Self::Int(*number),
            Scalar::Double(number) => Self::Double(*number),
            Scalar::String(text) => Self::Text(text),
            Scalar::Bool(yes) => Self::Bool(*yes),
            Scalar::Time(time) => Self::Time(*time),
        }
    }
}

/// All index elements of a user. A list has an element for each item, even for equal ones.
pub fn elements(user: &User) -> Vec<(Field, Scalar)> {
    let fixed = fixed_elements(user).map(|(field, scalar)| (field, scalar.into()));
    let attributes = user.attributes.iter().flat_map(|(name, value)| {
        scalars(value).map(|scalar| (Field::Attribute(name.clone()), scalar.into()))
    });
    let derived = derived_elements(user).into_iter();
    let derived = derived.map(|(field, text)| (field, Scalar::String(text)));
    fixed.chain(derived).chain(attributes).collect()
}

/// The elements of a user besides its attributes. Indexes omit `ACTIVE`, the state of nearly all
/// users.
pub fn fixed_elements(user: &User) -> impl Iterator<Item = (Field, ScalarRef<'_>)> {
    let state = (user.state != State::Active)
        .then(|| (Field::State, ScalarRef::Text(state_word(user.state))));
    let created = (Field::CreateTime, ScalarRef::Time(user.create_time));
    let name = (Field::DisplayName, ScalarRef::Text(&user.display_name));
    [created, name].into_iter().chain(state)
}

/// The elements that are derived from the values of a user, each once: the forms of its display
/// name, the reversed domains of its email addresses, and its reversed phone numbers.
pub fn derived_elements(user: &User) -> Vec<(Field, String)> {
    let names = forms(&user.display_name).into_iter().map(|name| (Field::NameForm, name));
    let domains = reversed_domains(user).map(|domain| (Field::ReversedDomain, domain));
    let phones = reversed_phones(user).map(|phone| (Field::ReversedPhone, phone));
    let mut derived: Vec<_> = names.chain(domains).chain(phones).collect();
    derived.sort_unstable();
    derived.dedup();
    derived
}

fn reversed_domains(user: &User) -> impl Iterator<Item = String> {
    let emails = canonical_values(user, Kind::Email);
    emails.filter_map(|email| Some(reversed(email.rsplit_once('@')?.1)))
}

fn reversed_phones(user: &User) -> impl Iterator<Item = String> {
    canonical_values(user, Kind::Phone).map(reversed)
}

/// The canonical values of the user's identities of a kind.
pub fn canonical_values(user: &User, kind: Kind) -> impl Iterator<Item = &str> {
    let identifiers = user.identities.iter().map(|identity| &identity.identifier);
    let own = identifiers.filter(move |identifier| identifier.kind() == kind);
    own.map(|identifier| identifier.canonical())
}

/// A text from its last character to its first.
pub fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

/// The values of a field that a user has.
pub fn values(user: &User, field: &Field) -> Vec<Scalar> {
    match field {
        Field::Attribute(name) => {
            let value = user.attributes.get(name);
            value.into_iter().flat_map(scalars).map(Scalar::from).collect()
        }
        Field::DisplayName => vec![Scalar::String(user.display_name.clone())],
        Field::CreateTime => vec![Scalar::Time(user.create_time)],
        Field::State => vec![Scalar::String(state_word(user.state).to_owned())],
        Field::NameForm => forms(&user.display_name).into_iter().map(Scalar::String).collect(),
        Field::ReversedDomain => reversed_domains(user).map(Scalar::String).collect(),
        Field::ReversedPhone => reversed_phones(user).map(Scalar::String).collect(),
    }
}

/// The name of a state in filters and indexes.
pub const fn state_word(state: State) -> &'static str {
    match state {
        State::Active => "ACTIVE",
        State::Disabled => "DISABLED",
        State::Deleted { .. } => "DELETED",
        State::Merged { .. } => "MERGED",
    }
}

/// The names of the states.
pub const STATES: [&str; 4] = ["ACTIVE", "DISABLED", "DELETED", "MERGED"];

/// The searchable scalars of a value: each item of a list, but no long texts.
pub fn scalars(value: &Value) -> impl Iterator<Item = ScalarRef<'_>> {
    let (one, items): (Option<ScalarRef<'_>>, &[String]) = match value {
        Value::String(text) => (Some(ScalarRef::Text(text)), &[]),
        Value::Int(number) => (Some(ScalarRef::Int(*number)), &[]),
        Value::Double(number) => (Some(ScalarRef::Double(*number)), &[]),
        Value::Bool(yes) => (Some(ScalarRef::Bool(*yes)), &[]),
        Value::Time(time) => (Some(ScalarRef::Time(*time)), &[]),
        Value::List(items) => (None, items),
    };
    one.into_iter()
        .chain(items.iter().map(|item| ScalarRef::Text(item)))
        .filter(ScalarRef::is_searched)
}

/// The number of the user's searchable values; each item of a list counts.
pub fn searched_elements(user: &User, policies: &Policies) -> usize {
    let indexed = user.attributes.iter().filter(|(name, _)| policies.indexes(name));
    indexed.map(|(_, value)| scalars(value).count()).sum()
}
