//! The kinds of events, whose messages and types have the same names.

use crate::v1::event::Change;
use crate::v1::{ChangeSet, Event, EventType};

macro_rules! event_kinds {
    ($($kind:ident)*) => {
        impl Event {
            /// The type; `Unspecified` if the change is of a later version of the API.
            pub const fn event_type(&self) -> EventType {
                match self.change {
                    None => EventType::Unspecified,
                    $(Some(Change::$kind(_)) => EventType::$kind,)*
                }
            }

            /// The changes; none if they are of a later version of the API.
            pub const fn change_set(&self) -> Option<&ChangeSet> {
                match &self.change {
                    None => None,
                    $(Some(Change::$kind(changes)) => Some(changes),)*
                }
            }
        }

        impl EventType {
            /// All types.
            pub const ALL: &[Self] = &[$(Self::$kind),*];
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/event.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_is_that_of_its_change() {
        let change = Some(Change::IdentityTakenOver(ChangeSet::default()));
        let event = Event { change, ..Default::default() };
        assert_eq!(event.event_type(), EventType::IdentityTakenOver);
        assert!(event.change_set().is_some());
        assert_eq!(Event::default().event_type(), EventType::Unspecified);
        let later = (1..1_000).filter(|number| EventType::try_from(*number).is_ok());
        assert_eq!(later.count(), EventType::ALL.len());
    }
}
