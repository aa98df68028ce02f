//! The parts of a document that a transaction preserves when it replaces the document.

use mongodb::bson::{Bson, Document, RawBsonRef, RawDocument};

use crate::client::error::Fault;
use crate::schema::attributes::ATTRIBUTES;
use crate::schema::bson::{read_fields, required};
use crate::schema::fields::{
    EPOCH, EXPIRES_AT, ID, POLICIES, PRIVATE, REVISION, TAIL, TENANT, WIRE,
};
use crate::schema::tail::{TIMES, Tail};

/// The fields of users and of tenants that this program supports.
const USER_FIELDS: [&str; 10] =
    [ID, REVISION, TENANT, WIRE, PRIVATE, EXPIRES_AT, EPOCH, ATTRIBUTES, TAIL, TIMES];
const TENANT_FIELDS: [&str; 4] = [ID, REVISION, POLICIES, EPOCH];

/// The preserved parts of the document of a user or a tenant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreservedFields {
    pub revision: i64,
    /// Of a user: the end of its history.
    pub tail: Tail,
    /// Fields that this program does not know.
    unknown: Document,
}

impl PreservedFields {
    pub fn of_user(document: &RawDocument) -> Result<Self, Fault> {
        Self::read(document, &USER_FIELDS)
    }

    pub fn of_tenant(document: &RawDocument) -> Result<Self, Fault> {
        Self::read(document, &TENANT_FIELDS)
    }

    fn read(document: &RawDocument, known: &[&str]) -> Result<Self, Fault> {
        let [stored_revision, tail] = read_fields(document, [REVISION, TAIL])?;
        let mut unknown = Document::new();
        for item in document.iter_elements() {
            let element = item.map_err(Fault::damaged)?;
            if !known.contains(&element.key().as_str()) {
                unknown.insert(
                    element.key().as_str(),
                    Bson::try_from(element).map_err(Fault::damaged)?,
                );
            }
        }

        let revision = required(REVISION, stored_revision, RawBsonRef::as_i64)?;
        Ok(Self { revision, tail: Tail::of(tail)?, unknown })
    }
}

/// Adds the current epoch and the preserved fields to a document.
pub fn with_epoch(
    mut document: Document,
    epoch: i32,
    preserved: Option<&PreservedFields>,
) -> Document {
    document.insert(EPOCH, epoch);
    document.extend(preserved.into_iter().flat_map(|preserved| preserved.unknown.clone()));
    document
}
