//! The encoded forms of users and tenants: the API's messages with parts that stay on the server.

pub(crate) mod attributes;
mod decode;
pub(crate) mod definition;
pub(crate) mod encode;
pub(crate) mod encoded_user;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod exported_user;
pub(crate) mod internals;
pub(crate) mod notice;
mod record;
pub(crate) mod tenant;
pub(crate) mod tenant_event;
mod v1_tag;
