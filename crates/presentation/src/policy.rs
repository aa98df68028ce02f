//! The policies of tenants that have one value. Reserved handles, countries of phone numbers and
//! definitions of attributes have forms of their own.

use polynym_proto::v1::Policies;
use prost_types::Duration;

use Field::{Count, Switch, Time};

/// A policy.
#[derive(Debug)]
pub struct Policy {
    /// The path in update masks, such as `holds.email`.
    pub path: &'static str,
    /// The name on pages.
    pub label: &'static str,
    /// The name in tables of a terminal.
    pub name: &'static str,
    /// Its meaning, as a sentence.
    pub meaning: &'static str,
    /// The type, and the field.
    pub field: Field,
    /// The value in a new tenant.
    pub default: Value,
    /// The maximum: the seconds of a duration, or the number. None for a switch.
    pub max: Option<i64>,
}

/// The field of a policy.
#[derive(Clone, Copy, Debug)]
pub enum Field {
    /// On or off.
    Switch(fn(&mut Policies) -> &mut bool),
    /// A duration.
    Time(fn(&mut Policies) -> &mut Option<Duration>),
    /// A number.
    Count(fn(&mut Policies) -> &mut i32),
}

/// The value of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// On or off.
    Switch(bool),
    /// A duration, if there is one.
    Time(Option<Duration>),
    /// A number.
    Count(i32),
}

const DAY: i64 = 86_400;
const YEAR: Option<i64> = Some(365 * DAY);
const TEN_YEARS: Option<i64> = Some(3_650 * DAY);
const OFF: Value = Value::Switch(false);
const NO_TIME: Value = Value::Time(None);

const fn days(count: i64) -> Value {
    Value::Time(Some(Duration { seconds: count * DAY, nanos: 0 }))
}

/// The policies, in the order of forms and tables.
pub static POLICIES: &[Policy] = &[
    Policy {
        path: "holds.email",
        label: "Hold on email addresses",
        name: "emails are held for",
        meaning: "An email address that a user gives up is reserved for its former owner for this \
                  time.",
        field: Time(|policies| &mut policies.holds.get_or_insert_default().email),
        default: NO_TIME,
        max: TEN_YEARS,
    },
    Policy {
        path: "holds.handle",
        label: "Hold on handles",
        name: "handles are held for",
        meaning: "A handle that a user gives up is reserved for its former owner for this time.",
        field: Time(|policies| &mut policies.holds.get_or_insert_default().handle),
        default: days(30),
        max: TEN_YEARS,
    },
    Policy {
        path: "holds.phone",
        label: "Hold on phone numbers",
        name: "phones are held for",
        meaning: "A phone number that a user gives up is reserved for its former owner for this \
                  time.",
        field: Time(|policies| &mut policies.holds.get_or_insert_default().phone),
        default: NO_TIME,
        max: TEN_YEARS,
    },
    Policy {
        path: "holds.social",
        label: "Hold on accounts",
        name: "socials are held for",
        meaning: "An account that a user gives up is reserved for its former owner for this time.",
        field: Time(|policies| &mut policies.holds.get_or_insert_default().social),
        default: NO_TIME,
        max: TEN_YEARS,
    },
    Policy {
        path: "holds.url",
        label: "Hold on profile URLs",
        name: "urls are held for",
        meaning: "A profile URL that a user gives up is reserved for its former owner for this \
                  time.",
        field: Time(|policies| &mut policies.holds.get_or_insert_default().url),
        default: NO_TIME,
        max: TEN_YEARS,
    },
    Policy {
        path: "hide_unverified",
        label: "Hide unverified identities",
        name: "hide unverified",
        meaning: "A look-up does not find a user by an identity that nobody has verified.",
        field: Switch(|policies| &mut policies.hide_unverified),
        default: OFF,
        max: None,
    },
    Policy {
        path: "verified_wins",
        label: "Verified wins",
        name: "verified wins",
        meaning: "A user who verifies an identity takes it from another user who has not.",
        field: Switch(|policies| &mut policies.verified_wins),
        default: OFF,
        max: None,
    },
    Policy {
        path: "phone_takeover_after",
        label: "Takeover of phone numbers",
        name: "phones can be taken after",
        meaning: "A user who verifies a phone number takes it from another whose verification is \
                  older by this time; 0 for never.",
        field: Time(|policies| &mut policies.phone_takeover_after),
        default: NO_TIME,
        max: TEN_YEARS,
    },
    Policy {
        path: "keep_primary_identity",
        label: "Keep the primary identity",
        name: "keep primary identity",
        meaning: "A primary identity cannot be unlinked while the user has others of its kind.",
        field: Switch(|policies| &mut policies.keep_primary_identity),
        default: OFF,
        max: None,
    },
    Policy {
        path: "keep_last_identity",
        label: "Keep the last identity",
        name: "keep last identity",
        meaning: "The last identity of a user cannot be unlinked.",
        field: Switch(|policies| &mut policies.keep_last_identity),
        default: OFF,
        max: None,
    },
    Policy {
        path: "allow_lookalikes",
        label: "Allow look-alikes",
        name: "allow look-alikes",
        meaning: "A new handle may look like the handle of another user.",
        field: Switch(|policies| &mut policies.allow_lookalikes),
        default: OFF,
        max: None,
    },
    Policy {
        path: "restore_window",
        label: "Restore window",
        name: "deleted users are kept for",
        meaning: "A deleted user can be restored for this time, and is purged after it.",
        field: Time(|policies| &mut policies.restore_window),
        default: days(30),
        max: TEN_YEARS,
    },
    Policy {
        path: "undo_window",
        label: "Undo window",
        name: "merges can be undone for",
        meaning: "A merge can be undone for this time.",
        field: Time(|policies| &mut policies.undo_window),
        default: days(7),
        max: YEAR,
    },
    Policy {
        path: "history_retention",
        label: "History retention",
        name: "history is kept for",
        meaning: "Events and former owners are kept for this time; 0 turns the history off.",
        field: Time(|policies| &mut policies.history_retention),
        default: days(400),
        max: TEN_YEARS,
    },
    Policy {
        path: "inbox_retention",
        label: "Inbox retention",
        name: "notices are kept for",
        meaning: "A notice stays in an inbox for this time.",
        field: Time(|policies| &mut policies.inbox_retention),
        default: days(90),
        max: TEN_YEARS,
    },
    Policy {
        path: "inbox_limit",
        label: "Inbox limit",
        name: "notices in an inbox",
        meaning: "An inbox keeps this many notices, the latest ones.",
        field: Count(|policies| &mut policies.inbox_limit),
        default: Value::Count(1_000),
        max: Some(10_000),
    },
    Policy {
        path: "rule_notices",
        label: "Automatic notices",
        name: "rule notices",
        meaning: "Users get a notice when they lose an identity, are merged, disabled or restored.",
        field: Switch(|policies| &mut policies.rule_notices),
        default: OFF,
        max: None,
    },
];

