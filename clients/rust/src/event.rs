//! The types of events.

use crate::v1::event::Change;
use crate::v1::{Event, EventType};

/// The type of an event, such as `EventType::UserCreated`. That of an event that this client does
/// not know is `Unspecified`.
pub fn event_type(event: &Event) -> EventType {
    include!(concat!(env!("OUT_DIR"), "/event_type.rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_is_that_of_its_change() {
        let change = Some(Change::IdentityTakenOver(Default::default()));
        let event = Event { change, ..Default::default() };
        assert_eq!(event_type(&event), EventType::IdentityTakenOver);
        assert_eq!(event_type(&Event::default()), EventType::Unspecified);
    }
}
