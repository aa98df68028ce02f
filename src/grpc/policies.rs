//! Converts updates of a tenant's policies, by a mask (AIP-134, AIP-161).

use std::collections::BTreeMap;

use prost_types::Duration as ProtoDuration;

use polynym_directory::{
    AttributeDefinition, DefinitionUpdate, Error, Invalid, PolicyUpdate,
    encoded::definition::read_definition,
    model::policies::{POLICIES, period},
    model::reserved,
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

fn set_present(update: &mut PolicyUpdate, policies: &v1::Policies) -> Result<(), Error> {
    for kind in Kind::ALL {
        if hold_of(policies, kind).is_some() {
            set(update, policies, &format!("holds.{kind}"))?;
        }
    }
    let mut given = POLICIES.iter().filter(|policy| policy.is_given(policies));
    given.try_for_each(|policy| policy.take(policies, update))?;
    if policies.reserved_handles.is_some() {
        set(update, policies, "reserved_handles")?;
    }
    if !policies.phone_regions.is_empty() {
        set(update, policies, "phone_regions")?;
    }
    update.attributes.definitions = definitions(policies)?;
    Ok(())
}

fn set(update: &mut PolicyUpdate, policies: &v1::Policies, path: &str) -> Result<(), Error> {
    if let Some(policy) = POLICIES.iter().find(|policy| policy.path() == path) {
        return policy.take(policies, update);
    }
    match path {
        "*" => {
            for path in ["holds", "reserved_handles", "phone_regions", "attribute_definitions"] {
                set(update, policies, path)?;
            }
            POLICIES.iter().try_for_each(|policy| policy.take(policies, update))?;
        }
        "holds" => {
            Kind::ALL.iter().try_for_each(|kind| set(update, policies, &format!("holds.{kind}")))?
        }
        "reserved_handles" => {
            let handles =
                policies.reserved_handles.as_ref().map(|handles| reserved::parse(&handles.handles));
            update.reserved_handles = Some(handles.transpose()?);
        }
        "phone_regions" => update.phone_regions = Some(policies.phone_regions.clone()),
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
            update.holds.insert(kind, period(hold_of(policies, kind), path)?);
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

#[cfg(test)]
mod tests {
    use polynym_directory::model::policies::{Policies, Policy};
    use polynym_presentation::policy::{Policy as Presented, Value};

    use super::*;

    fn presented(path: &str) -> &'static Presented {
        Presented::find(path).unwrap_or_else(|| panic!("no {path}"))
    }

    /// The value of a duration, which is absent if it is zero.
    fn time(seconds: u64) -> Value {
        let seconds = i64::try_from(seconds).unwrap();
        Value::Time((seconds != 0).then_some(ProtoDuration { seconds, nanos: 0 }))
    }

    #[test]
    fn people_read_the_defaults_and_the_maxima_that_apply() {
        for policy in POLICIES {
            let (default, max) = match policy {
                Policy::Switch(field) => (Value::Switch(field.default), None),
                Policy::Window(field, max) => (time(field.default.as_secs()), Some(max.as_secs())),
                Policy::Count(field, max) => {
                    (Value::Count(field.default.try_into().unwrap()), Some(u64::from(*max)))
                }
            };
            let presented = presented(policy.path());
            let max = max.map(|max| i64::try_from(max).unwrap());
            assert_eq!((presented.default, presented.max), (default, max), "{}", policy.path());
        }
        for kind in Kind::ALL {
            let hold = Policies::default().holds.get(&kind).copied().unwrap_or_default();
            let presented = presented(&format!("holds.{kind}"));
            assert_eq!(presented.default, time(hold.as_secs()), "{kind}");
        }
    }
}
