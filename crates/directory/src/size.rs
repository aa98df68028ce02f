//! The size of a user on the wire, on disk and in answers, computed without encoding it.

use std::collections::BTreeMap;

use crate::model::attribute::Value;
use crate::model::imported_user::ImportedUser;
use crate::model::new_user::NewIdentity;
use crate::model::user::{Identity, User};

/// Bytes of a user besides its name, identities and attributes: id, tenant, times, etag.
const USER_BYTES: usize = 256;
/// Bytes of an identity besides its texts.
const IDENTITY_BYTES: usize = 64;
/// Bytes of an attribute besides its name and texts.
const ATTRIBUTE_BYTES: usize = 32;
/// Bytes of an item of a list besides its text.
const ITEM_BYTES: usize = 4;

/// An upper bound of the size of the encoded user, in bytes.
pub fn size(user: &User) -> usize {
    let identities: usize = user.identities.iter().map(identity).sum();
    USER_BYTES + user.display_name.len() + identities + attributes(&user.attributes)
}

/// The size in bytes of an identity from a caller.
pub fn new_identity(new: &NewIdentity) -> usize {
    IDENTITY_BYTES + new.identifier.canonical().len() + new.display.len()
}

/// The size in bytes of an imported user.
pub fn imported(user: &ImportedUser) -> usize {
    let identities: usize =
        user.identities.iter().map(|identity| new_identity(&identity.new)).sum();
    let undo = user.internals.as_ref().and_then(|internals| internals.undo.as_ref());
    let undone = undo.map_or(0, |undo| size(&undo.before.user));
    user.display_name.len() + identities + attributes(&user.attributes) + undone
}

/// The size of attributes, in bytes.
pub fn attributes(attributes: &BTreeMap<String, Value>) -> usize {
    attributes.iter().map(|(name, of)| ATTRIBUTE_BYTES + name.len() + value(of)).sum()
}

fn identity(identity: &Identity) -> usize {
    let by = identity.verification.as_ref().map_or(0, |verification| verification.by.len());
    IDENTITY_BYTES + identity.identifier.canonical().len() + identity.display.len() + by
}

/// The size of a value, in bytes.
pub fn value(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::List(items) => items.iter().map(|item| ITEM_BYTES + item.len()).sum(),
        Value::Int(_) | Value::Double(_) | Value::Bool(_) | Value::Time(_) => 0,
    }
}
