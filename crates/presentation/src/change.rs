//! The differences between a user before and after a change, line by line.

use polynym_proto::v1;
use prost_types::Timestamp;
use v1::identifier::Kind;
use v1::recorded_value::Recorded;
use v1::{AttributeValue, ChangeSet, Identity, RecordedValue, State, UserState};

use crate::state;

/// A change of a field, an identity, the state or a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The path of a field, such as `attributes.team`; `identity`, [`STATE`] or [`HOLD`].
    pub path: String,
    /// The value before; none if there was none.
    pub before: Option<String>,
    /// The value after; none if there is none.
    pub after: Option<String>,
}

/// The path of lines about the state.
pub const STATE: &str = "state";
/// The path of lines about holds.
pub const HOLD: &str = "hold";

/// The forms of values on a terminal or on a page.
#[derive(Clone, Copy)]
pub struct Forms {
    /// The text of an attribute's value.
    pub value: fn(&AttributeValue) -> String,
    /// The text of a time.
    pub time: fn(&Timestamp) -> String,
}

/// The name of a field for people, such as `team` for `attributes.team`.
pub fn label(path: &str) -> String {
    match path.split_once('.') {
        Some(("attributes", name)) => name.to_owned(),
        Some((what, kind)) => format!("{what} {kind}"),
        None => path.replace('_', " "),
    }
}

impl Forms {
    /// The changes of a set: its state, fields, identities and holds.
    pub fn lines(self, set: &ChangeSet) -> Vec<Line> {
        let line = |path: &str, before, after| Line { path: path.to_owned(), before, after };
        let user_state = |own: &Option<UserState>| own.as_ref().map(|own| self.state(own));
        let state = set
            .state
            .iter()
            .map(|change| line(STATE, user_state(&change.before), user_state(&change.after)));
        let value = |own: &Option<RecordedValue>| own.as_ref().map(|own| self.recorded(own));
        let fields = set
            .fields
            .iter()
            .map(|change| line(&change.path, value(&change.before), value(&change.after)));
        let identities = identity_changes(set)
            .into_iter()
            .map(|[before, after]| line("identity", before.map(identity), after.map(identity)));
        let holds = set.holds.iter().map(|change| {
            let name = identifier(change.identifier.as_ref());
            let until = |end: Option<&Timestamp>| {
                end.map(|time| format!("{name} until {}", (self.time)(time)))
            };
            line(HOLD, until(change.end_before.as_ref()), until(change.end_after.as_ref()))
        });
        state.chain(fields).chain(identities).chain(holds).collect()
    }

    fn state(self, own: &UserState) -> String {
        match (own.state(), &own.purge_time) {
            (State::Deleted, Some(time)) => {
                format!("deleted, to be purged on {}", (self.time)(time))
            }
            (State::Merged, _) => format!("merged into {}", own.merged_into),
            (other, _) => state::word(other).to_owned(),
        }
    }

    fn recorded(self, own: &RecordedValue) -> String {
        match &own.recorded {
            Some(Recorded::Value(value)) => match (self.value)(value) {
                text if text.is_empty() => "(empty)".to_owned(),
                text => text,
            },
            Some(Recorded::Digest(digest)) => {
                format!("({} bytes, hash {:016x})", digest.size_bytes, digest.hash)
            }
            Some(Recorded::Redacted(_)) => "(of a purged user)".to_owned(),
            None => String::new(),
        }
    }
}

/// The identities before and after each change of a set. One that another replaced is one change.
fn identity_changes(set: &ChangeSet) -> Vec<[Option<&Identity>; 2]> {
    let replaced = replaced(set);
    let is_new = |own: &Identity| replaced.iter().any(|[_, new]| std::ptr::eq(*new, own));
    let changes = set.identities.iter().filter_map(|change| {
        match (change.before.as_ref(), change.after.as_ref()) {
            (None, Some(after)) if is_new(after) => None,
            (Some(before), None) => {
                let own = replaced.iter().find(|[old, _]| std::ptr::eq(*old, before));
                Some([Some(before), own.map(|[_, new]| *new)])
            }
            (before, after) => Some([before, after]),
        }
    });
    changes.collect()
}

/// The identities of a change that others replaced, with these: the only one of a kind that was
/// removed, and the only one that was added.
pub fn replaced(set: &ChangeSet) -> Vec<[&Identity; 2]> {
    let removed = set.identities.iter().filter(|change| change.after.is_none());
    let removed: Vec<_> = removed.filter_map(|change| change.before.as_ref()).collect();
    let added = set.identities.iter().filter(|change| change.before.is_none());
    let added: Vec<_> = added.filter_map(|change| change.after.as_ref()).collect();
    let only = |all: &[&'_ Identity], kind: &Identity| {
        all.iter().filter(|own| is_alike(own, kind)).count() == 1
    };
    let pairs = removed.iter().filter(|old| only(&removed, old)).filter_map(|old| {
        let new = added.iter().find(|new| is_alike(new, old) && only(&added, new))?;
        Some([*old, *new])
    });
    pairs.collect()
}