impl Policy {
    /// The policy with this path.
    pub fn find(path: &str) -> Option<&'static Self> {
        POLICIES.iter().find(|policy| policy.path == path)
    }

    /// The kind of identifiers that it holds, if it is a hold.
    pub fn hold(&self) -> Option<&'static str> {
        self.path.strip_prefix("holds.")
    }

    /// The flag of a policy that is no hold, such as `inbox-limit`.
    pub fn flag(&self) -> String {
        self.path.replace('_', "-")
    }

    /// The value in these policies.
    pub fn value(&self, policies: &Policies) -> Value {
        let mut policies = policies.clone();
        match self.field {
            Switch(field) => Value::Switch(*field(&mut policies)),
            Time(field) => Value::Time(*field(&mut policies)),
            Count(field) => Value::Count(*field(&mut policies)),
        }
    }

    /// Sets the value to that of other policies.
    pub fn copy(&self, from: &Policies, to: &mut Policies) {
        self.set(self.value(from), to);
    }

    /// Sets the value. One of another type changes nothing.
    pub fn set(&self, value: Value, policies: &mut Policies) {
        match (self.field, value) {
            (Switch(field), Value::Switch(on)) => *field(policies) = on,
            (Time(field), Value::Time(time)) => *field(policies) = time,
            (Count(field), Value::Count(count)) => *field(policies) = count,
            _ => {}
        }
    }
}

impl Value {
    /// `on`, `off` or the number, or the text of the duration.
    pub fn text(self, time: fn(Option<&Duration>) -> String) -> String {
        match self {
            Self::Switch(true) => "on".to_owned(),
            Self::Switch(false) => "off".to_owned(),
            Self::Time(value) => time(value.as_ref()),
            Self::Count(count) => count.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_policy_has_a_field_of_its_own() {
        let time = Some(Duration { seconds: 3_600, nanos: 0 });
        for policy in POLICIES {
            let mut all = Policies::default();
            match policy.field {
                Switch(field) => *field(&mut all) = true,
                Time(field) => *field(&mut all) = time,
                Count(field) => *field(&mut all) = 7,
            }
            let none = Policies::default();
            let set = POLICIES.iter().filter(|other| other.value(&all) != other.value(&none));
            assert_eq!(set.map(|other| other.path).collect::<Vec<_>>(), [policy.path]);
        }
        assert_eq!(Policy::find("inbox_limit").unwrap().flag(), "inbox-limit");
    }

    #[test]
    fn defaults_have_the_types_of_their_fields() {
        for policy in POLICIES {
            let mut policies = Policies::default();
            policy.set(policy.default, &mut policies);
            assert_eq!(policy.value(&policies), policy.default, "{}", policy.path);
            assert_eq!(policy.max.is_none(), matches!(policy.field, Switch(_)), "{}", policy.path);
        }
    }

    #[test]
    fn each_policy_is_documented() {
        let api = include_str!("../../../docs/api.md");
        let (_, table) = api.split_once("| policy | default | meaning |").unwrap();
        let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
        let documented: BTreeSet<_> = rows.filter_map(|row| row.split('`').nth(1)).collect();
        let own = POLICIES.iter().filter_map(|policy| policy.path.split('.').next());
        assert_eq!(documented, own.chain(["reserved_handles", "phone_regions"]).collect());
    }
}
