//! Tests of search.

mod filters;
mod fuzz;
mod leads;
mod scalars;
mod tokens;

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use super::Filter;
use crate::Unknown;
use crate::error::{Error, Invalid};
use crate::model::attribute::Value;
use crate::model::tenant::Tenant;
use crate::model::user::{Identity, State, User};
use crate::timestamp::Timestamp;
use polynym_identifier::{Identifier, RawIdentifier, Rules};

/// A user with these attributes and identities.
fn user(attributes: &[(&str, Value)], identities: &[&str]) -> User {
    let time = Timestamp::from_millis(1_000);
    let identity = |text: &&str| Identity {
        identifier: Identifier::parse(RawIdentifier::from_text(text).unwrap()).unwrap(),
        display: String::new(),
        rules_version: 2,
        link_time: time,
        import_time: None,
        verification: None,
        primary: false,
        unknown: Unknown::default(),
    };
    let attributes: BTreeMap<_, _> =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    User {
        id: LocalityId::from([7; 16]),
        tenant: Tenant::DEFAULT,
        display_name: "Joe Smith".to_owned(),
        identities: identities.iter().map(identity).collect(),
        attributes,
        state: State::Active,
        create_time: time,
        update_time: Timestamp::from_millis(2_000),
        unknown: Unknown::default(),
    }
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn list(items: &[&str]) -> Value {
    Value::List(items.iter().map(ToString::to_string).collect())
}

fn filter(text: &str) -> Filter {
    Filter::parse(text, &[Rules::PRESENT]).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The message of the error for a filter.
fn message_of(text: &str) -> String {
    match Filter::parse(text, &[Rules::PRESENT]) {
        Err(Error::Invalid { what: Invalid::Filter, field, message }) if field == "filter" => {
            message
        }
        other => panic!("{text}: {other:?}"),
    }
}