/// Whether two identities are of one kind, and accounts of one provider.
fn is_alike(one: &Identity, other: &Identity) -> bool {
    let kind = |own: &Identity| own.identifier.as_ref().and_then(|own| own.kind.clone());
    match (kind(one), kind(other)) {
        (Some(Kind::Social(one)), Some(Kind::Social(other))) => one.provider == other.provider,
        (one, other) => {
            let kinds = [one, other].map(|kind| kind.as_ref().map(std::mem::discriminant));
            kinds[0] == kinds[1]
        }
    }
}

/// An identity with its marks, such as `handle:joe (primary, not verified)`.
fn identity(own: &Identity) -> String {
    let primary = if own.primary { "primary, " } else { "" };
    let verified = match &own.verify_time {
        Some(_) if own.verified_by.is_empty() => "verified".to_owned(),
        Some(_) => format!("verified by {}", own.verified_by),
        None => "not verified".to_owned(),
    };
    format!("{} ({primary}{verified})", identifier(own.identifier.as_ref()))
}

fn identifier(message: Option<&v1::Identifier>) -> String {
    polynym_lines::raw_identifier(message).map(|raw| raw.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: Forms = Forms {
        value: |value| format!("{:?}", value.kind),
        time: |time| format!("second {}", time.seconds),
    };

    fn texts(line: &Line) -> [&str; 3] {
        let sides = [&line.before, &line.after].map(|side| side.as_deref().unwrap_or("none"));
        [&line.path, sides[0], sides[1]]
    }

    #[test]
    fn each_part_of_a_user_has_a_line() {
        let joe = v1::Identifier { kind: Some(Kind::Handle("joe".to_owned())) };
        let state = |state: State| UserState { state: state.into(), ..Default::default() };
        let purge_time = Some(Timestamp { seconds: 9, nanos: 0 });
        let redacted = RecordedValue { recorded: Some(Recorded::Redacted(true)) };
        let set = ChangeSet {
            state: Some(v1::StateChange {
                before: Some(state(State::Active)),
                after: Some(UserState { purge_time, ..state(State::Deleted) }),
            }),
            fields: vec![v1::FieldChange {
                path: "attributes.team".to_owned(),
                before: Some(redacted),
                after: None,
            }],
            identities: vec![v1::IdentityChange {
                before: None,
                after: Some(Identity {
                    identifier: Some(joe.clone()),
                    primary: true,
                    ..Default::default()
                }),
            }],
            holds: vec![v1::HoldChange {
                identifier: Some(joe),
                end_before: purge_time,
                end_after: None,
            }],
            ..Default::default()
        };
        let lines = FORMS.lines(&set);
        let expected = [
            ["state", "active", "deleted, to be purged on second 9"],
            ["attributes.team", "(of a purged user)", "none"],
            ["identity", "none", "handle:joe (primary, not verified)"],
            ["hold", "handle:joe until second 9", "none"],
        ];
        assert_eq!(lines.iter().map(texts).collect::<Vec<_>>(), expected);
        let labels = ["display_name", "attributes.team", "primary.email", "state"].map(label);
        assert_eq!(labels, ["display name", "team", "primary email", "state"]);
    }

    #[test]
    fn an_identity_that_another_replaced_is_one_line() {
        let email = |text: &str| Identity {
            identifier: Some(v1::Identifier { kind: Some(Kind::Email(text.to_owned())) }),
            ..Default::default()
        };
        let handle = |text: &str| Identity {
            identifier: Some(v1::Identifier { kind: Some(Kind::Handle(text.to_owned())) }),
            ..Default::default()
        };
        let lost = |own: Identity| v1::IdentityChange { before: Some(own), after: None };
        let got = |own: Identity| v1::IdentityChange { before: None, after: Some(own) };
        let lines = |identities: Vec<v1::IdentityChange>| {
            let lines = FORMS.lines(&ChangeSet { identities, ..Default::default() });
            let sides = lines.into_iter().map(|line| (line.before, line.after));
            sides.map(|(before, after)| (before.is_some(), after.is_some())).collect::<Vec<_>>()
        };
        assert_eq!(lines(vec![got(email("b")), lost(email("a"))]), [(true, true)]);
        let other_kind = vec![lost(email("a")), got(handle("b"))];
        assert_eq!(lines(other_kind), [(true, false), (false, true)]);
        let two = vec![lost(email("a")), got(email("b")), got(handle("c"))];
        assert_eq!(lines(two), [(true, true), (false, true)]);
        let unclear = vec![lost(email("a")), got(email("b")), got(email("c"))];
        assert_eq!(lines(unclear), [(true, false), (false, true), (false, true)]);
    }
}
