//! How large a user is: what it takes on the wire, on the disk and in answers, counted without encoding it.

use super::{Identity, User, Value};

/// What a user takes beside its name, identities and attributes: id, tenant, times, etag.
const USER: usize = 256;
/// What an identity takes beside its texts.
const IDENTITY: usize = 64;
/// What an attribute takes beside its name and texts.
const ATTRIBUTE: usize = 32;
/// What a text of a list takes beside itself.
const ITEM: usize = 4;

/// The size in bytes, no less than that of the encoded user.
pub fn size(user: &User) -> usize {
    let identities: usize = user.identities.iter().map(identity).sum();
    let attributes: usize = user.attributes.iter().map(|(name, of)| ATTRIBUTE + name.len() + value(of)).sum();
    USER + user.display_name.len() + identities + attributes
}

fn identity(identity: &Identity) -> usize {
    let by = identity.verification.as_ref().map_or(0, |verification| verification.by.len());
    IDENTITY + identity.identifier.canonical().len() + identity.display.len() + by
}

fn value(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::List(items) => items.iter().map(|item| ITEM + item.len()).sum(),
        Value::Int(_) | Value::Double(_) | Value::Bool(_) | Value::Time(_) => 0,
    }
}
