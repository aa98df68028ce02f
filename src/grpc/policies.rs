//! Converts updates of a tenant's policies, by a mask (AIP-134, AIP-161).

use std::collections::BTreeMap;
use std::time::Duration;

use prost_types::Duration as ProtoDuration;

use polynym_directory::{
    AttributeDefinition, DefinitionUpdate, Error, Invalid, PolicyUpdate,
    encoded::definition::read_definition, model::policies::INBOX_LIMIT, model::reserved,
};
use polynym_identifier::Kind;
use polynym_proto::v1;

/// The update that sets the fields in `mask` to those of `policies`. Without a mask, sets all
/// fields that are present.
pub fn update(
    policies: Option<&v1::Policies>,
    mask: Option<&[String]>,
) -> Result<PolicyUpdate, Error> {
    let default = v1::Policies::default();
    let policies = policies.unwrap_or(&default);
    let mut update = PolicyUpdate::default();
    match mask.filter(|paths| !paths.is_empty()) {
        Some(paths) => paths.iter().try_for_each(|path| set(&mut update, policies, path))?,
        None => set_present(&mut update, policies)?,
    }
    Ok(update)
}

const SWITCHES: [&str; 6] = [
    "hide_unverified",
    "verified_wins",
    "keep_primary_identity",
    "keep_last_identity",
    "allow_lookalikes",
    "rule_notices",
];

const WINDOWS: [&str; 5] = [
    "phone_takeover_after",
    "restore_window",
    "undo_window",
    "history_retention",
    "inbox_retention",
];

fn set_present(update: &mut PolicyUpdate, policies: &v1::Policies) -> Result<(), Error> {
    for switch in SWITCHES {
        if switch_of(policies, switch) {
            set(update, policies, switch)?;
        }
    }

    for kind in Kind::ALL {
        if hold_of(policies, kind).is_some() {
            set(update, policies, &format!("holds.{kind}"))?;
        }
    }

    for path in WINDOWS {
        if window(update, policies, path).is_some_and(|(_, time)| time.is_some()) {
            set(update, policies, path)?;
        }
    }
    if policies.inbox_limit != 0 {
        set(update, policies, "inbox_limit")?;
    }
    if policies.reserved_handles.is_some() {
        set(update, policies, "reserved_handles")?;
    }
    update.attributes.definitions = definitions(policies)?;
    Ok(())
}

fn set(update: &mut PolicyUpdate, policies: &v1::Policies, path: &str) -> Result<(), Error> {
    if let Some(switch) = switch(update, path) {
        *switch = Some(switch_of(policies, path));
        return Ok(());
    }
    if let Some((window, time)) = window(update, policies, path) {
        *window = Some(duration(time, path)?);
        return Ok(());
    }
    match path {
        "*" => {
            ["holds", "inbox_limit", "reserved_handles", "attribute_definitions"]
                .iter()
                .chain(&SWITCHES)
                .chain(&WINDOWS)
                .try_for_each(|path| set(update, policies, path))?;
        }
        "holds" => {
            Kind::ALL.iter().try_for_each(|kind| set(update, policies, &format!("holds.{kind}")))?
        }
        "inbox_limit" => update.inbox_limit = Some(inbox_limit(policies.inbox_limit)),
        "reserved_handles" => {
            let handles =
                policies.reserved_handles.as_ref().map(|handles| reserved::parse(&handles.handles));
            update.reserved_handles = Some(handles.transpose()?);
        }
        "attribute_definitions" => {
            update.attributes =
                DefinitionUpdate { replace: true, definitions: definitions(policies)? };
        }
        _ => {
            let rule = "a mask may name policies, holds.KIND and *";
            let kind = path
                .strip_prefix("holds.")
                .and_then(|kind| kind.parse::<Kind>().ok())
                .ok_or_else(|| Error::invalid(Invalid::UpdateMask, "update_mask", rule))?;
            update.holds.insert(kind, duration(hold_of(policies, kind), path)?);
        }
    }

    Ok(())
}

/// The definitions of a message, without index changes in progress.
fn definitions(policies: &v1::Policies) -> Result<BTreeMap<String, AttributeDefinition>, Error> {
    let rule = |rule: &str| Error::invalid(Invalid::Policy, "policies.attribute_definitions", rule);
    let mut definitions = BTreeMap::new();
    for message in &policies.attribute_definitions {
        let definition = AttributeDefinition {
            index_change: None,
            ..read_definition(message).ok_or_else(|| rule("a type is unknown"))?
        };
        if definitions.insert(message.name.clone(), definition).is_some() {
            return Err(rule("an attribute is defined twice"));
        }
    }
    Ok(definitions)
}

/// The limit of notices, or the default if it is absent. A negative limit becomes 0, which is
/// rejected later.
fn inbox_limit(count: i32) -> u32 {
    if count == 0 { INBOX_LIMIT } else { count.try_into().unwrap_or_default() }
}

/// The field of the update for a switch.
fn switch<'u>(update: &'u mut PolicyUpdate, name: &str) -> Option<&'u mut Option<bool>> {
    Some(match name {
        "hide_unverified" => &mut update.hide_unverified,
        "verified_wins" => &mut update.verified_wins,
        "keep_primary_identity" => &mut update.keep_primary,
        "keep_last_identity" => &mut update.keep_last,
        "allow_lookalikes" => &mut update.allow_lookalikes,
        "rule_notices" => &mut update.rule_notices,
        _ => return None,
    })
}

/// The field of the update for a duration, and the duration.
fn window<'u>(
    update: &'u mut PolicyUpdate,
    policies: &v1::Policies,
    name: &str,
) -> Option<(&'u mut Option<Duration>, Option<ProtoDuration>)> {
    Some(match name {
        "phone_takeover_after" => (&mut update.phone_takeover_after, policies.phone_takeover_after),
        "restore_window" => (&mut update.restore_window, policies.restore_window),
        "undo_window" => (&mut update.undo_window, policies.undo_window),
        "history_retention" => (&mut update.history_retention, policies.history_retention),
        "inbox_retention" => (&mut update.inbox_retention, policies.inbox_retention),
        _ => return None,
    })
}

fn switch_of(policies: &v1::Policies, name: &str) -> bool {
    match name {
        "hide_unverified" => policies.hide_unverified,
        "verified_wins" => policies.verified_wins,
        "keep_primary_identity" => policies.keep_primary_identity,
        "keep_last_identity" => policies.keep_last_identity,
        "rule_notices" => policies.rule_notices,
        _ => policies.allow_lookalikes,
    }
}

fn hold_of(policies: &v1::Policies, kind: Kind) -> Option<ProtoDuration> {
    let holds = policies.holds.as_ref()?;
    match kind {
        Kind::Email => holds.email,
        Kind::Handle => holds.handle,
        Kind::Phone => holds.phone,
        Kind::Social => holds.social,
        Kind::Url => holds.url,
    }
}

/// A duration in whole milliseconds; zero if it is absent.
fn duration(message: Option<ProtoDuration>, path: &str) -> Result<Duration, Error> {
    let Some(message) = message else { return Ok(Duration::ZERO) };
    let exact = Duration::try_from(message).map_err(|_| {
        let message = "must be a duration, and not negative";
        Error::invalid(Invalid::Policy, format!("policies.{path}"), message)
    })?;
    Ok(Duration::from_millis(u64::try_from(exact.as_millis()).unwrap_or(u64::MAX)))
}
