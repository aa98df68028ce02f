//! The kinds of events of users.

use polynym_proto::v1::{Event, EventType};

/// The kinds of events in the order of lists, with what happened to the user, in the past tense.
pub const KINDS: [(EventType, &str); 18] = [
    (EventType::UserCreated, "created"),
    (EventType::UserImported, "imported"),
    (EventType::UserUpdated, "updated"),
    (EventType::UserDisabled, "disabled"),
    (EventType::UserEnabled, "enabled"),
    (EventType::UserDeleted, "deleted"),
    (EventType::UserRestored, "restored"),
    (EventType::UserMerged, "merged"),
    (EventType::UserUnmerged, "merge undone"),
    (EventType::IdentityLinked, "identity linked"),
    (EventType::IdentityUnlinked, "identity unlinked"),
    (EventType::IdentityReplaced, "identity replaced"),
    (EventType::IdentityMoved, "identity moved"),
    (EventType::IdentityVerified, "identity verified"),
    (EventType::IdentityTakenOver, "identity taken over"),
    (EventType::IdentityRenormalized, "identity normalised again"),
    (EventType::HoldReleased, "hold released"),
    (EventType::HistoryBegun, "history begun"),
];

/// The kind of an event in words, such as `identity linked`.
pub fn word(event: &Event) -> &'static str {
    let kind = event.event_type();
    KINDS.iter().find(|(known, _)| *known == kind).map_or("changed", |(_, word)| word)
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
            assert_eq!(KINDS.iter().filter(|(known, _)| known == kind).count(), 1, "{kind:?}");
            assert_eq!(parse(&name(*kind)).as_ref(), Ok(kind));
        }
        assert_eq!(KINDS.len(), EventType::ALL.len());
        assert_eq!(parse("Identity-Linked"), Ok(EventType::IdentityLinked));
        assert!(parse("unspecified").unwrap_err().contains("user_created, user_imported"));
    }
}
