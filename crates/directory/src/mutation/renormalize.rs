//! Moving identities from older to newer rules of normalisation.

use locality_uuid::LocalityId;

use super::{Mutation, user_edits};
use crate::model::user::Identity;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::read_set::{DecideError, ReadSet, WriteSet};
use polynym_identifier::{Identifier, Kind, RawIdentifier, Rules};

/// Normalises one identity of a user, unless it has the mutation's rules or newer ones, or they
/// reject it.
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
    if let Some(renormalized) = renormalized(identity, mutation.rules) {
        identity.identifier = renormalized.clone();
        identity.rules_version = mutation.rules.version();
        after.unguard(identifier);
        after.guard(&renormalized, &mutation.policies);
    }

    plan_writes(mutation, read_set, vec![UserTransition::new(before, after)], ClaimDiff::new())
}

/// The form of an identity of older rules by `rules`. None if it has these rules or newer ones, or
/// if they reject it: then it keeps its form and its rules.
pub fn renormalized(identity: &Identity, rules: Rules) -> Option<Identifier> {
    renormalized_form(&identity.identifier, &identity.display, identity.rules_version, rules)
}

/// [`renormalized`], for an identifier of this version with this display form.
pub fn renormalized_form(
    identifier: &Identifier,
    display: &str,
    version: u32,
    rules: Rules,
) -> Option<Identifier> {
    let is_older = version < rules.version();
    is_older.then(|| rules.parse(typed_by(identifier, display, version)).ok()).flatten()
}

/// The form of an identifier by `rules`, whichever rules normalised it, and the version of the
/// rules that give this form: older ones if these reject it.
pub fn present_form(identifier: &Identifier, display: &str, rules: Rules) -> (Identifier, u32) {
    if rules.has(identifier) {
        return (identifier.clone(), rules.version());
    }
    let older = Rules::known_before(rules).find(|older| older.has(identifier));
    let version = older.map_or(Rules::UNNAMED, Rules::version);
    match renormalized_form(identifier, display, version, rules) {
        Some(present) => (present, rules.version()),
        None => (identifier.clone(), version),
    }
}

/// An identity as typed: its display form, if the rules that normalised it give its identifier for
/// that. Imported users may have another one. Phones have no region there, and social accounts may
/// have the name of the account.
fn typed_by<'i>(identifier: &'i Identifier, display: &'i str, version: u32) -> RawIdentifier<'i> {
    let spells_it = |typed: &RawIdentifier<'_>| {
        let parsed = Rules::known(version).map(|rules| rules.parse(*typed));
        matches!(parsed, Some(Ok(parsed)) if parsed == *identifier)
    };
    let displayed = typed(identifier.kind(), display).filter(spells_it);
    displayed.unwrap_or_else(|| identifier.as_typed())
}

/// The display form as a typed identifier; none for kinds whose display form is not all of it.
fn typed(kind: Kind, display: &str) -> Option<RawIdentifier<'_>> {
    match kind {
        Kind::Email => Some(RawIdentifier::Email(display)),
        Kind::Handle => Some(RawIdentifier::Handle(display)),
        Kind::Url => Some(RawIdentifier::Url(display)),
        Kind::Phone | Kind::Social => None,
    }
}
