//! The kinds of events of users.

use polynym_proto::v1::{Event, EventType};

/// A kind of events in words.
pub struct Words {
    /// The kind.
    pub kind: EventType,
    /// The name of the kind in lists, such as `identity linked`.
    pub word: &'static str,
    /// The verb between the caller's and the user's name, such as `linked an identity to`.
    pub action: &'static str,
}

const fn words(kind: EventType, word: &'static str, action: &'static str) -> Words {
    Words { kind, word, action }
}

/// The kinds of events in the order of lists.
pub const KINDS: [Words; 19] = [
    words(EventType::UserCreated, "created", "created"),
    words(EventType::UserImported, "imported", "imported"),
    words(EventType::UserUpdated, "updated", "changed"),
    words(EventType::UserDisabled, "disabled", "disabled"),
    words(EventType::UserEnabled, "enabled", "enabled"),
    words(EventType::UserDeleted, "deleted", "deleted"),
    words(EventType::UserRestored, "restored", "restored"),
    words(EventType::UserMerged, "merged", "merged"),
    words(EventType::UserUnmerged, "merge undone", "undid the merge of"),
    words(EventType::IdentityLinked, "identity linked", "linked an identity to"),
    words(EventType::IdentityUnlinked, "identity unlinked", "unlinked an identity from"),
    words(EventType::IdentityReplaced, "identity replaced", "replaced an identity of"),
    words(EventType::IdentityMoved, "identity moved", "moved an identity between"),
    words(EventType::IdentityVerified, "identity verified", "verified an identity of"),
    words(EventType::IdentityMadePrimary, "identity made primary", "made an identity primary of"),
    words(EventType::IdentityTakenOver, "identity taken over", "passed on an identity between"),
    words(
        EventType::IdentityRenormalized,
        "identity normalised again",
        "normalised an identity of",
    ),
    words(EventType::HoldReleased, "hold released", "released an identity that was held for"),
    words(EventType::HistoryBegun, "history begun", "changed for the first time"),
];

/// The kind of an event in words, such as `identity linked`.
pub fn word(event: &Event) -> &'static str {
    words_of(event).map_or("changed", |words| words.word)
}

/// The word of a kind in lists; none for a kind of a later version.
pub fn word_of(kind: EventType) -> Option<&'static str> {
    KINDS.iter().find(|words| words.kind == kind).map(|words| words.word)
}

/// The words of an event; none for a kind of a later version.
pub fn words_of(event: &Event) -> Option<&'static Words> {
    let kind = event.event_type();
    KINDS.iter().find(|words| words.kind == kind)
}

/// The name of a type in addresses and arguments, such as `identity_linked`.
pub fn name(kind: EventType) -> String {
    kind.as_str_name().trim_start_matches(PREFIX).to_ascii_lowercase()
}

/// The type of a name, in upper or lower case.
///
/// # Errors
/// No type has the name.
pub fn parse(name: &str) -> Result<EventType, String> {
    let typed = format!("{PREFIX}{}", name.to_ascii_uppercase().replace('-', "_"));
    let known = EventType::from_str_name(&typed).filter(|kind| *kind != EventType::Unspecified);
    known.ok_or_else(|| {
        let names: Vec<_> = EventType::ALL.iter().map(|kind| self::name(*kind)).collect();
        format!("the types are {}", names.join(", "))
    })
}

const PREFIX: &str = "EVENT_TYPE_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_word_and_a_name() {
        for kind in EventType::ALL {
            assert_eq!(KINDS.iter().filter(|words| words.kind == *kind).count(), 1, "{kind:?}");
            assert_eq!(parse(&name(*kind)).as_ref(), Ok(kind));
        }
        assert_eq!(KINDS.len(), EventType::ALL.len());
        assert_eq!(parse("Identity-Linked"), Ok(EventType::IdentityLinked));
        assert!(parse("unspecified").unwrap_err().contains("user_created, user_imported"));
    }
}
