//! A line of an import about a user who exists: the user gets what the line has, and may lose what
//! it lacks.

use std::borrow::Cow;

use locality_uuid::LocalityId;

use super::{Mutation, MutationKind, PriorRequest, UserChange, import, journal, user_edits};
use crate::error::{Error, Invalid};
use crate::history_part::HistoryPart;
use crate::model::event::{Event, Origin};
use crate::model::imported_user::reimport::{LineField, OnExisting};
use crate::model::imported_user::{
    Effect, Imported, ImportedIdentity, ImportedUser, OnConflict, SkippedIdentity,
};
use crate::model::record::{Guarded, Record};
use crate::model::user::{Identity, State, User};
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, WriteSet};

/// The newest events of a user that are read. One that an undo deleted hardly changes afterwards.
const MAX_EVENTS: usize = 16;

/// Creates the user of a line, or changes the one who exists as the options of the import say.
/// Users whom an undo deleted are in the way of no line: it restores the one that it is about, and
/// takes identities from the others.
pub fn line(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
) -> Result<WriteSet, DecideError> {
    let outcome = create_or_change(mutation, read_set, id, imported, &[]);
    if !is_in_conflict(&outcome, read_set) {
        return outcome;
    }
    let undone = undone_users(mutation, read_set, id, imported)?;
    let is_known = imported.has_id || imported.is_found;
    let subject = undone.iter().find(|user| !is_known || user.id() == id);
    match (subject, outcome) {
        (Some(before), _) => restore(mutation, read_set, before, imported, &undone),
        (None, _) if !undone.is_empty() => {
            create_or_change(mutation, read_set, id, imported, &undone)
        }
        (None, Err(DecideError::Rejected(Error::UserDeleted { .. })))
            if imported.reimport.on_existing == OnExisting::Skip =>
        {
            Ok(import::existing(id))
        }
        (None, outcome) => outcome,
    }
}

/// Decides a line that was imported before: it is done, unless its user was undone since.
pub fn repeat(
    mutation: &Mutation,
    read_set: &ReadSet,
    prior: PriorRequest,
    id: LocalityId,
    imported: &ImportedUser,
) -> Result<WriteSet, DecideError> {
    let subject = prior.subject.ok_or(Error::UserNotFound)?;
    if !is_void(mutation, read_set, prior, imported)? {
        return Ok(WriteSet { is_repeated: true, ..import::existing(subject) });
    }
    if !imported.has_id && !imported.is_found {
        let undone = undone_users(mutation, read_set, subject, imported)?;
        if let Some(before) = undone.first().filter(|user| user.id() == subject) {
            return restore(mutation, read_set, before, imported, &undone);
        }
    }
    line(mutation, read_set, id, imported)
}

/// Whether a deletion, or identities of others, may be in the way of a line.
fn is_in_conflict(outcome: &Result<WriteSet, DecideError>, read_set: &ReadSet) -> bool {
    let is_deleted = |write_set: &WriteSet| {
        let record = write_set.subject.and_then(|id| read_set.user(id));
        record.is_some_and(|record| matches!(record.user.state, State::Deleted { .. }))
    };
    match outcome {
        Ok(write_set) => match &write_set.report {
            MutationReport::Imported(Imported { effect: Effect::Unchanged, skipped }) => {
                !skipped.is_empty() || is_deleted(write_set)
            }
            MutationReport::Imported(imported) => !imported.skipped.is_empty(),
            _ => false,
        },
        Err(DecideError::Rejected(error)) => matches!(
            error,
            Error::IdentityTaken { .. }
                | Error::IdentityConfusable { .. }
                | Error::UserExists
                | Error::UserDeleted { .. }
        ),
        Err(DecideError::NeedsReads(_)) => false,
    }
}

fn create_or_change(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
    undone: &[&Record],
) -> Result<WriteSet, DecideError> {
    let is_there = imported.has_id && imported.reimport.finds_users() && {
        let present = read_set.read_user(id)?;
        present.is_some_and(|record| record.user.tenant == mutation.tenant)
    };
    match is_there || imported.is_found {
        true => change(mutation, read_set, id, imported, undone),
        false => import::import(mutation, read_set, id, imported, undone),
    }
}

