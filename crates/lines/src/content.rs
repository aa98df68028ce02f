//! The content of lines: a user, a tenant, or a hold without an owner.

use serde_json::{Map, Value};

use crate::json;
use polynym_proto::v1::{OwnerlessHold, Tenant, User, UserInternals};

/// The key of a tenant's line, of a hold's line, and of the internals of a user.
const TENANT: &str = "tenant_record";
const HOLD: &str = "ownerless_hold";
pub const INTERNALS: &str = "internals";

/// The content of a line.
#[derive(Debug, Default)]
pub struct Content {
    pub user: Option<User>,
    pub internals: Option<UserInternals>,
    pub tenant_record: Option<Tenant>,
    pub ownerless_hold: Option<OwnerlessHold>,
}

/// Parses the object of a line.
///
/// # Errors
/// The error in words.
pub fn content(mut object: Map<String, Value>) -> Result<Content, String> {
    if let Some(tenant) = remove_only_key(&mut object, TENANT)? {
        let tenant_record = Some(json::to_message(tenant)?);
        return Ok(Content { tenant_record, ..Content::default() });
    }
    if let Some(hold) = remove_only_key(&mut object, HOLD)? {
        let ownerless_hold = Some(json::to_message(hold)?);
        return Ok(Content { ownerless_hold, ..Content::default() });
    }

    let internals = object.remove(INTERNALS).map(json::to_message).transpose()?;
    let user = Some(json::to_message(Value::Object(object))?);
    Ok(Content { user, internals, ..Content::default() })
}

/// Removes a key, if the object has it. Fails if the object has other keys, too.
fn remove_only_key(object: &mut Map<String, Value>, key: &str) -> Result<Option<Value>, String> {
    match object.remove(key) {
        Some(_) if !object.is_empty() => Err(format!("a line with a {key} has nothing else")),
        value => Ok(value),
    }
}

/// The object of a hold's line.
///
/// # Errors
/// The message has no JSON form.
pub fn hold_object(hold: &OwnerlessHold) -> Result<Value, String> {
    Ok(serde_json::json!({ HOLD: json::from_message(hold)? }))
}

/// The object of a tenant's line.
///
/// # Errors
/// The message has no JSON form.
pub fn tenant_object(tenant: &Tenant) -> Result<Value, String> {
    Ok(serde_json::json!({ TENANT: json::from_message(tenant)? }))
}

/// The object of a user's internals.
///
/// # Errors
/// The message has no JSON form.
pub fn internals_object(internals: &UserInternals) -> Result<Value, String> {
    json::from_message(internals)
}
