//! Changes of a user, as rows with the values before and after.

use polynym_proto::v1;
use v1::recorded_value::Recorded;
use v1::{ChangeSet, RecordedValue};

use super::identity;
use super::user::{attribute, state};

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeRow {
    /// What changes, such as `display_name` or `identity`.
    pub field: String,
    /// The value before; empty if there was none.
    pub before: String,
    /// The value after; empty if there is none.
    pub after: String,
}

/// The changes as rows.
pub fn rows(changes: &ChangeSet) -> Vec<ChangeRow> {
    let value = |recorded: &Option<RecordedValue>| recorded.as_ref().map_or_else(String::new, text);
    let state_of = |user: &Option<v1::UserState>| {
        user.as_ref().map_or("", |user| state(user.state())).to_owned()
    };
    let name = |own: &Option<v1::Identity>| own.as_ref().map_or_else(String::new, identity_text);
    let row = |field: &str, before, after| ChangeRow { field: field.to_owned(), before, after };
    let states = changes.state.iter();
    let states = states.map(|own| row("state", state_of(&own.before), state_of(&own.after)));
    let fields = changes.fields.iter();
    let fields = fields.map(|own| row(&own.path, value(&own.before), value(&own.after)));
    let identities = changes.identities.iter();
    let identities = identities.map(|own| row("identity", name(&own.before), name(&own.after)));
    states.chain(fields).chain(identities).collect()
}

fn text(recorded: &RecordedValue) -> String {
    match &recorded.recorded {
        Some(Recorded::Value(value)) => attribute(value).1,
        Some(Recorded::Digest(digest)) => format!("a value of {} bytes", digest.size_bytes),
        Some(Recorded::Redacted(_)) => "of a purged user".to_owned(),
        None => String::new(),
    }
}

/// An identity with its marks.
fn identity_text(own: &v1::Identity) -> String {
    let marks = [(own.primary, " primary"), (own.verify_time.is_some(), " verified")];
    let marks = marks.into_iter().filter(|(has, _)| *has).map(|(_, mark)| mark);
    identity::text(own.identifier.as_ref()) + &marks.collect::<String>()
}
