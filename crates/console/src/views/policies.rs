//! The policies of a tenant: what each means, and how two versions differ.

use std::collections::BTreeMap;

use polynym_presentation::duration;
use polynym_proto::v1;
use prost_types::Duration;
use v1::{AttributeType, Policies};

use super::text::cut;

/// The maximum characters of a value in a list of changes.
const MAX_CHARS: usize = 500;

/// A policy.
pub struct Policy {
    /// The path in update masks, such as `holds.email`.
    pub path: &'static str,
    /// The name on pages.
    pub label: &'static str,
    /// Its meaning, as a sentence.
    pub meaning: &'static str,
    /// The type, and the field.
    pub field: Field,
}

/// The field of a policy.
#[derive(Clone, Copy)]
pub enum Field {
    /// On or off.
    Switch(fn(&mut Policies) -> &mut bool),
    /// A duration.
    Time(fn(&mut Policies) -> &mut Option<Duration>),
    /// A number.
    Count(fn(&mut Policies) -> &mut i32),
}

const fn policy(
    path: &'static str,
    label: &'static str,
    meaning: &'static str,
    field: Field,
) -> Policy {
    Policy { path, label, meaning, field }
}

/// The policies of the form. Reserved handles and definitions of attributes have their own forms.
pub static POLICIES: [Policy; 17] = [
    policy(
        "holds.email",
        "Hold on email addresses",
        "An email address that a user gives up is reserved for its former owner for this time.",
        Field::Time(|policies| &mut policies.holds.get_or_insert_default().email),
    ),
    policy(
        "holds.handle",
        "Hold on handles",
        "A handle that a user gives up is reserved for its former owner for this time.",
        Field::Time(|policies| &mut policies.holds.get_or_insert_default().handle),
    ),
    policy(
        "holds.phone",
        "Hold on phone numbers",
        "A phone number that a user gives up is reserved for its former owner for this time.",
        Field::Time(|policies| &mut policies.holds.get_or_insert_default().phone),
    ),
    policy(
        "holds.social",
        "Hold on accounts",
        "An account that a user gives up is reserved for its former owner for this time.",
        Field::Time(|policies| &mut policies.holds.get_or_insert_default().social),
    ),
    policy(
        "holds.url",
        "Hold on profile URLs",
        "A profile URL that a user gives up is reserved for its former owner for this time.",
        Field::Time(|policies| &mut policies.holds.get_or_insert_default().url),
    ),
    policy(
        "restore_window",
        "Restore window",
        "A deleted user can be restored for this time, and is purged after it.",
        Field::Time(|policies| &mut policies.restore_window),
    ),
    policy(
        "undo_window",
        "Undo window",
        "A merge can be undone for this time.",
        Field::Time(|policies| &mut policies.undo_window),
    ),
    policy(
        "history_retention",
        "History retention",
        "Events and former owners are kept for this time; 0 turns the history off.",
        Field::Time(|policies| &mut policies.history_retention),
    ),
    policy(
        "inbox_retention",
        "Inbox retention",
        "A notice stays in an inbox for this time.",
        Field::Time(|policies| &mut policies.inbox_retention),
    ),
    policy(
        "inbox_limit",
        "Inbox limit",
        "An inbox keeps this many notices, the latest ones.",
        Field::Count(|policies| &mut policies.inbox_limit),
    ),
    policy(
        "hide_unverified",
        "Hide unverified identities",
        "A look-up does not find a user by an identity that nobody has verified.",
        Field::Switch(|policies| &mut policies.hide_unverified),
    ),
    policy(
        "verified_wins",
        "Verified wins",
        "A user who verifies an identity takes it from another user who has not.",
        Field::Switch(|policies| &mut policies.verified_wins),
    ),
    policy(
        "phone_takeover_after",
        "Takeover of phone numbers",
        "A user who verifies a phone number takes it from another whose verification is older by \
         this time; 0 for never.",
        Field::Time(|policies| &mut policies.phone_takeover_after),
    ),
    policy(
        "keep_primary_identity",
        "Keep the primary identity",
        "A primary identity cannot be unlinked while the user has others of its kind.",
        Field::Switch(|policies| &mut policies.keep_primary_identity),
    ),
    policy(
        "keep_last_identity",
        "Keep the last identity",
        "The last identity of a user cannot be unlinked.",
        Field::Switch(|policies| &mut policies.keep_last_identity),
    ),
    policy(
        "allow_lookalikes",
        "Allow look-alikes",
        "A new handle may look like the handle of another user.",
        Field::Switch(|policies| &mut policies.allow_lookalikes),
    ),
    policy(
        "rule_notices",
        "Automatic notices",
        "Users get a notice when they lose an identity, are merged, disabled or restored.",
        Field::Switch(|policies| &mut policies.rule_notices),
    ),
];

