//! A hash of what a request asks for, to tell a retry from another request under the same id. It is
//! taken from what was understood, since a retry may be spelt otherwise; times that come from the
//! clock do not count.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use super::MutationKind;
use super::update::Update;
use crate::directory::model::attribute::Value;
use crate::directory::model::new_user::{NewIdentity, NewUser};
use crate::directory::model::policies::PolicyUpdate;
use crate::directory::model::tenant_record::DeletionStep;
use crate::directory::model::user::{Fields, Verification};
use crate::identifier::Identifier;

/// The hash for a change of a user. The id of a user who is to be created is new each time, as
/// is the one that stands for no user.
pub fn request_hash(user_id: LocalityId, etag: &str, change: &MutationKind) -> u64 {
    let mut hash = Fields::default();
    hash.bytes(etag.as_bytes());
    if !matches!(
        change,
        MutationKind::Create(_)
            | MutationKind::Release(_)
            | MutationKind::SetTenant(_)
            | MutationKind::DeleteTenant(_)
    ) {
        hash.bytes(user_id.as_bytes());
    }
    match change {
        MutationKind::Create(new) => create(&mut hash, new),
        MutationKind::Update(fields) => update(&mut hash, fields),
        MutationKind::Link(new) => draft(&mut hash, new),
        MutationKind::Unlink(old) => identifier(&mut hash, old),
        MutationKind::Replace(old, new) => {
            identifier(&mut hash, old);
            draft(&mut hash, new);
        }
        MutationKind::Verify(own, verified) => {
            identifier(&mut hash, own);
            verification(&mut hash, verified.as_ref());
        }
        MutationKind::Merge(other, policy) => {
            hash.bytes(other.as_bytes());
            hash.number(0, *policy as u64);
        }
        MutationKind::Unmerge(other) => hash.bytes(other.as_bytes()),
        MutationKind::Move(from, own) => {
            hash.bytes(from.as_bytes());
            identifier(&mut hash, own);
        }
        MutationKind::Renormalize(own) | MutationKind::Release(own) => identifier(&mut hash, own),
        MutationKind::SetTenant(update) => policies(&mut hash, update),
        MutationKind::DeleteTenant(step) => {
            let with_users = matches!(step, DeletionStep::Begin { with_users: true });
            hash.number(0, with_users.into());
        }
        // The method, which is a part of a request's name, says it all.
        MutationKind::Disable
        | MutationKind::Enable
        | MutationKind::Delete
        | MutationKind::Undelete
        | MutationKind::Purge
        | MutationKind::Expire => {}
    }
    hash.digest()
}

fn create(hash: &mut Fields, new: &NewUser) {
    hash.bytes(new.display_name.as_bytes());
    hash.number(0, new.identities.len() as u64);
    for identity in &new.identities {
        draft(hash, identity);
    }
    attributes(hash, &new.attributes);
}

fn update(hash: &mut Fields, update: &Update) {
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

fn policies(hash: &mut Fields, update: &PolicyUpdate) {
    let PolicyUpdate {
        holds,
        hide_unverified,
        verified_wins,
        keep_primary,
        keep_last,
        allow_lookalikes,
        ..
    } = update;
    hash.number(0, holds.len() as u64);
    for (kind, time) in holds {
        hash.bytes(kind.as_str().as_bytes());
        hash.number(0, time.as_millis() as u64);
    }
    for switch in [hide_unverified, verified_wins, keep_primary, keep_last, allow_lookalikes] {
        hash.number(switch.is_some().into(), switch.unwrap_or_default().into());
    }
    for window in [update.restore_window, update.undo_window] {
        hash.number(window.is_some().into(), window.unwrap_or_default().as_millis() as u64);
    }
    // Requests from before there were reserved handles keep their fingerprints.
    if let Some(reserved) = &update.reserved_handles {
        hash.number(2, reserved.is_some().into());
        reserved.iter().flatten().for_each(|handle| hash.bytes(handle.as_bytes()));
    }
}

fn attributes(hash: &mut Fields, attributes: &BTreeMap<String, Value>) {
    hash.number(0, attributes.len() as u64);
    for (name, value) in attributes {
        hash.bytes(name.as_bytes());
        hash.value(value);
    }
}

fn draft(hash: &mut Fields, draft: &NewIdentity) {
    identifier(hash, &draft.identifier);
    hash.bytes(draft.display.as_bytes());
    hash.number(0, draft.primary.into());
    verification(hash, draft.verification.as_ref());
}

fn identifier(hash: &mut Fields, identifier: &Identifier) {
    hash.bytes(identifier.kind().as_str().as_bytes());
    hash.bytes(identifier.canonical().as_bytes());
}

fn verification(hash: &mut Fields, verification: Option<&Verification>) {
    hash.number(0, verification.is_some().into());
    hash.bytes(verification.map_or("", |verification| &verification.by).as_bytes());
}
