//! The elements of a user: the values that conditions look at and indexes have.

use super::field::Field;
use super::scalar::Scalar;
use crate::directory::model::attribute::Value;
use crate::directory::model::user::{State, User};

/// The longest text of an attribute that is searched. A longer one is no element: no condition
/// finds it, and no index has it.
pub const SEARCHED_BYTES: usize = 256;

/// Whether a text of an attribute is searched.
pub fn is_searched(text: &str) -> bool {
    text.len() <= SEARCHED_BYTES
}

/// All that an index has of a user. A list has an element for each item, also for equal ones.
pub fn elements(user: &User) -> Vec<(Field, Scalar)> {
    let mut found = vec![
        (Field::DisplayName, Scalar::String(user.display_name.clone())),
        (Field::CreateTime, Scalar::Time(user.create_time)),
    ];
    if user.state != State::Active {
        found.push((Field::State, Scalar::String(state_word(user.state).to_owned())));
    }
    for (name, value) in &user.attributes {
        let field = |scalar| (Field::Attribute(name.clone()), scalar);
        found.extend(scalars(value).into_iter().map(field));
    }
    found
}

/// The values of a field that a user has.
pub fn values(user: &User, field: &Field) -> Vec<Scalar> {
    match field {
        Field::Attribute(name) => user.attributes.get(name).map(scalars).unwrap_or_default(),
        Field::DisplayName => vec![Scalar::String(user.display_name.clone())],
        Field::CreateTime => vec![Scalar::Time(user.create_time)],
        Field::State => vec![Scalar::String(state_word(user.state).to_owned())],
    }
}

/// The word of a state in filters and indexes.
pub const fn state_word(state: State) -> &'static str {
    match state {
        State::Active => "ACTIVE",
        State::Disabled => "DISABLED",
        State::Deleted { .. } => "DELETED",
        State::Merged { .. } => "MERGED",
    }
}

/// The states' words.
pub const STATES: [&str; 4] = ["ACTIVE", "DISABLED", "DELETED", "MERGED"];

fn scalars(value: &Value) -> Vec<Scalar> {
    let text = |text: &String| is_searched(text).then(|| Scalar::String(text.clone()));
    match value {
        Value::String(value) => text(value).into_iter().collect(),
        Value::Int(number) => vec![Scalar::Int(*number)],
        Value::Double(number) => vec![Scalar::Double(*number)],
        Value::Bool(yes) => vec![Scalar::Bool(*yes)],
        Value::Time(time) => vec![Scalar::Time(*time)],
        Value::List(items) => items.iter().filter_map(text).collect(),
    }
}
