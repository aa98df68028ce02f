//! The changes of users, each in a line.

use polynym_proto::v1;
use v1::event::Change;
use v1::recorded_value::Recorded;

use super::identity;
use super::time::Time;
use super::user;

/// The maximum number of lines of a change.
const MAX_LINES: usize = 20;

/// A change of a user by one call.
#[derive(Clone, Debug)]
pub struct ChangeView {
    /// When.
    pub time: Option<Time>,
    /// The caller.
    pub caller: String,
    /// The method, such as `LinkIdentity`.
    pub method: String,
    /// The caller's reason; may be empty.
    pub reason: String,
    /// What differs before and after, each in a line.
    pub lines: Vec<String>,
}

impl ChangeView {
    /// The view of an event.
    pub fn of(event: &v1::Event) -> Self {
        let lines = event.change.as_ref().map(|change| lines(changes(change)));
        let mut lines = lines.unwrap_or_default();
        let more = lines.len().saturating_sub(MAX_LINES);
        lines.truncate(MAX_LINES);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        Self {
            time: Time::of(event.time.as_ref()),
            caller: event.caller.clone(),
            method: event.method.clone(),
            reason: event.reason.clone(),
            lines,
        }
    }
}

/// The differences of an event.
pub const fn changes(change: &Change) -> &v1::ChangeSet {
    match change {
        Change::HistoryBegun(changes)
        | Change::UserCreated(changes)
        | Change::UserImported(changes)
        | Change::UserUpdated(changes)
        | Change::UserDisabled(changes)
        | Change::UserEnabled(changes)
        | Change::UserDeleted(changes)
        | Change::UserRestored(changes)
        | Change::UserMerged(changes)
        | Change::UserUnmerged(changes)
        | Change::IdentityLinked(changes)
        | Change::IdentityUnlinked(changes)
        | Change::IdentityReplaced(changes)
        | Change::IdentityMoved(changes)
        | Change::IdentityVerified(changes)
        | Change::IdentityTakenOver(changes)
        | Change::IdentityRenormalized(changes)
        | Change::HoldReleased(changes) => changes,
    }
}

fn lines(changes: &v1::ChangeSet) -> Vec<String> {
    let state = changes.state.iter().map(|change| {
        let name = |state: &Option<v1::UserState>| {
            state.as_ref().map_or("none", |known| user::state(known.state()))
        };
        format!("state: {} → {}", name(&change.before), name(&change.after))
    });
    let fields = changes.fields.iter().map(|change| {
        format!("{}: {} → {}", change.path, value(&change.before), value(&change.after))
    });
    state.chain(fields).chain(changes.identities.iter().map(identity_line)).collect()
}

fn value(recorded: &Option<v1::RecordedValue>) -> String {
    match recorded.as_ref().and_then(|recorded| recorded.recorded.as_ref()) {
        Some(Recorded::Value(value)) => user::attribute(value).1.replace('\n', ", "),
        Some(Recorded::Digest(digest)) => format!("({} bytes)", digest.size_bytes),
        Some(Recorded::Redacted(_)) => "(of a purged user)".to_owned(),
        None => "none".to_owned(),
    }
}

fn identity_line(change: &v1::IdentityChange) -> String {
    let text = |one: &v1::Identity| identity::text(one.identifier.as_ref());
    match (&change.before, &change.after) {
        (None, Some(after)) => format!("{}: added{}", text(after), marks(after)),
        (Some(before), None) => format!("{}: removed", text(before)),
        (Some(before), Some(after)) => {
            format!("{}:{} →{}", text(after), marks(before), marks(after))
        }
        (None, None) => String::new(),
    }
}

/// The marks of an identity.
fn marks(one: &v1::Identity) -> String {
    let primary = if one.primary { " primary," } else { "" };
    let verified = if one.verify_time.is_some() { " verified" } else { " not verified" };
    format!("{primary}{verified}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use v1::identifier::Kind;

    #[test]
    fn differences_are_lines_with_before_and_after() {
        let recorded = |text: &str| {
            let kind = v1::attribute_value::Kind::StringValue(text.to_owned());
            let value = v1::AttributeValue { kind: Some(kind) };
            Some(v1::RecordedValue { recorded: Some(Recorded::Value(value)) })
        };
        let email = v1::Identifier { kind: Some(Kind::Email("a@example.com".to_owned())) };
        let linked = v1::Identity { identifier: Some(email), primary: true, ..Default::default() };
        let changes = v1::ChangeSet {
            fields: vec![v1::FieldChange {
                path: "display_name".to_owned(),
                before: recorded("Joe"),
                after: None,
            }],
            identities: vec![v1::IdentityChange { before: None, after: Some(linked) }],
            ..Default::default()
        };
        let event = v1::Event { change: Some(Change::UserUpdated(changes)), ..Default::default() };
        let expected =
            ["display_name: Joe → none", "email:a@example.com: added primary, not verified"];
        assert_eq!(ChangeView::of(&event).lines, expected);
    }
}