/// Changes the user as the line says.
fn change(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
    undone: &[&Record],
) -> Result<WriteSet, DecideError> {
    let before = mutation.changeable(read_set, id)?;
    if !imported.has_id && !imported.names(&before.user) {
        return Err(Error::UserExists.into());
    }
    if imported.reimport.on_existing == OnExisting::Skip {
        return Ok(import::existing(id));
    }
    let imported = &*imported.for_user(&before.user);

    let (kept, skipped) = accepted(mutation, read_set, before, imported, undone)?;
    let mut after = before.clone();
    apply(mutation, &kept, &mut after)?;
    after.user.assign_primaries();

    let changes = journal::changes(Some(before), &after);
    let effect = match changes.is_empty() {
        true => Effect::Unchanged,
        false => Effect::Changed(Box::new(changes)),
    };
    let mut transitions = vec![UserTransition::new(before, after)];
    transitions.extend(import::givers(mutation, id, &kept.identities, undone));
    let write_set = plan_writes(mutation, read_set, transitions, ClaimDiff::new())?;
    let report = MutationReport::Imported(Imported { effect, skipped });
    Ok(WriteSet { report, ..write_set })
}

/// Restores the user of a line, who becomes what the line would have created. `undone` are the
/// users that may lose identities.
fn restore(
    mutation: &Mutation,
    read_set: &ReadSet,
    before: &Record,
    imported: &ImportedUser,
    undone: &[&Record],
) -> Result<WriteSet, DecideError> {
    let (id, is_merged) = (before.id(), matches!(imported.state, State::Merged { .. }));
    if is_merged || imported.is_found && !imported.has_id && !imported.names(&before.user) {
        return Err(Error::UserExists.into());
    }
    let kind = MutationKind::User(id, UserChange::Import(Box::new(imported.clone())));
    let mutation = &Mutation { kind, ..mutation.clone() };
    let (kept, skipped) = accepted(mutation, read_set, before, imported, undone)?;
    mutation.policies.check_types(&kept.attributes)?;
    let after = restored(mutation, before, &kept);
    let mut transitions = vec![UserTransition::new(before, after)];
    transitions.extend(import::givers(mutation, id, &kept.identities, undone));
    let write_set = plan_writes(mutation, read_set, transitions, ClaimDiff::new())?;
    let report = MutationReport::Imported(Imported { effect: Effect::Restored, skipped });
    Ok(WriteSet { report, ..write_set })
}

/// The line for the user `before`, without the identities that are skipped.
///
/// # Errors
/// [`Error::IdentityReserved`], unless such identities are skipped.
fn accepted<'i>(
    mutation: &Mutation,
    read_set: &ReadSet,
    before: &Record,
    imported: &'i ImportedUser,
    undone: &[&Record],
) -> Result<(Cow<'i, ImportedUser>, Vec<SkippedIdentity>), DecideError> {
    let user = &before.user;
    if imported.on_conflict == OnConflict::Reject {
        let is_new =
            |identity: &&ImportedIdentity| user.identity(&identity.new.identifier).is_none();
        let new: Vec<_> = imported.identities.iter().filter(is_new).cloned().collect();
        import::check_reserved(mutation, imported, &new)?;
        return Ok((Cow::Borrowed(imported), Vec::new()));
    }
    let present = Some(user);
    let (kept, skipped) =
        import::without_conflicts(mutation, read_set, user.id, imported, present, undone)?;
    Ok((Cow::Owned(kept), skipped))
}

/// The user that this line is about and those that own its identities, as far as an undo deleted
/// them: first the user, then in the order of the identities.
fn undone_users<'v>(
    mutation: &Mutation,
    read_set: &'v ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
) -> Result<Vec<&'v Record>, DecideError> {
    let keys = imported.identities.iter().flat_map(|identity| import::keys(mutation, identity));
    let claims = read_set.read_claims(keys.collect())?;
    let mut ids = vec![id];
    for (_, claim) in claims.iter().filter(|(_, claim)| claim.hold.is_none()) {
        ids.extend(claim.owner.filter(|owner| !ids.contains(owner)));
    }
    let mut users = read_set.read_users(&ids)?;
    users.retain(|record| is_deleted(mutation, record));
    let parts: Vec<_> = users.iter().map(|record| newest_events(record.id())).collect();
    read_set.read_histories(&parts)?;

    let mut undone = Vec::new();
    for record in users {
        if is_undone(mutation, read_set, record)? {
            undone.push(record);
        }
    }
    Ok(undone)
}

