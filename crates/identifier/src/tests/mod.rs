//! Tests of the rules: examples, published vectors, properties, and a short run of a fuzz target
//! for each kind.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use super::rejection::Rule;
use super::trace::Change;
use super::{Identifier, Kind, Normalization, RawIdentifier, Rules};

mod cost;
mod earlier;
mod email;
mod fuzz;
mod handle;
mod key;
mod lookalike;
mod pages;
mod phone;
mod properties;
mod rejection;
mod services;
mod social;
mod text;
mod trace;
mod url;

/// The canonical form of a valid identifier.
fn form(raw: RawIdentifier<'_>) -> String {
    match Rules::PRESENT.parse(raw) {
        Ok(identifier) => identifier.canonical().to_owned(),
        Err(rejection) => panic!("{raw}: {rejection}"),
    }
}

/// The rule and the position of the rejection of an invalid identifier.
fn broken(raw: RawIdentifier<'_>) -> (Rule, Option<usize>) {
    match Rules::PRESENT.parse(raw) {
        Ok(identifier) => panic!("{raw} was accepted as {identifier}"),
        Err(rejection) => (rejection.rule(), rejection.position()),
    }
}

fn traced(raw: RawIdentifier<'_>) -> Normalization {
    Identifier::normalize(raw).unwrap()
}

/// Checks properties of any input. Returns the canonical form, if any.
fn check_any(raw: RawIdentifier<'_>) -> Option<Identifier> {
    let rules = Rules::PRESENT;
    let parsed = rules.parse(raw);
    assert_eq!(parsed.as_ref().ok(), Identifier::parse(raw).as_ref().ok(), "{raw}");
    let dry_run = rules.normalize(raw);
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
    let again = rules.normalize(identifier.as_typed()).unwrap_or_else(|rejection| {
        panic!("{raw} gives {identifier}, which is rejected: {rejection}")
    });
    assert_eq!(again.identifier, identifier, "not idempotent: {raw}");
    // WHATWG adds a slash to a bare host, which the rules remove.
    let bare_host = raw.kind() == Kind::Url && identifier.canonical().matches('/').count() == 2;
    if !bare_host {
        let none: &[Change] = &[];
        assert_eq!(again.changes, none, "a canonical form is changed: {identifier}");
    }
    let folded = rules.fold_prefix(identifier.kind(), identifier.canonical());
    assert!(folded.iter().any(|start| start == identifier.canonical()), "{folded:?}");
    let text = identifier.to_string();
    let read = RawIdentifier::from_text(&text).unwrap();
    assert_eq!(rules.parse(read), Ok(identifier.clone()), "{text}");
    Some(identifier)
}
