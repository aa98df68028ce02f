//! The metric of the connections to MongoDB.

use metrics::gauge;
use mongodb::event::EventHandler;
use mongodb::event::cmap::CmapEvent;

/// The gauge of connections.
pub const CONNECTIONS: (&str, &str) =
    ("polynym_mongodb_connections", "Connections to MongoDB, by state: open (all) or in_use");

/// A handler of the pool's events that updates the gauge.
pub fn watch() -> EventHandler<CmapEvent> {
    EventHandler::callback(|event| {
        let (state, step) = match event {
            CmapEvent::ConnectionCreated(_) => ("open", 1.0),
            CmapEvent::ConnectionClosed(_) => ("open", -1.0),
            CmapEvent::ConnectionCheckedOut(_) => ("in_use", 1.0),
            CmapEvent::ConnectionCheckedIn(_) => ("in_use", -1.0),
            _ => return,
        };
        gauge!(CONNECTIONS.0, "state" => state).increment(step);
    })
}
