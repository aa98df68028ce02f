//! A hash of a request's content. It distinguishes a retry from another request with the same id,
//! and covers the parsed request, since a retry may be spelt differently, without times from the
//! clock.

use std::collections::BTreeMap;

use crate::model::attribute::Value;
use crate::model::attribute_definition::{AttributeDefinition, DefinitionUpdate};
use crate::model::new_user::{NewIdentity, NewUser};
use crate::model::policies::{POLICIES, PolicyUpdate};
use crate::model::tenant_record::DeletionStep;
use crate::model::user::{FieldHasher, Verification};
use crate::mutation::{MutationKind, TenantChange, UserChange};
use crate::update_mask::Update;
use polynym_identifier::Identifier;

/// The hash of a mutation's arguments, without the id of a created user, which each retry renews.
pub fn request_hash(etag: &str, kind: &MutationKind) -> u64 {
    let mut hash = FieldHasher::default();
    hash.bytes(etag.as_bytes());
    match kind {
        MutationKind::User(_, UserChange::Create(new)) => create(&mut hash, new),
        MutationKind::User(id, change) => {
            hash.bytes(id.as_bytes());
            user_change(&mut hash, change);
        }
        MutationKind::Tenant(TenantChange::Set(update)) => policies(&mut hash, update),
        MutationKind::Tenant(TenantChange::Delete(step)) => {
            let with_users = matches!(step, DeletionStep::Begin { with_users: true });
            hash.number(0, with_users.into());
        }
        MutationKind::Tenant(
            TenantChange::FinishIndexChanges(since) | TenantChange::FinishHistoryChange(since),
        ) => {
            hash.number(0, since.as_millis() as u64);
        }
        // These have no request.
        MutationKind::Tenant(TenantChange::Import(_))
        | MutationKind::ImportHold(_)
        | MutationKind::Bulk(..)
        | MutationKind::Delivery(..) => {}
        MutationKind::ReleaseHold(held) => identifier(&mut hash, held),
    }

    hash.digest()
}

fn user_change(hash: &mut FieldHasher, change: &UserChange) {
    match change {
        UserChange::Create(new) => create(hash, new),
        UserChange::Update(fields) => update(hash, fields),
        UserChange::Link(new) => new_identity(hash, new),
        UserChange::Unlink(old) => identifier(hash, old),
        UserChange::Replace(old, new) => {
            identifier(hash, old);
            new_identity(hash, new);
        }
        UserChange::Verify(own, verified) => {
            identifier(hash, own);
            verification(hash, verified.as_ref());
        }
        UserChange::Merge(other, policy) => {
            hash.bytes(other.as_bytes());
            hash.number(0, *policy as u64);
        }
        UserChange::Unmerge(other) => hash.bytes(other.as_bytes()),
        UserChange::Move(from, own) => {
            hash.bytes(from.as_bytes());
            identifier(hash, own);
        }
        UserChange::Renormalize(own) => identifier(hash, own),
        // The request's key has the method, which determines these completely; that of an import
        // has a hash of the user.
        UserChange::Disable
        | UserChange::Enable
        | UserChange::Delete
        | UserChange::Undelete
        | UserChange::Purge
        | UserChange::Expire
        | UserChange::Import(_)
        | UserChange::Reindex
        | UserChange::Revert(_)
        | UserChange::RemoveMergeFaults => {}
    }
}

fn create(hash: &mut FieldHasher, new: &NewUser) {
    hash.bytes(new.display_name.as_bytes());
    hash.number(0, new.identities.len() as u64);
    for identity in &new.identities {
        new_identity(hash, identity);
    }
    attributes(hash, &new.attributes);
}

fn update(hash: &mut FieldHasher, update: &Update) {
    hash.number(0, update.display_name.is_some().into());
    hash.bytes(update.display_name.as_deref().unwrap_or_default().as_bytes());
    hash.number(1, update.attributes.is_some().into());
    attributes(hash, update.attributes.as_ref().unwrap_or(&BTreeMap::new()));
    for (name, value) in &update.edits {
        hash.bytes(name.as_bytes());
        match value {
            Some(value) => hash.value(value),
            None => hash.number(0, 0),
        }
    }
}

fn policies(hash: &mut FieldHasher, update: &PolicyUpdate) {
    let PolicyUpdate { holds, reserved_handles, phone_regions, attributes, .. } = update;
    hash.number(0, holds.len() as u64);
    for (kind, time) in holds {
        hash.bytes(kind.as_str().as_bytes());
        hash.number(0, time.as_millis() as u64);
    }

    let (mut first, mut later) = (Vec::new(), Vec::new());
    for policy in POLICIES {
        let value = policy.new_number(update);
        match policy.number() {
            None => first.push(value),
            Some(number) => later.extend(value.map(|value| (number, value))),
        }
    }
    for value in first {
        hash.number(value.is_some().into(), value.unwrap_or_default());
    }
    if let Some(reserved) = reserved_handles {
        hash.number(2, reserved.is_some().into());
        reserved.iter().flatten().for_each(|handle| hash.bytes(handle.as_bytes()));
    }
    if let Some(regions) = phone_regions {
        hash.number(10, regions.len() as u64);
        regions.iter().for_each(|region| hash.bytes(region.as_bytes()));
    }
    // Requests without a later policy keep the hashes from before it.
    later.sort_unstable();
    later.into_iter().for_each(|(number, value)| hash.number(number, value));

    definitions(hash, attributes);
}

/// Requests without definitions keep the hashes that they had before definitions existed, and those
/// without a mark the hashes that they had before it existed.
fn definitions(hash: &mut FieldHasher, update: &DefinitionUpdate) {
    if *update == DefinitionUpdate::default() {
        return;
    }
    hash.number(3, update.replace.into());
    for (name, definition) in &update.definitions {
        let AttributeDefinition { indexed, value_type, evidence, find, index_change: _ } =
            *definition;
        hash.bytes(name.as_bytes());
        hash.number(indexed.into(), value_type.map_or(0, |of| of as u64 + 1));
        if evidence {
            hash.number(8, 1);
        }
        if find {
            hash.number(11, 1);
        }
    }
}

fn attributes(hash: &mut FieldHasher, attributes: &BTreeMap<String, Value>) {
    hash.number(0, attributes.len() as u64);
    for (name, value) in attributes {
        hash.bytes(name.as_bytes());
        hash.value(value);
    }
}

fn new_identity(hash: &mut FieldHasher, new: &NewIdentity) {
    identifier(hash, &new.identifier);
    hash.bytes(new.display.as_bytes());
    hash.number(0, new.primary.into());
    verification(hash, new.verification.as_ref());
}

fn identifier(hash: &mut FieldHasher, identifier: &Identifier) {
    hash.bytes(identifier.kind().as_str().as_bytes());
    hash.bytes(identifier.canonical().as_bytes());
}

fn verification(hash: &mut FieldHasher, verification: Option<&Verification>) {
    hash.number(0, verification.is_some().into());
    hash.bytes(verification.map_or("", |verification| &verification.by).as_bytes());
}
