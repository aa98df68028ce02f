//! The tokens of the fields by which users are searched. Both stores index the elements of a user
//! under them, and nothing else.

use super::attribute_names::{KnownNames, Token};
use crate::directory::model::policies::Policies;
use crate::directory::model::user::User;
use crate::directory::search::{Field, ScalarRef, fixed_elements, scalars};

const DISPLAY_NAME: Token = u32::MAX;
const CREATE_TIME: Token = u32::MAX - 1;
const STATE: Token = u32::MAX - 2;

/// The token of a field that is no attribute; else the name of the attribute.
pub fn fixed_token(field: &Field) -> Result<Token, &str> {
    match field {
        Field::Attribute(name) => Err(name),
        Field::DisplayName => Ok(DISPLAY_NAME),
        Field::CreateTime => Ok(CREATE_TIME),
        Field::State => Ok(STATE),
    }
}

/// The names of a tenant's attributes, and the policies that say which of them are indexed.
#[derive(Clone, Copy)]
pub struct AttributeTokens<'a> {
    /// The names.
    pub names: &'a KnownNames,
    /// The policies.
    pub policies: &'a Policies,
}

impl AttributeTokens<'_> {
    /// The token of an attribute that is indexed.
    pub fn indexed(&self, name: &str) -> Option<Token> {
        self.names.token(name).filter(|_| self.policies.indexes(name))
    }
}

/// The elements of a user. `token` gives the token of an attribute's name.
pub fn elements<'a>(
    user: &'a User,
    token: impl Fn(&str) -> Option<Token>,
) -> Vec<(Token, ScalarRef<'a>)> {
    let mut elements: Vec<_> = field_elements(user).collect();
    for (name, value) in &user.attributes {
        if let Some(token) = token(name) {
            elements.extend(scalars(value).map(|scalar| (token, scalar)));
        }
    }

    elements
}

/// The elements of a user that are no attributes.
pub fn field_elements(user: &User) -> impl Iterator<Item = (Token, ScalarRef<'_>)> {
    fixed_elements(user).filter_map(|(field, scalar)| Some((fixed_token(&field).ok()?, scalar)))
}
