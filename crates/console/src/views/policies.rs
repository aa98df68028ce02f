//! How two versions of a tenant's policies differ.

use std::collections::BTreeMap;

use polynym_presentation::policy::{POLICIES, Policy, Value};
use polynym_presentation::{attribute, duration};
use polynym_proto::v1;
use v1::Policies;

use super::text::cut;

/// The maximum characters of a value in a list of changes.
const MAX_CHARS: usize = 500;

/// The value of a policy as text, such as `30 days`.
pub fn text(policy: &Policy, policies: &Policies) -> String {
    policy.value(policies).text(duration::text)
}

/// A policy that differs between two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyChange {
    /// The name.
    pub label: String,
    /// The text before.
    pub before: String,
    /// The text after.
    pub after: String,
    /// A warning of what the change removes; may be empty.
    pub warning: String,
}

/// The policies that differ between two versions.
pub fn changes(before: &Policies, after: &Policies) -> Vec<PolicyChange> {
    let listed = POLICIES.iter().map(|policy| PolicyChange {
        label: policy.label.to_owned(),
        before: text(policy, before),
        after: text(policy, after),
        warning: warning(policy, before, after),
    });
    let lists = [handles_change(before, after), regions_change(before, after)];
    let (old, new) = (definitions(before), definitions(after));
    let mut names: Vec<_> = old.keys().chain(new.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let defined = |all: &BTreeMap<&str, String>, name: &str| {
        all.get(name).cloned().unwrap_or_else(|| "not defined".to_owned())
    };
    let definitions = names.into_iter().map(|name| PolicyChange {
        label: format!("Attribute {name}"),
        before: defined(&old, name),
        after: defined(&new, name),
        warning: String::new(),
    });
    let all = listed.chain(lists).chain(definitions);
    let changed = all.filter(|change| change.before != change.after);
    changed
        .map(|change| PolicyChange {
            before: cut(change.before, MAX_CHARS),
            after: cut(change.after, MAX_CHARS),
            ..change
        })
        .collect()
}

/// The warning of what a change of a policy removes.
fn warning(policy: &Policy, before: &Policies, after: &Policies) -> String {
    let amount = |policies: &Policies| match policy.value(policies) {
        Value::Switch(_) => 0,
        Value::Time(time) => time.map_or(0, |time| time.seconds),
        Value::Count(count) => i64::from(count),
    };
    let (old, new) = (amount(before), amount(after));
    if new >= old {
        return String::new();
    }
    let time = text(policy, after);
    match policy.path {
        "history_retention" if new == 0 => {
            "The whole history is hidden and removed, and no new history is written. Operations \
             cannot be undone."
                .to_owned()
        }
        "history_retention" => format!(
            "Events and former owners older than {time} are hidden at once and removed for good."
        ),
        "inbox_retention" => {
            format!("Notices older than {time} are removed for good, also those that are unread.")
        }
        "inbox_limit" => {
            format!("Inboxes lose all notices but the latest {time}, also those that are unread.")
        }
        _ => String::new(),
    }
}

fn handles_change(before: &Policies, after: &Policies) -> PolicyChange {
    let list = |policies: &Policies| match &policies.reserved_handles {
        None => "Polynym's default list".to_owned(),
        Some(own) if own.handles.is_empty() => "none".to_owned(),
        Some(own) => {
            let mut handles = own.handles.clone();
            handles.sort_unstable();
            handles.join(", ")
        }
    };
    PolicyChange {
        label: "Reserved handles".to_owned(),
        before: list(before),
        after: list(after),
        warning: String::new(),
    }
}

fn regions_change(before: &Policies, after: &Policies) -> PolicyChange {
    let list = |policies: &Policies| match &policies.phone_regions[..] {
        [] => "none".to_owned(),
        regions => regions.join(", "),
    };
    PolicyChange {
        label: "Countries of phone numbers".to_owned(),
        before: list(before),
        after: list(after),
        warning: String::new(),
    }
}

/// The definitions of attributes as texts, by name.
fn definitions(policies: &Policies) -> BTreeMap<&str, String> {
    let definitions = policies.attribute_definitions.iter();
    let text = |own: &v1::AttributeDefinition| {
        attribute::definition(own, attribute::words(own.r#type()).name)
    };
    definitions.map(|definition| (definition.name.as_str(), text(definition))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost_types::Duration;
    use v1::AttributeType;

    fn time(days: i64) -> Option<Duration> {
        Some(Duration { seconds: days * 86_400, nanos: 0 })
    }

    #[test]
    fn changes_show_what_they_remove() {
        let before =
            Policies { history_retention: time(400), inbox_limit: 9, ..Default::default() };
        let mut after = Policies { history_retention: time(30), inbox_limit: 9, ..before.clone() };
        after.attribute_definitions.push(v1::AttributeDefinition {
            name: "level".to_owned(),
            r#type: AttributeType::Int.into(),
            ..Default::default()
        });
        let changed = changes(&before, &after);
        let texts = |n: usize| [&*changed[n].label, &*changed[n].before, &*changed[n].after];
        assert_eq!(texts(0), ["History retention", "400 days", "30 days"]);
        assert!(changed[0].warning.contains("older than 30 days"), "{}", changed[0].warning);
        assert_eq!(texts(1), ["Attribute level", "not defined", "whole number, indexed"]);
        assert_eq!(changed.len(), 2);
        assert!(changes(&after, &before)[0].warning.is_empty(), "a longer one removes nothing");
    }
}