impl Policy {
    /// The value as text, such as `30 days`.
    pub fn text(&self, policies: &Policies) -> String {
        let mut policies = policies.clone();
        match self.field {
            Field::Switch(field) if *field(&mut policies) => "on".to_owned(),
            Field::Switch(_) => "off".to_owned(),
            Field::Time(field) => duration::text(field(&mut policies).as_ref()),
            Field::Count(field) => field(&mut policies).to_string(),
        }
    }

    /// Sets the value to that of other policies.
    pub fn copy(&self, from: &Policies, to: &mut Policies) {
        let mut from = from.clone();
        match self.field {
            Field::Switch(field) => *field(to) = *field(&mut from),
            Field::Time(field) => *field(to) = *field(&mut from),
            Field::Count(field) => *field(to) = *field(&mut from),
        }
    }
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
        before: policy.text(before),
        after: policy.text(after),
        warning: warning(policy, before, after),
    });
    let handles = handles_change(before, after);
    let (old, new) = (definitions(before), definitions(after));
    let mut names: Vec<_> = old.keys().chain(new.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let text = |all: &BTreeMap<&str, String>, name: &str| {
        all.get(name).cloned().unwrap_or_else(|| "not defined".to_owned())
    };
    let definitions = names.into_iter().map(|name| PolicyChange {
        label: format!("Attribute {name}"),
        before: text(&old, name),
        after: text(&new, name),
        warning: String::new(),
    });
    let all = listed.chain([handles]).chain(definitions);
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
    let (old, new) = match policy.field {
        Field::Switch(_) => return String::new(),
        Field::Time(field) => {
            let seconds = |policies: &Policies| {
                field(&mut policies.clone()).as_ref().map_or(0, |time| time.seconds)
            };
            (seconds(before), seconds(after))
        }
        Field::Count(field) => {
            let count = |policies: &Policies| i64::from(*field(&mut policies.clone()));
            (count(before), count(after))
        }
    };
    if new >= old {
        return String::new();
    }
    let time = policy.text(after);
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

/// The definitions of attributes as texts, by name.
fn definitions(policies: &Policies) -> BTreeMap<&str, String> {
    let definitions = policies.attribute_definitions.iter();
    definitions.map(|definition| (definition.name.as_str(), definition_text(definition))).collect()
}

/// A definition as text, such as `whole number, indexed`.
fn definition_text(definition: &v1::AttributeDefinition) -> String {
    let indexed = if definition.indexed.unwrap_or(true) { "indexed" } else { "not indexed" };
    let evidence = if definition.evidence { ", evidence of duplicates" } else { "" };
    format!("{}, {indexed}{evidence}", type_name(definition.r#type()))
}

/// The types of attributes: their names on pages and as arguments of commands.
pub const TYPES: [(AttributeType, &str, &str); 7] = [
    (AttributeType::Unspecified, "any type", ""),
    (AttributeType::String, "text", "string"),
    (AttributeType::Int, "whole number", "int"),
    (AttributeType::Double, "number", "double"),
    (AttributeType::Bool, "yes or no", "bool"),
    (AttributeType::Time, "time", "time"),
    (AttributeType::List, "list of texts", "list"),
];

/// The name of a type of attributes.
pub fn type_name(kind: AttributeType) -> &'static str {
    TYPES.iter().find(|(known, ..)| *known == kind).map_or("any type", |(_, name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
