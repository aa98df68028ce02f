//! Moving identities that older rules made to later ones.

use super::settle::{Changes, Transition, settle};
use super::view::Stop;
use super::{Effects, Error, Identity, Invalid, Mutation, View, change};
use crate::identifier::{Identifier, Kind, RawIdentifier, Rules};

/// Moves one identity of the mutation's user. Nothing happens where it is of the mutation's rules, or of later ones.
pub fn renormalize(mutation: &Mutation, view: &View, identifier: &Identifier) -> Result<Effects, Stop> {
    let before = mutation.subject(view)?;
    let n = change::position(&before.user, identifier)?;
    let mut after = before.clone();
    let identity = &mut after.user.identities[n];
    if identity.rules_version < mutation.rules.version() {
        identity.identifier = parse(identity, mutation.rules)?;
        identity.rules_version = mutation.rules.version();
        let made = identity.identifier.clone();
        after.unguard(identifier);
        after.guard(&made, &mutation.policies);
    }
    settle(mutation, view, vec![Transition::new(before, after)], Changes::new())
}

/// What `rules` make of an identity: of what was typed, but for phones, whose region was not kept,
/// and for accounts, which may be shown by the name that their provider gives them.
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
    rules.parse(raw).map_err(|rejection| Error::invalid(Invalid::Identifier, "identifier", rejection.to_string()))
}
