//! The elements of a user that both stores index: the values of the fields by which users are
//! searched, each with the id of its field.

use super::attribute_names::{AttributeId, KnownNames};
use polynym_directory::{
    Policies, ScalarRef, User, search, search::Field, search::fixed_elements, search::scalars,
};

const DISPLAY_NAME: AttributeId = u32::MAX;
const CREATE_TIME: AttributeId = u32::MAX - 1;
const STATE: AttributeId = u32::MAX - 2;
const NAME_WORD: AttributeId = u32::MAX - 3;
const REVERSED_DOMAIN: AttributeId = u32::MAX - 4;
const REVERSED_PHONE: AttributeId = u32::MAX - 5;

/// The id of a field other than an attribute. Otherwise the name of the attribute.
pub fn fixed_attribute_id(field: &Field) -> Result<AttributeId, &str> {
    match field {
        Field::Attribute(name) => Err(name),
        Field::DisplayName => Ok(DISPLAY_NAME),
        Field::CreateTime => Ok(CREATE_TIME),
        Field::State => Ok(STATE),
        Field::NameForm => Ok(NAME_WORD),
        Field::ReversedDomain => Ok(REVERSED_DOMAIN),
        Field::ReversedPhone => Ok(REVERSED_PHONE),
    }
}

/// The indexed attributes of a tenant.
#[derive(Clone, Copy)]
pub struct IndexedAttributes<'a> {
    /// The names of its attributes.
    pub names: &'a KnownNames,
    /// The policies, which say which attributes are indexed.
    pub policies: &'a Policies,
}

impl IndexedAttributes<'_> {
    /// The id of an indexed attribute.
    pub fn id(&self, name: &str) -> Option<AttributeId> {
        self.names.id(name).filter(|_| self.policies.indexes(name))
    }
}

/// The elements of a user, without [derived ones](derived_elements). `id_of` returns the id of an
/// attribute's name.
pub fn elements<'a>(
    user: &'a User,
    id_of: impl Fn(&str) -> Option<AttributeId>,
) -> Vec<(AttributeId, ScalarRef<'a>)> {
    let mut elements: Vec<_> = field_elements(user).collect();
    for (name, value) in &user.attributes {
        if let Some(id) = id_of(name) {
            elements.extend(scalars(value).map(|scalar| (id, scalar)));
        }
    }

    elements
}

/// The elements of a user other than attributes and [derived ones](derived_elements).
pub fn field_elements(user: &User) -> impl Iterator<Item = (AttributeId, ScalarRef<'_>)> {
    fixed_elements(user)
        .filter_map(|(field, scalar)| Some((fixed_attribute_id(&field).ok()?, scalar)))
}

/// The elements that are derived from values of a user: forms of its display name,
/// reversed domains and reversed phone numbers.
pub fn derived_elements(user: &User) -> impl Iterator<Item = (AttributeId, String)> {
    let elements = search::derived_elements(user).into_iter();
    elements.filter_map(|(field, text)| Some((fixed_attribute_id(&field).ok()?, text)))
}
