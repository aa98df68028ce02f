//! The internal part of a user as the message of an export.

use crate::encoded::encode::{identifier_message, time_message, user_message, value_message};
use crate::encoded::encoded_user::EncodedUser;
use crate::model::merge_report::NotRestored;
use crate::model::record::{Hold, MergeSnapshot, Record, UserInternals};
use polynym_identifier::{Guard, Identifier, PHONE_METADATA};
use polynym_proto::v1;
use v1::UserInternals as Message;
use v1::user_internals::hold::Held;
use v1::user_internals::merge_undo::{AttributeChange, TextChange};
use v1::user_internals::{Hold as HoldMessage, MergeUndo, NotRestored as NotRestoredMessage};

/// The internal part of a user, which is empty for nearly all users.
pub fn internals_message(record: &Record) -> Message {
    let UserInternals { disabled, guards, holds, merged, undo, not_restored, .. } =
        &record.internals;
    Message {
        disabled: *disabled,
        guarded_handles: guards.iter().map(|guard| guard.handle.canonical().to_owned()).collect(),
        holds: holds.iter().filter_map(hold_message).collect(),
        merged_user_ids: merged.iter().map(ToString::to_string).collect(),
        undo: undo.as_deref().map(|undo| Box::new(undo_message(undo))),
        not_restored: not_restored.iter().map(not_restored_message).collect(),
        ..rules_message(&EncodedUser::from_user(&record.user), &versions(record))
    }
}

/// The versions of the rules of a user's identities.
fn versions(record: &Record) -> Vec<u32> {
    record.user.identities.iter().map(|identity| identity.rules_version).collect()
}

/// The message of a user without internals: what an import needs to accept identities that its own
/// rules reject. `versions` are those of the identities.
pub fn rules_message(user: &EncodedUser, versions: &[u32]) -> Message {
    let phone_metadata = if user.has_phone() { PHONE_METADATA } else { "" };
    Message {
        rules_versions: versions.to_vec(),
        phone_metadata: phone_metadata.to_owned(),
        ..Message::default()
    }
}

/// The message of a hold; none if the kind of its key is unknown.
pub fn hold_message(hold: &Hold) -> Option<HoldMessage> {
    Some(HoldMessage {
        end_time: Some(time_message(hold.until)),
        rules_version: hold.rules_version,
        held: Some(held(hold)?),
    })
}

/// The identifier or skeleton of a hold; none if the kind of its key is unknown. The key of a guard
/// with an ASCII skeleton looks like that of a handle.
fn held(hold: &Hold) -> Option<Held> {
    let (_, word, value) = hold.key.parts();
    if hold.guard || word == Guard::LOOKALIKE {
        return Some(Held::Skeleton(value.to_owned()));
    }
    let identifier = Identifier::from_canonical(word.parse().ok()?, value.to_owned());
    Some(Held::Identifier(identifier_message(&identifier)))
}

fn undo_message(undo: &MergeSnapshot) -> MergeUndo {
    let text = |(before, after): &(String, String)| TextChange {
        before: before.clone(),
        after: after.clone(),
    };
    let attributes = undo.attributes.iter().map(|(name, (before, after))| {
        let (before, after) = (before.as_ref().map(value_message), Some(value_message(after)));
        (name.clone(), AttributeChange { before, after })
    });
    MergeUndo {
        end_time: Some(time_message(undo.until)),
        user: Some(user_message(&undo.before.user)),
        internals: Some(Box::new(internals_message(&undo.before))),
        display_name: undo.display_name.as_ref().map(text),
        attributes: attributes.collect(),
        unmarked: undo.unmarked.iter().map(identifier_message).collect(),
    }
}

/// The message of a part that undoing a merge could not restore.
fn not_restored_message(what: &NotRestored) -> NotRestoredMessage {
    let (field, identifier) = match what {
        NotRestored::Identity(identifier) => {
            ("identities".to_owned(), Some(identifier_message(identifier)))
        }
        NotRestored::DisplayName => ("primary.display_name".to_owned(), None),
        NotRestored::Attribute(name) => (format!("primary.attributes.{name}"), None),
    };
    NotRestoredMessage { field, identifier }
}
