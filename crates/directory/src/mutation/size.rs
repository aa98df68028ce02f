//! The size of a user on the wire, on the disk and in answers, counted without encoding it.

use std::collections::BTreeMap;

use crate::model::attribute::Value;
use crate::model::imported_user::ImportedUser;
use crate::model::new_user::NewIdentity;
use crate::model::policies::Policies;
use crate::model::user::{Identity, User};
use crate::search::scalars;

/// Bytes of a user beside its name, identities and attributes: id, tenant, times, etag.
const USER: usize = 256;
/// Bytes of an identity beside its texts.
const IDENTITY: usize = 64;
/// Bytes of an attribute beside its name and texts.
const ATTRIBUTE: usize = 32;
/// Bytes of an item of a list beside its text.
const ITEM: usize = 4;

/// The size in bytes, no less than that of the encoded user.
pub fn size(user: &User) -> usize {
    let identities: usize = user.identities.iter().map(identity).sum();
    USER + user.display_name.len() + identities + attributes(&user.attributes)
}

/// The size in bytes of an identity that a caller gave.
pub fn draft_identity(draft: &NewIdentity) -> usize {
    IDENTITY + draft.identifier.canonical().len() + draft.display.len()
}

/// The size in bytes of a user that is imported.
pub fn imported(user: &ImportedUser) -> usize {
    let identities: usize = user.identities.iter().map(|own| draft_identity(&own.new)).sum();
    let undo = user.internals.as_ref().and_then(|internals| internals.undo.as_ref());
    let undone = undo.map_or(0, |undo| size(&undo.before.user));
    user.display_name.len() + identities + attributes(&user.attributes) + undone
}

/// The size of attributes, in bytes.
pub fn attributes(attributes: &BTreeMap<String, Value>) -> usize {
    attributes.iter().map(|(name, of)| ATTRIBUTE + name.len() + value(of)).sum()
}

/// The number of attributes' values by which searches may find the user; each item of a list is
/// one.
pub fn searched_elements(user: &User, policies: &Policies) -> usize {
    let indexed = user.attributes.iter().filter(|(name, _)| policies.indexes(name));
    indexed.map(|(_, value)| scalars(value).count()).sum()
}

fn identity(identity: &Identity) -> usize {
    let by = identity.verification.as_ref().map_or(0, |verification| verification.by.len());
    IDENTITY + identity.identifier.canonical().len() + identity.display.len() + by
}

/// The size of a value, in bytes.
pub fn value(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::List(items) => items.iter().map(|item| ITEM + item.len()).sum(),
        Value::Int(_) | Value::Double(_) | Value::Bool(_) | Value::Time(_) => 0,
    }
}
