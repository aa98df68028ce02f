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

/// Normalises an identity by `rules`: from the text as typed if that spells the identity by the
/// rules that normalised it, or else from its canonical form. The text of a phone lacks its region,
/// and that of a social account may be a display name.
pub fn parse(identity: &Identity, rules: Rules) -> Result<Identifier, Error> {
    let Identity { identifier, display, rules_version, .. } = identity;
    let spells_it = |typed: &RawIdentifier<'_>| {
        let old_rules = Rules::known(*rules_version);
        old_rules.is_some_and(|old| old.parse(*typed).is_ok_and(|parsed| parsed == *identifier))
    };
    let typed = typed(identifier.kind(), display).filter(spells_it);
    rules.parse(typed.unwrap_or_else(|| canonical(identifier))).map_err(|rejection| {
        Error::invalid(Invalid::Identifier, "identifier", rejection.to_string())
    })
}

/// The display form as a typed identifier; none for kinds whose display form is not all of it.
pub fn typed(kind: Kind, display: &str) -> Option<RawIdentifier<'_>> {
    match kind {
        Kind::Email => Some(RawIdentifier::Email(display)),
        Kind::Handle => Some(RawIdentifier::Handle(display)),
        Kind::Url => Some(RawIdentifier::Url(display)),
        Kind::Phone | Kind::Social => None,
    }
}

/// The canonical form as a typed identifier.
fn canonical(identifier: &Identifier) -> RawIdentifier<'_> {
    let canonical = identifier.canonical();
    match identifier.kind() {
        Kind::Phone => RawIdentifier::Phone { number: canonical, region: "" },
        Kind::Social => {
            let parts = identifier.encoded_social_parts();
            let (provider, subject) = parts.unwrap_or_default();
            RawIdentifier::Social { provider, subject }
        }
        kind => typed(kind, canonical).unwrap_or(RawIdentifier::Handle(canonical)),
    }
}
