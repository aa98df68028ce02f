//! The documents of tenants.

use mongodb::bson::{Document, RawBsonRef, RawDocument, doc};

use crate::client::error::Fault;
use crate::schema::bson::{bytes, read_fields, required};
use crate::schema::fields::{ID, POLICIES, REVISION};
use polynym_directory::TenantRecord;

/// The document of a tenant.
pub fn tenant_document(tenant: &TenantRecord, revision: i64) -> Document {
    doc! { ID: tenant.name.as_str(), REVISION: revision, POLICIES: bytes(tenant.encode()) }
}

/// The tenant of a document.
pub fn read_tenant(document: &RawDocument) -> Result<TenantRecord, Fault> {
    let [policies] = read_fields(document, [POLICIES])?;
    let policies = required(POLICIES, policies, RawBsonRef::as_binary)?.bytes;
    TenantRecord::decode(policies).map_err(Fault::damaged)
}
