//! The notices that users get of what the rules do to them, where their tenant wants that. They
//! have no personal data: the history has the details.

use std::collections::{BTreeMap, BTreeSet};

use locality_uuid::LocalityId;
use xxhash_rust::xxh3::Xxh3;

use crate::model::attribute::Value;
use crate::model::event::{Event, EventKind};
use crate::model::notice::{Notice, NoticeContent};
use crate::mutation::Mutation;
use crate::mutation::read_set::Write;

/// The notices of these events of a mutation.
pub fn writes(mutation: &Mutation, events: &[Event]) -> Vec<Write> {
    if !mutation.policies.rule_notices {
        return Vec::new();
    }
    let write = |event: &Event| {
        let content = content(mutation, event)?;
        let notice = Notice {
            id: id(event),
            send_time: mutation.time,
            expire_time: None,
            content: NoticeContent { sender: NoticeContent::RULES.to_owned(), ..content },
        };
        Some(Write::Notify(event.user, Box::new(notice)))
    };
    events.iter().filter_map(write).collect()
}

/// The text of the notice of an event; none where it is no cause of one.
fn content(mutation: &Mutation, event: &Event) -> Option<NoticeContent> {
    let (rule, subject, body) = match event.kind {
        EventKind::IdentityTakenOver => {
            let body = format!(
                "This account had {}, not verified, that another account has verified now. It went \
                 to that account.",
                lost_kinds(event)
            );
            ("identity_taken_over", "An identity went to another account", body)
        }
        EventKind::UserMerged if mutation.user_id() == Some(event.user) => {
            let body = "Another account was merged into this one. All that it had is part of this \
                account now.";
            ("user_merged", "Another account was merged into this one", body.to_owned())
        }
        EventKind::UserRestored => {
            let body = "This account was deleted, and is there again.";
            ("user_restored", "This account was restored", body.to_owned())
        }
        EventKind::UserDisabled => {
            let body = "This account is shut out until it is enabled again.";
            ("user_disabled", "This account was disabled", body.to_owned())
        }
        _ => return None,
    };
    let attributes = BTreeMap::from([("rule".to_owned(), Value::String(rule.to_owned()))]);
    Some(NoticeContent { sender: String::new(), subject: subject.to_owned(), body, attributes })
}

/// The kinds of the identities that an event takes from its user, in words.
fn lost_kinds(event: &Event) -> String {
    let lost = event.changes.identities.iter().filter(|change| change.after.is_none());
    let kinds: BTreeSet<_> = lost
        .filter_map(|change| Some(change.before.as_ref()?.identifier.kind().as_str()))
        .collect();
    let identities: Vec<_> =
        kinds.iter().map(|kind| format!("an identity of kind {kind}")).collect();
    identities.join(" and ")
}

/// The id of the notice of an event. The events of a user have different times.
fn id(event: &Event) -> LocalityId {
    let mut hash = Xxh3::new();
    hash.update(event.user.as_bytes());
    hash.update(&event.time.as_millis().to_le_bytes());
    hash.update(&[event.kind as u8]);
    LocalityId::from(hash.digest128().to_be_bytes())
}
