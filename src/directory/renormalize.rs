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

/// What `rules` make of an identity: of what was typed, but for what that leaves out, which is a phone number's region and
/// an account's provider.
pub fn parse(identity: &Identity, rules: Rules) -> Result<Identifier, Error> {
    let (canonical, typed) = (identity.identifier.canonical(), identity.display.as_str());
    let raw = match identity.identifier.kind() {
        Kind::Email => RawIdentifier::Email(typed),
        Kind::Handle => RawIdentifier::Handle(typed),
        Kind::Phone => RawIdentifier::Phone { number: canonical, region: "" },
        Kind::Social => {
            let provider = identity.identifier.social_parts().map_or("", |(provider, _)| provider);
            RawIdentifier::Social { provider, subject: typed }
        }
        Kind::Url => RawIdentifier::Url(typed),
    };
    rules.parse(raw).map_err(|rejection| Error::invalid(Invalid::Identifier, "identifier", rejection.to_string()))
}
