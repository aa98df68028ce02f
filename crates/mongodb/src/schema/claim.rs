//! The documents of claims.

use mongodb::bson::{Document, RawBsonRef, RawDocument, doc};

use crate::client::error::Fault;
use crate::schema::bson::{as_id, date, id_value, read_fields, required};
use crate::schema::fields::{CLAIM_RULES_VERSION, GUARD, HOLD, ID, USER};
use polynym_directory::{Claim, Timestamp};
use polynym_identifier::IdentityKey;

/// The document of a claim.
pub fn claim_document(key: &IdentityKey, claim: &Claim) -> Document {
    let mut document = doc! { ID: key.as_str(), CLAIM_RULES_VERSION: claim.rules_version as i32 };
    if let Some(owner) = claim.owner {
        document.insert(USER, id_value(owner));
    }

    if claim.guard {
        document.insert(GUARD, true);
    }
    if let Some(until) = claim.hold {
        document.insert(HOLD, date(until));
    }
    document
}

/// The update that replaces the claim of this key, keeping unknown fields.
pub fn claim_change(key: &IdentityKey, claim: &Claim) -> Document {
    let mut set = claim_document(key, claim);
    set.remove(ID);
    let absent = [USER, GUARD, HOLD].into_iter().filter(|name| !set.contains_key(*name));
    let unset: Document = absent.map(|name| (name.to_owned(), true.into())).collect();
    if unset.is_empty() {
        doc! { "$set": set }
    } else {
        doc! { "$set": set, "$unset": unset }
    }
}

/// The key and the claim of a document.
pub fn read_claim(document: &RawDocument) -> Result<(&str, Claim), Fault> {
    let [key, owner, guard, hold, rules] =
        read_fields(document, [ID, USER, GUARD, HOLD, CLAIM_RULES_VERSION])?;
    let hold = hold.and_then(RawBsonRef::as_datetime);
    let claim = Claim {
        owner: owner.map(|owner| required(USER, Some(owner), as_id)).transpose()?,
        guard: guard.is_some(),
        hold: hold.map(|until| Timestamp::from_millis(until.timestamp_millis())),
        rules_version: required(CLAIM_RULES_VERSION, rules, RawBsonRef::as_i32)? as u32,
    };
    Ok((required(ID, key, RawBsonRef::as_str)?, claim))
}
