//! Moving identities from older to newer rules of normalisation.

use locality_uuid::LocalityId;

use super::{Mutation, user_edits};
use crate::error::{Error, Invalid};
use crate::model::user::Identity;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::read_set::{DecideError, ReadSet, WriteSet};
use polynym_identifier::{Identifier, Kind, RawIdentifier, Rules};

/// Normalises one identity of a user, unless it has the mutation's rules or newer ones.
pub fn renormalize(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    identifier: &Identifier,
) -> Result<WriteSet, DecideError> {
    let before = mutation.subject(read_set, id)?;
    let n = user_edits::position(&before.user, identifier)?;
    let mut after = before.clone();
    let identity = &mut after.user.identities[n];
    if identity.rules_version < mutation.rules.version() {
        identity.identifier = parse(identity, mutation.rules)?;
        identity.rules_version = mutation.rules.version();
        let renormalized = identity.identifier.clone();
        after.unguard(identifier);
        after.guard(&renormalized, &mutation.policies);
    }

    plan_writes(mutation, read_set, vec![UserTransition::new(before, after)], ClaimDiff::new())
}

/// Normalises an identity by `rules`: from the text as typed, except for phones, whose region is
/// not stored, and for social accounts, which may have a display name instead.
pub fn parse(identity: &Identity, rules: Rules) -> Result<Identifier, Error> {
    let (canonical, typed) = (identity.identifier.canonical(), identity.display.as_str());
    let raw = match identity.identifier.kind() {
        Kind::Email => RawIdentifier::Email(typed),
        Kind::Handle => RawIdentifier::Handle(typed),
        Kind::Phone => RawIdentifier::Phone { number: canonical, region: "" },
        Kind::Social => {
            let parts = identity.identifier.encoded_social_parts();
            let (provider, subject) = parts.unwrap_or_default();
            RawIdentifier::Social { provider, subject }
        }
        Kind::Url => RawIdentifier::Url(typed),
    };

    rules.parse(raw).map_err(|rejection| {
        Error::invalid(Invalid::Identifier, "identifier", rejection.to_string())
    })
}
