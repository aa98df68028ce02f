//! The encoded forms of users and tenants: the API's messages, with internal parts.

pub mod attributes;
pub mod bulk_change;
pub(crate) mod decode;
pub mod definition;
pub mod delivery;
pub mod delivery_message;
pub mod encode;
pub mod encoded_user;
pub(crate) mod error;
pub mod event;
pub mod exported_user;
pub mod internals;
pub mod notice;
mod record;
pub mod tenant;
pub mod tenant_event;
mod v1_tag;
