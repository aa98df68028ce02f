//! Tests of the rules: examples, published vectors, properties, and a short run of a fuzz target
//! for each kind.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use super::rejection::Rule;
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

/// The canonical form of a valid identifier.
fn form(raw: RawIdentifier<'_>) -> String {
    match Identifier::parse(raw) {
        Ok(identifier) => identifier.canonical().to_owned(),
        Err(rejection) => panic!("{raw}: {rejection}"),
    }
}

/// The rule and the position of the rejection of an invalid identifier.
fn broken(raw: RawIdentifier<'_>) -> (Rule, Option<usize>) {
    match Identifier::parse(raw) {
        Ok(identifier) => panic!("{raw} was accepted as {identifier}"),
        Err(rejection) => (rejection.rule(), rejection.position()),
    }
}

fn traced(raw: RawIdentifier<'_>) -> Normalization {
    Identifier::normalize(raw).unwrap()
}

/// The canonical form as typed text.
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

/// Checks properties of any input. Returns the canonical form, if any.
fn check_any(raw: RawIdentifier<'_>) -> Option<Identifier> {
    let parsed = Identifier::parse(raw);
    let dry_run = Identifier::normalize(raw);
    assert_eq!(
        dry_run.as_ref().map(|run| &run.identifier),
        parsed.as_ref(),
        "a dry run differs from a parse: {raw}"
    );
    let identifier = match parsed {
        Ok(identifier) => identifier,
        Err(rejection) => {
            assert_eq!(rejection.kind(), raw.kind());
            return None;
        }
    };
    let again = Identifier::normalize(retyped(&identifier)).unwrap_or_else(|rejection| {
        panic!("{raw} gives {identifier}, which is rejected: {rejection}")
    });
    assert_eq!(again.identifier, identifier, "not idempotent: {raw}");
    // WHATWG adds a slash to a bare host, which the rules remove.
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
