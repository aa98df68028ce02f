//! The change of one user by a bulk change.

use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::bulk::progress::BulkEffect;
use crate::model::user::State;
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, WriteSet};
use crate::mutation::{Mutation, UserChange};
use crate::search::Filter;

/// Changes a user if the filter matches it now. A deleted or merged user stays as it is.
pub fn change_matching(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    filter: &Filter,
    change: &UserChange,
) -> Result<WriteSet, DecideError> {
    let unchanged = |effect| Ok(with_effect(WriteSet::unchanged(Some(id)), effect));
    let record = match mutation.present(read_set, id) {
        Err(DecideError::Rejected(Error::UserNotFound)) => return unchanged(BulkEffect::Unmatched),
        present => present?,
    };
    if !filter.matches(&record.user) {
        return unchanged(BulkEffect::Unmatched);
    }
    match (record.user.state, change) {
        (State::Deleted { .. }, UserChange::Delete) => return unchanged(BulkEffect::Unchanged),
        (State::Deleted { .. } | State::Merged { .. }, _) => return unchanged(BulkEffect::Skipped),
        (State::Active | State::Disabled, _) => {}
    }

    let write_set = mutation.edit(read_set, id, change)?;
    let effect = match write_set.writes.is_empty() {
        true => BulkEffect::Unchanged,
        false => BulkEffect::Changed,
    };
    Ok(with_effect(write_set, effect))
}

fn with_effect(write_set: WriteSet, effect: BulkEffect) -> WriteSet {
    WriteSet { report: MutationReport::BulkUser(effect), ..write_set }
}
