//! Tests of the rules: examples, published vectors, properties, and a short run of a fuzz target
//! for each kind.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use super::rejection::Rule;
use super::trace::Change;
use super::{Identifier, Kind, Normalization, RawIdentifier, Rules};

mod cost;
mod email;
mod first;
mod fourth;
mod fuzz;
mod handle;
mod key;
mod lookalike;
mod phone;
mod properties;
mod rejection;
mod second;
mod social;
mod text;
mod third;
mod trace;
mod url;

/// The canonical form of a valid identifier.
fn form(raw: RawIdentifier<'_>) -> String {
    form_by(Rules::PRESENT, raw)
}

fn form_by(rules: Rules, raw: RawIdentifier<'_>) -> String {
    match rules.parse(raw) {
        Ok(identifier) => identifier.canonical().to_owned(),
        Err(rejection) => panic!("{raw} by {rules:?}: {rejection}"),
    }
}

/// The rule and the position of the rejection of an invalid identifier.
fn broken(raw: RawIdentifier<'_>) -> (Rule, Option<usize>) {
    broken_by(Rules::PRESENT, raw)
}

fn broken_by(rules: Rules, raw: RawIdentifier<'_>) -> (Rule, Option<usize>) {
    match rules.parse(raw) {
        Ok(identifier) => panic!("{raw} was accepted by {rules:?} as {identifier}"),
        Err(rejection) => (rejection.rule(), rejection.position()),
    }
}

fn traced(raw: RawIdentifier<'_>) -> Normalization {
    Identifier::normalize(raw).unwrap()
}

/// Checks properties of any input by the last three versions. Returns the canonical form by the
/// present one, if any.
fn check_any(raw: RawIdentifier<'_>) -> Option<Identifier> {
    check_by(Rules::SECOND, raw);
    check_by(Rules::THIRD, raw);
    let parsed = check_by(Rules::PRESENT, raw);
    assert_eq!(parsed, Identifier::parse(raw).ok(), "{raw}");
    parsed
}

fn check_by(rules: Rules, raw: RawIdentifier<'_>) -> Option<Identifier> {
    let parsed = rules.parse(raw);
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
    if rules == Rules::PRESENT {
        assert_eq!(
            Rules::PRESENT.fold_prefix(identifier.kind(), identifier.canonical()),
            [identifier.canonical()]
        );
    }
    let text = identifier.to_string();
    let read = RawIdentifier::from_text(&text).unwrap();
    assert_eq!(rules.parse(read), Ok(identifier.clone()), "{text}");
    Some(identifier)
}
