//! Converts the messages of an import to the directory's types.

use std::collections::BTreeMap;

use prost_types::Timestamp as ProtoTimestamp;

use crate::grpc::convert;
use polynym_directory::{
    Error, Invalid, RawIdentity, Timestamp, Value, Verification,
    service::transfer::import::raw::RawHold, service::transfer::import::raw::RawImportedIdentity,
    service::transfer::import::raw::RawInternals, service::transfer::import::raw::RawNotRestored,
    service::transfer::import::raw::RawState, service::transfer::import::raw::RawUndo,
    service::transfer::import::raw::RawUser,
};
use polynym_lines::raw_identifier;
use polynym_proto::v1;
use v1::user_internals::hold::Held;
use v1::user_internals::merge_undo::AttributeChange;
use v1::user_internals::{Hold, MergeUndo, NotRestored};

/// The user of a line.
pub fn raw_user<'a>(
    user: &'a v1::User,
    internals: Option<&'a v1::UserInternals>,
) -> Result<RawUser<'a>, Error> {
    let time = |field: &str, time| convert::optional_timestamp(&format!("user.{field}"), time);
    let identities = user.identities.iter().enumerate();
    Ok(RawUser {
        user_id: &user.user_id,
        display_name: &user.display_name,
        identities: identities.map(|(n, message)| raw_identity(n, message)).collect(),
        attributes: convert::attributes(&user.attributes)?,
        state: raw_state(user)?,
        create_time: time("create_time", user.create_time.as_ref())?,
        update_time: time("update_time", user.update_time.as_ref())?,
        internals: internals
            .filter(|internals| has_state(internals))
            .map(raw_internals)
            .transpose()?,
        rules_versions: internals.map_or(&[], |internals| &internals.rules_versions),
        phone_metadata: internals.map_or("", |internals| &internals.phone_metadata),
    })
}

fn raw_identity(n: usize, message: &v1::Identity) -> Result<RawImportedIdentity<'_>, Error> {
    let field = |name| format!("user.identities[{n}].{name}");
    let verify_time =
        convert::optional_timestamp(&field("verify_time"), message.verify_time.as_ref())?;
    if verify_time.is_none() && !message.verified_by.is_empty() {
        return Err(Error::invalid(Invalid::Field, field("verified_by"), "needs a verify_time"));
    }

    let raw = RawIdentity {
        identifier: raw_identifier(message.identifier.as_ref()),
        display: &message.display,
        verification: verify_time
            .map(|time| Verification { time, by: message.verified_by.clone() }),
        primary: message.primary,
    };
    let link_time = convert::optional_timestamp(&field("link_time"), message.link_time.as_ref())?;
    Ok(RawImportedIdentity { raw, link_time })
}

fn raw_state(user: &v1::User) -> Result<RawState<'_>, Error> {
    let time = |field, time| convert::optional_timestamp(field, time);
    let state = v1::State::try_from(user.state)
        .map_err(|_| Error::invalid(Invalid::Field, "user.state", "is unknown"))?;
    Ok(match state {
        v1::State::Unspecified => RawState::Absent,
        v1::State::Active => RawState::Active,
        v1::State::Disabled => RawState::Disabled,
        v1::State::Deleted => RawState::Deleted {
            delete_time: time("user.delete_time", user.delete_time.as_ref())?,
            purge_time: time("user.purge_time", user.purge_time.as_ref())?,
        },
        v1::State::Merged => RawState::Merged(&user.merged_into),
    })
}

/// Whether internals have more than the versions by which the user was normalised.
fn has_state(message: &v1::UserInternals) -> bool {
    let versions = v1::UserInternals {
        rules_versions: message.rules_versions.clone(),
        phone_metadata: message.phone_metadata.clone(),
        ..Default::default()
    };
    *message != versions || versions == v1::UserInternals::default()
}

fn raw_internals(message: &v1::UserInternals) -> Result<RawInternals<'_>, Error> {
    Ok(RawInternals {
        disabled: message.disabled,
        guarded_handles: message.guarded_handles.iter().map(String::as_str).collect(),
        holds: message.holds.iter().map(raw_hold).collect::<Result<_, _>>()?,
        merged: message.merged_user_ids.iter().map(String::as_str).collect(),
        undo: message.undo.as_deref().map(raw_undo).transpose()?.map(Box::new),
        not_restored: message.not_restored.iter().map(raw_loss).collect::<Result<_, _>>()?,
    })
}

/// The hold of a line.
pub fn raw_hold(hold: &Hold) -> Result<RawHold<'_>, Error> {
    let missing =
        || missing("internals.holds", "needs an identifier or a skeleton, and an end_time");
    let held = match hold.held.as_ref().ok_or_else(missing)? {
        Held::Identifier(identifier) => Ok(raw_identifier(Some(identifier)).ok_or_else(missing)?),
        Held::Skeleton(skeleton) => Err(skeleton.as_str()),
    };
    let until = required_time("internals.holds", hold.end_time.as_ref())?;
    Ok(RawHold { held, until, rules_version: hold.rules_version })
}

fn raw_undo(undo: &MergeUndo) -> Result<RawUndo<'_>, Error> {
    let user = undo.user.as_ref().ok_or_else(|| missing("internals.undo", "needs the user"))?;
    let unmarked = undo.unmarked.iter().map(|identifier| {
        raw_identifier(Some(identifier)).ok_or_else(|| missing("internals.undo", "lacks a value"))
    });
    let name = undo.display_name.as_ref();
    Ok(RawUndo {
        until: required_time("internals.undo", undo.end_time.as_ref())?,
        user: raw_user(user, undo.internals.as_deref())?,
        display_name: name.map(|name| (name.before.clone(), name.after.clone())),
        attributes: changed_attributes(&undo.attributes)?,
        unmarked: unmarked.collect::<Result<_, _>>()?,
    })
}

type Changes = BTreeMap<String, (Option<Value>, Value)>;

fn changed_attributes(messages: &BTreeMap<String, AttributeChange>) -> Result<Changes, Error> {
    let side = |of: fn(&AttributeChange) -> Option<&v1::AttributeValue>| {
        let values = messages
            .iter()
            .filter_map(|(name, change)| of(change).map(|value| (name.clone(), value.clone())));
        convert::attributes(&values.collect())
    };
    let mut before = side(|change| change.before.as_ref())?;
    let after = side(|change| change.after.as_ref())?;
    Ok(after
        .into_iter()
        .map(|(name, value)| (name.clone(), (before.remove(&name), value)))
        .collect())
}

fn raw_loss(message: &NotRestored) -> Result<RawNotRestored<'_>, Error> {
    let fault = || missing("internals.not_restored", "names an unknown field");
    match message.field.as_str() {
        "identities" => {
            let raw = raw_identifier(message.identifier.as_ref());
            Ok(RawNotRestored::Identity(raw.ok_or_else(fault)?))
        }
        "primary.display_name" => Ok(RawNotRestored::DisplayName),
        field => {
            let name = field.strip_prefix("primary.attributes.").ok_or_else(fault)?;
            Ok(RawNotRestored::Attribute(name))
        }
    }
}

fn missing(field: &str, message: &str) -> Error {
    Error::invalid(Invalid::Field, field, message)
}

fn required_time(field: &str, time: Option<&ProtoTimestamp>) -> Result<Timestamp, Error> {
    convert::timestamp(field, time.ok_or_else(|| missing(field, "needs an end_time"))?)
}
