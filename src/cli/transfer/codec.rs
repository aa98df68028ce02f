//! Between lines of JSON and messages, by the JSON mapping of protocol buffers.

use std::sync::OnceLock;

use prost::Message;
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, SerializeOptions,
};
use serde_json::{Map, Value};

use crate::proto;
use crate::proto::v1::{OwnerlessHold, Tenant, User, UserInternals};

/// The key of a tenant's line, of a hold's line, and of what an export has beside a user.
pub const TENANT: &str = "tenant_record";
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

/// The descriptors of the messages in lines.
struct Descriptors {
    user: MessageDescriptor,
    internals: MessageDescriptor,
    tenant: MessageDescriptor,
    hold: MessageDescriptor,
}

/// The content of an object.
///
/// # Errors
/// The fault, in words.
pub fn content(mut object: Map<String, Value>) -> Result<Content, String> {
    let descriptors = descriptors()?;
    if let Some(tenant) = alone(&mut object, TENANT)? {
        let tenant_record = Some(read(&descriptors.tenant, tenant)?);
        return Ok(Content { tenant_record, ..Content::default() });
    }
    if let Some(hold) = alone(&mut object, HOLD)? {
        let ownerless_hold = Some(read(&descriptors.hold, hold)?);
        return Ok(Content { ownerless_hold, ..Content::default() });
    }

    let internals = object.remove(INTERNALS);
    let internals = internals.map(|value| read(&descriptors.internals, value)).transpose()?;
    let user = Some(read(&descriptors.user, Value::Object(object))?);
    Ok(Content { user, internals, ..Content::default() })
}

/// Takes the value of a key out of an object, if it has the key. It must have no other.
fn alone(object: &mut Map<String, Value>, key: &str) -> Result<Option<Value>, String> {
    match object.remove(key) {
        Some(_) if !object.is_empty() => Err(format!("a line with a {key} has nothing else")),
        value => Ok(value),
    }
}

/// The object of a hold's line.
///
/// # Errors
/// The fault, in words.
pub fn hold_object(hold: &OwnerlessHold) -> Result<Value, String> {
    let hold = write(&descriptors()?.hold, hold)?;
    Ok(Value::Object(Map::from_iter([(HOLD.to_owned(), hold)])))
}

/// The object of a tenant's line.
///
/// # Errors
/// The fault, in words.
pub fn tenant_object(tenant: &Tenant) -> Result<Value, String> {
    let tenant = write(&descriptors()?.tenant, tenant)?;
    Ok(Value::Object(Map::from_iter([(TENANT.to_owned(), tenant)])))
}

/// The object of what an export has beside a user.
///
/// # Errors
/// The fault, in words.
pub fn internals_object(internals: &UserInternals) -> Result<Value, String> {
    write(&descriptors()?.internals, internals)
}

/// The object of a user.
///
/// # Errors
/// The fault, in words.
pub fn user_object(user: &User) -> Result<Value, String> {
    write(&descriptors()?.user, user)
}

fn read<M: Message + Default>(of: &MessageDescriptor, value: Value) -> Result<M, String> {
    let options = DeserializeOptions::new();
    let message = DynamicMessage::deserialize_with_options(of.clone(), value, &options);
    let message = message.map_err(|error| error.to_string())?;
    message.transcode_to().map_err(|error| error.to_string())
}

fn write<M: Message>(of: &MessageDescriptor, message: &M) -> Result<Value, String> {
    let message = DynamicMessage::decode(of.clone(), message.encode_to_vec().as_slice());
    let message = message.map_err(|error| error.to_string())?;
    let written =
        message.serialize_with_options(serde_json::value::Serializer, &SerializeOptions::new());
    written.map_err(|error| error.to_string())
}

fn descriptors() -> Result<&'static Descriptors, String> {
    static DESCRIPTORS: OnceLock<Result<Descriptors, String>> = OnceLock::new();
    DESCRIPTORS.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Descriptors, String> {
    let pool = DescriptorPool::decode(proto::DESCRIPTORS).map_err(|error| error.to_string())?;
    let find = |name: &str| {
        let full = format!("polynym.v1.{name}");
        pool.get_message_by_name(&full).ok_or_else(|| format!("{full} is not described"))
    };
    Ok(Descriptors {
        user: find("User")?,
        internals: find("UserInternals")?,
        tenant: find("Tenant")?,
        hold: find("OwnerlessHold")?,
    })
}
