//! The elements of a user by which it can be searched: scalars, each under the token of its field.
//! Both stores index these and no others.

use super::attribute_names::Token;
use crate::directory::model::attribute::Value;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::model::user::{State, User};
use crate::directory::search::{self, SEARCHED_BYTES, state_word};

/// The tokens of fields that are no attributes.
pub const DISPLAY_NAME: Token = u32::MAX;
/// See [`DISPLAY_NAME`].
pub const CREATE_TIME: Token = u32::MAX - 1;
/// See [`DISPLAY_NAME`].
pub const STATE: Token = u32::MAX - 2;

/// A value that an index has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'a> {
    Int(i64),
    Double(f64),
    Text(&'a str),
    Bool(bool),
    Time(Timestamp),
}

/// The elements of a user. `token` gives the token of a name.
pub fn elements<'a>(
    user: &'a User,
    token: impl Fn(&str) -> Option<Token>,
) -> Vec<(Token, Scalar<'a>)> {
    let mut elements: Vec<_> = field_elements(user).collect();
    for (name, value) in &user.attributes {
        if let Some(token) = token(name) {
            elements.extend(scalars(value).map(|scalar| (token, scalar)));
        }
    }

    elements
}

/// The elements of a user that are no attributes.
pub fn field_elements(user: &User) -> impl Iterator<Item = (Token, Scalar<'_>)> {
    let state = state(user.state).map(|state| (STATE, Scalar::Text(state)));
    let name = (DISPLAY_NAME, Scalar::Text(&user.display_name));
    [(CREATE_TIME, Scalar::Time(user.create_time)), name].into_iter().chain(state)
}

/// Whether users can be searched by a scalar.
pub const fn is_searched(scalar: &Scalar<'_>) -> bool {
    !matches!(scalar, Scalar::Text(text) if text.len() > SEARCHED_BYTES)
}

/// The word for a state; none for the one that nearly all users have.
fn state(state: State) -> Option<&'static str> {
    (state != State::Active).then(|| state_word(state))
}

/// The scalars of a value by which users can be searched: of a list each item. Long texts are no
/// such scalars.
pub fn scalars(value: &Value) -> impl Iterator<Item = Scalar<'_>> {
    let (one, items): (Option<Scalar<'_>>, &[String]) = match value {
        Value::String(text) => (Some(Scalar::Text(text)), &[]),
        Value::Int(number) => (Some(Scalar::Int(*number)), &[]),
        Value::Double(number) => (Some(Scalar::Double(*number)), &[]),
        Value::Bool(yes) => (Some(Scalar::Bool(*yes)), &[]),
        Value::Time(time) => (Some(Scalar::Time(*time)), &[]),
        Value::List(items) => (None, items),
    };
    one.into_iter().chain(items.iter().map(|item| Scalar::Text(item))).filter(is_searched)
}

impl<'a> From<&'a search::Scalar> for Scalar<'a> {
    fn from(scalar: &'a search::Scalar) -> Self {
        match scalar {
            search::Scalar::Int(number) => Self::Int(*number),
            search::Scalar::Double(number) => Self::Double(*number),
            search::Scalar::String(text) => Self::Text(text),
            search::Scalar::Bool(yes) => Self::Bool(*yes),
            search::Scalar::Time(time) => Self::Time(*time),
        }
    }
}
