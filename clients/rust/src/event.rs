//! The types of events.

use crate::v1::{Event, EventType};

/// The type of an event, such as `EventType::UserCreated`. That of an event that this client does
/// not know is `Unspecified`.
pub const fn event_type(event: &Event) -> EventType {
    event.event_type()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::event::Change;

    #[test]
    fn each_type_is_that_of_its_change() {
        let change = Some(Change::IdentityTakenOver(Default::default()));
        let event = Event { change, ..Default::default() };
        assert_eq!(event_type(&event), EventType::IdentityTakenOver);
        assert_eq!(event_type(&Event::default()), EventType::Unspecified);
    }
}
