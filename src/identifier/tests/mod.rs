//! The rules against their sources: the design's own examples, published vectors, properties, and
//! a bounded run of a fuzz target per kind.

#![allow(clippy::unwrap_used, reason = "a helper of tests may give up")]

use super::rejection::{Rejection, Rule};
use super::trace::Change;
use super::{Identifier, Kind, Normalization, RawIdentifier};

mod cost;
mod email;
mod first;
mod fuzz;
mod handle;
mod key;
mod lookalike;
mod phone;
mod properties;
mod rejection;
mod social;
mod text;
mod trace;
mod url;

/// The canonical form, which must be there.
fn form(raw: RawIdentifier<'_>) -> String {
    match Identifier::parse(raw) {
        Ok(identifier) => identifier.canonical().to_owned(),
        Err(rejection) => panic!("{raw}: {rejection}"),
    }
}

/// Rule and position of the rejection, which must be there.
fn broken(raw: RawIdentifier<'_>) -> (Rule, Option<usize>) {
    match Identifier::parse(raw) {
        Ok(identifier) => panic!("{raw} was accepted as {identifier}"),
        Err(rejection) => (rejection.rule(), rejection.position()),
    }
}

fn traced(raw: RawIdentifier<'_>) -> Normalization {
    Identifier::normalize(raw).unwrap()
}

/// The canonical form given back as what a caller would type.
fn retyped(identifier: &Identifier) -> RawIdentifier<'_> {
    let value = identifier.canonical();
    match identifier.kind() {
        Kind::Email => RawIdentifier::Email(value),
        Kind::Handle => RawIdentifier::Handle(value),
        Kind::Phone => RawIdentifier::Phone { number: value, region: "" },
        Kind::Social => {
            let (provider, subject) = identifier.encoded_social_parts().unwrap();
            RawIdentifier::Social { provider, subject }
        }
        Kind::Url => RawIdentifier::Url(value),
    }
}

/// Checks that hold for any input. Returns the canonical form if there is one.
fn check_any(raw: RawIdentifier<'_>) -> Option<Identifier> {
    let parsed = Identifier::parse(raw);
    let dry_run = Identifier::normalize(raw);
    assert_eq!(
        dry_run.as_ref().map(|run| &run.identifier),
        parsed.as_ref(),
        "a dry run differs from a parse: {raw}"
    );
    let rejected = |rejection: Rejection| assert_eq!(rejection.kind(), raw.kind());
    let identifier = parsed.map_err(rejected).ok()?;
    let again = Identifier::normalize(retyped(&identifier)).unwrap_or_else(|rejection| {
        panic!("{raw} gives {identifier}, which is no input: {rejection}")
    });
    assert_eq!(again.identifier, identifier, "not idempotent: {raw}");
    // WHATWG gives a bare host a slash, which the rules take away again.
    let bare_host = raw.kind() == Kind::Url && identifier.canonical().matches('/').count() == 2;
    if !bare_host {
        let none: &[Change] = &[];
        assert_eq!(again.changes, none, "a canonical form is changed: {identifier}");
    }
    let text = identifier.to_string();
    let read = RawIdentifier::from_text(&text).unwrap();
    assert_eq!(Identifier::parse(read), Ok(identifier.clone()), "{text}");
    Some(identifier)
}
