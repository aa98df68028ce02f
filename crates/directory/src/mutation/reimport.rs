//! A line of an import about a user who exists: the user gets what the line has, and may lose what
//! it lacks.

use std::borrow::Cow;

use locality_uuid::LocalityId;

use super::{Mutation, import, journal, user_edits};
use crate::error::{Error, Invalid};
use crate::model::imported_user::reimport::{LineField, OnExisting};
use crate::model::imported_user::{Effect, Imported, ImportedIdentity, ImportedUser, OnConflict};
use crate::model::record::Record;
use crate::model::user::{State, User};
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, WriteSet};

/// Creates the user of a line, or changes the one who exists as the options of the import say.
pub fn line(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
) -> Result<WriteSet, DecideError> {
    let is_there = imported.has_id && imported.reimport.finds_users() && {
        let present = read_set.read_user(id)?;
        present.is_some_and(|record| record.user.tenant == mutation.tenant)
    };
    match is_there || imported.is_found {
        true => change(mutation, read_set, id, imported),
        false => import::import(mutation, read_set, id, imported),
    }
}

/// Changes the user as the line says.
fn change(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
) -> Result<WriteSet, DecideError> {
    let before = mutation.changeable(read_set, id)?;
    if !imported.has_id && !imported.names(&before.user) {
        return Err(Error::UserExists.into());
    }
    if imported.reimport.on_existing == OnExisting::Skip {
        return Ok(import::existing(id));
    }
    let imported = &*imported.for_user(&before.user);

    let (kept, skipped) = match imported.on_conflict {
        OnConflict::Reject => {
            let is_new =
                |own: &&ImportedIdentity| before.user.identity(&own.new.identifier).is_none();
            let new: Vec<_> = imported.identities.iter().filter(is_new).cloned().collect();
            import::check_reserved(mutation, imported, &new)?;
            (Cow::Borrowed(imported), Vec::new())
        }
        OnConflict::SkipIdentity => {
            let (kept, skipped) =
                import::without_conflicts(mutation, read_set, id, imported, Some(&before.user))?;
            (Cow::Owned(kept), skipped)
        }
    };
    let mut after = before.clone();
    apply(mutation, &kept, &mut after)?;
    after.user.assign_primaries();

    let changes = journal::changes(Some(before), &after);
    let effect = match changes.is_empty() {
        true => Effect::Unchanged,
        false => Effect::Changed(Box::new(changes)),
    };
    let altered = UserTransition::new(before, after);
    let write_set = plan_writes(mutation, read_set, vec![altered], ClaimDiff::new())?;
    let report = MutationReport::Imported(Imported { effect, skipped });
    Ok(WriteSet { report, ..write_set })
}

/// Whether the line of a mutation leaves this user as it is.
pub fn leaves(mutation: &Mutation, imported: &ImportedUser, user: &User) -> bool {
    let mut record = Record::new(user.clone());
    let is_changeable = matches!(user.state, State::Active | State::Disabled);
    let imported = &*imported.for_user(user);
    is_changeable && apply(mutation, imported, &mut record).is_ok() && record.user == *user
}

fn apply(mutation: &Mutation, imported: &ImportedUser, record: &mut Record) -> Result<(), Error> {
    let reimport = &*imported.reimport;
    mutation.policies.check_types(&imported.attributes)?;
    let user = &mut record.user;
    let has_name = !imported.display_name.is_empty();
    if has_name || reimport.clears(|field| *field == LineField::DisplayName) {
        user.display_name.clone_from(&imported.display_name);
    }
    user.attributes.retain(|name, _| {
        imported.attributes.contains_key(name)
            || !reimport.clears(|field| field.has_attribute(name))
    });
    user.attributes.extend(imported.attributes.clone());
    match imported.state {
        _ if !imported.has_state => {}
        state @ (State::Active | State::Disabled) => user.state = state,
        State::Deleted { .. } | State::Merged { .. } => {
            let message = "a line makes a user who exists active or disabled; other calls delete \
                and merge";
            return Err(Error::invalid(Invalid::Field, "user.state", message));
        }
    }
    remove_identities(mutation, imported, record)?;
    for own in &imported.identities {
        user_edits::link(mutation, record, &own.new, |time| own.identity(time));
    }
    Ok(())
}

/// Removes the identities that a replacing line lacks, as far as the policies allow it.
fn remove_identities(
    mutation: &Mutation,
    imported: &ImportedUser,
    record: &mut Record,
) -> Result<(), Error> {
    let had_some = !record.user.identities.is_empty();
    let mut without_primary = Vec::new();
    for n in (0..record.user.identities.len()).rev() {
        let identifier = &record.user.identities[n].identifier;
        let is_listed = imported.identities.iter().any(|own| own.new.identifier == *identifier);
        if is_listed || !imported.reimport.clears(|field| field.has_identity(identifier)) {
            continue;
        }
        let (lost, _) = record.remove_identity(n);
        without_primary.extend(lost.primary.then_some(lost.identifier.kind()));
    }
    let mut kinds = record.user.identities.iter().map(|own| own.identifier.kind());
    if mutation.policies.keep_primary && kinds.any(|kind| without_primary.contains(&kind)) {
        return Err(Error::PrimaryIdentity);
    }
    let is_empty = record.user.identities.is_empty() && imported.identities.is_empty();
    if mutation.policies.keep_last && had_some && is_empty {
        return Err(Error::LastIdentity);
    }
    Ok(())
}
