//! Notices to users about changes by the rules, if their tenant enables them. They have no personal
//! data: the history has the details.

use std::collections::{BTreeMap, BTreeSet};

use locality_uuid::LocalityId;
use xxhash_rust::xxh3::Xxh3;

use crate::model::attribute::Value;
use crate::model::event::{Event, EventKind};
use crate::model::notice::{Notice, NoticeContent};
use crate::mutation::Mutation;
use crate::mutation::read_set::Write;

/// The notices of a mutation's events.
pub fn writes(mutation: &Mutation, events: &[Event]) -> Vec<Write> {
    if !mutation.policies.rule_notices {
        return Vec::new();
    }
    let write = |event: &Event| {
        let content = content(mutation, event)?;
        let notice = Notice {
            id: id(event),
            send_time: mutation.now.time,
            expire_time: None,
            content: NoticeContent { sender: NoticeContent::RULES.to_owned(), ..content },
        };
        Some(Write::Notify(event.user, Box::new(notice)))
    };
    events.iter().filter_map(write).collect()
}

/// The content of the notice of an event, if it causes one.
fn content(mutation: &Mutation, event: &Event) -> Option<NoticeContent> {
    let is_of = |kind| event.is_of(kind);
    let (rule, subject, body) = match event.kind {
        EventKind::IdentityTakenOver => {
            let mut lost = event.changes.lost_identities();
            let lately =
                if lost.any(|identity| identity.verification.is_some()) { " lately" } else { "" };
            let body = format!(
                "This account had {}, not verified{lately}. Another account has verified it and \
                 owns it.",
                lost_kinds(event)
            );
            ("identity_taken_over", "An identity went to another account", body)
        }
        EventKind::UserMerged if mutation.user_id() == Some(event.user) => {
            let body = "Another account was merged into this one, with its identities and data.";
            ("user_merged", "Another account was merged into this one", body.to_owned())
        }
        _ if is_of(EventKind::UserRestored) => {
            let body = "This account was deleted and has been restored.";
            ("user_restored", "This account was restored", body.to_owned())
        }
        _ if is_of(EventKind::UserDisabled) => {
            let body = "This account cannot be used until it is enabled again.";
            ("user_disabled", "This account was disabled", body.to_owned())
        }
        _ => return None,
    };
    let attributes = BTreeMap::from([("rule".to_owned(), Value::String(rule.to_owned()))]);
    Some(NoticeContent { sender: String::new(), subject: subject.to_owned(), body, attributes })
}

/// The kinds of the identities that the user lost, in words.
fn lost_kinds(event: &Event) -> String {
    let lost = event.changes.lost_identities();
    let kinds: BTreeSet<_> = lost.map(|identity| identity.identifier.kind().as_str()).collect();
    let identities: Vec<_> =
        kinds.iter().map(|kind| format!("an identity of kind {kind}")).collect();
    identities.join(" and ")
}

/// The id of the notice of an event: a hash as a UUID of version 8 (RFC 9562, section 5.8), which
/// does not seem to have a time. The events of a user have distinct times.
fn id(event: &Event) -> LocalityId {
    let mut hash = Xxh3::new();
    hash.update(event.user.as_bytes());
    hash.update(&event.time.as_millis().to_le_bytes());
    hash.update(&[event.kind as u8]);
    let mut bytes = hash.digest128().to_be_bytes();
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    LocalityId::from(bytes)
}