/// Whether the user of a line, which was imported at the time of `prior`, was undone since: by an
/// undo that deleted the user, or that undid the operation to which the line belongs.
fn is_void(
    mutation: &Mutation,
    read_set: &ReadSet,
    prior: PriorRequest,
    imported: &ImportedUser,
) -> Result<bool, DecideError> {
    let Some(id) = prior.subject else { return Ok(false) };
    let Some(record) = read_set.read_user(id)? else { return Ok(false) };
    if record.user.tenant != mutation.tenant {
        return Ok(false);
    }
    if is_undone(mutation, read_set, record)? {
        return Ok(true);
    }
    // A line that only creates users does not belong to one operation.
    if !imported.reimport.finds_users() {
        return Ok(false);
    }
    let events = &read_set.read_history(newest_events(id))?.events;
    let operation_id = &mutation.origin.operation_id;
    let undoes = |event: &Event| {
        let origin = &event.origin;
        event.time >= prior.time && is_by_undo(event) && origin.operation_id == *operation_id
    };
    Ok(events.iter().any(undoes))
}

/// Whether an undo deleted the user. One that undoes the restoration of a user puts an earlier
/// deletion back.
fn is_undone(
    mutation: &Mutation,
    read_set: &ReadSet,
    record: &Record,
) -> Result<bool, DecideError> {
    if !is_deleted(mutation, record) {
        return Ok(false);
    }
    let events = &read_set.read_history(newest_events(record.id()))?.events;
    let deletes =
        |event: &&Event| event.changes.state.is_some_and(|(_, after)| after == record.user.state);
    Ok(events.iter().rfind(deletes).is_some_and(is_by_undo))
}

fn is_by_undo(event: &Event) -> bool {
    event.origin.method == Origin::UNDO
}

/// Whether the user is deleted, but not due to be purged.
fn is_deleted(mutation: &Mutation, record: &Record) -> bool {
    record.user.tenant == mutation.tenant
        && matches!(record.user.state,
            State::Deleted { purge_time, .. } if !mutation.is_past(purge_time))
}

const fn newest_events(user: LocalityId) -> HistoryPart {
    HistoryPart { user, cursor: None, limit: MAX_EVENTS }
}

/// A user as the line would have created it. It keeps its id, its times and its internals.
fn restored(mutation: &Mutation, before: &Record, imported: &ImportedUser) -> Record {
    let time = mutation.now.time.after(before.user.update_time);
    let created = imported.record(before.id(), &mutation.tenant, time);
    let mut after = before.clone();
    after.user.display_name.clone_from(&created.user.display_name);
    after.user.attributes.clone_from(&created.user.attributes);
    after.user.state = created.user.state;
    after.internals.disabled = created.internals.disabled;
    let has = |guarded: &Guarded| created.user.identity(&guarded.handle).is_some();
    after.internals.guards.retain(has);
    let mut identities = Vec::with_capacity(created.user.identities.len());
    for identity in created.user.identities {
        identities.push(match before.user.identity(&identity.identifier) {
            Some(present) => Identity {
                display: identity.display,
                verification: identity.verification,
                primary: identity.primary,
                ..present.clone()
            },
            None => {
                after.guard(&identity.identifier, &mutation.policies);
                identity
            }
        });
    }
    after.user.identities = identities;
    after
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
    for identity in &imported.identities {
        user_edits::link(mutation, record, &identity.new, |time| identity.identity(time));
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
        let is_listed =
            imported.identities.iter().any(|identity| identity.new.identifier == *identifier);
        if is_listed || !imported.clears_identity(identifier) {
            continue;
        }
        let (lost, _) = record.remove_identity(n);
        without_primary.extend(lost.primary.then_some(lost.identifier.kind()));
    }
    let mut kinds = record.user.identities.iter().map(|identity| identity.identifier.kind());
    if mutation.policies.keep_primary && kinds.any(|kind| without_primary.contains(&kind)) {
        return Err(Error::PrimaryIdentity);
    }
    let is_empty = record.user.identities.is_empty() && imported.identities.is_empty();
    if mutation.policies.keep_last && had_some && is_empty {
        return Err(Error::LastIdentity);
    }
    Ok(())
}
