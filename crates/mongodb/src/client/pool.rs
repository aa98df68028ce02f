//! The metric of the connections to MongoDB, and the number of attempts of an operation.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use metrics::{Gauge, gauge};
use mongodb::event::EventHandler;
use mongodb::event::cmap::CmapEvent;
use mongodb::options::ServerAddress;

/// The gauge of connections.
pub const CONNECTIONS: (&str, &str) =
    ("polynym_mongodb_connections", "Connections to MongoDB, by state: open (all) or in_use");

tokio::task_local! {
    /// The connections that an operation has taken.
    static TAKEN: Cell<usize>;
}

/// Runs an operation of the driver. Returns its output and the number of its attempts: the driver
/// takes a connection for each.
pub async fn count_attempts<T>(operation: impl Future<Output = T>) -> (T, usize) {
    let counted = async {
        let output = operation.await;
        (output, TAKEN.with(Cell::get))
    };
    TAKEN.scope(Cell::new(0), counted).await
}

/// A handler of the events of one client's pools that updates the gauge.
pub fn watch() -> EventHandler<CmapEvent> {
    let connections = Connections::default();
    EventHandler::callback(move |event| connections.record(event))
}

/// A connection among those of a client: its server, and its number there.
type ConnectionId = (ServerAddress, u32);

/// The connections of one client.
struct Connections {
    open: Counted,
    in_use: Counted,
}

impl Default for Connections {
    fn default() -> Self {
        let [open, in_use] =
            ["open", "in_use"].map(|state| Counted { state, ids: Mutex::default() });
        Self { open, in_use }
    }
}

impl Connections {
    fn record(&self, event: CmapEvent) {
        match event {
            CmapEvent::ConnectionCreated(event) => {
                self.open.add((event.address, event.connection_id));
            }
            CmapEvent::ConnectionClosed(event) => {
                let id = (event.address, event.connection_id);
                self.in_use.remove(&id);
                self.open.remove(&id);
            }
            CmapEvent::ConnectionCheckedOut(event) => {
                let _ = TAKEN.try_with(|taken| taken.set(taken.get() + 1));
                self.in_use.add((event.address, event.connection_id));
            }
            CmapEvent::ConnectionCheckedIn(event) => {
                self.in_use.remove(&(event.address, event.connection_id));
            }
            _ => {}
        }
    }
}

/// The connections in one state, and their part of the gauge. The events are not always in pairs:
/// a connection whose operation ends before it gets it is returned without having been taken, and
/// one that is in use when its client ends is closed without being returned.
struct Counted {
    state: &'static str,
    ids: Mutex<HashSet<ConnectionId>>,
}

impl Counted {
    fn add(&self, id: ConnectionId) {
        if self.ids().insert(id) {
            self.gauge().increment(1.0);
        }
    }

    fn remove(&self, id: &ConnectionId) {
        if self.ids().remove(id) {
            self.gauge().decrement(1.0);
        }
    }

    fn gauge(&self) -> Gauge {
        gauge!(CONNECTIONS.0, "state" => self.state)
    }

    fn ids(&self) -> MutexGuard<'_, HashSet<ConnectionId>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.gauge().decrement(self.ids().len() as f64);
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{deserialize_from_document, doc};
    use serde::de::DeserializeOwned;

    use super::*;

    fn event<T: DeserializeOwned + Into<CmapEvent>>(id: i32) -> CmapEvent {
        let fields = doc! { "connectionId": id, "reason": "dropped" };
        deserialize_from_document::<T>(fields).unwrap().into()
    }

    #[test]
    fn events_without_their_pair_count_for_nothing() {
        use mongodb::event::cmap::{
            ConnectionCheckedInEvent as CheckedIn, ConnectionCheckedOutEvent as CheckedOut,
            ConnectionClosedEvent as Closed, ConnectionCreatedEvent as Created,
        };

        let connections = Connections::default();
        let counts = |events: &[CmapEvent]| {
            events.iter().for_each(|event| connections.record(event.clone()));
            [&connections.open, &connections.in_use].map(|counted| counted.ids().len())
        };
        assert_eq!(counts(&[event::<Created>(1), event::<Created>(2)]), [2, 0]);
        assert_eq!(counts(&[event::<CheckedIn>(1)]), [2, 0], "its operation had ended");
        assert_eq!(counts(&[event::<CheckedOut>(1), event::<CheckedOut>(2)]), [2, 2]);
        assert_eq!(counts(&[event::<CheckedIn>(1), event::<CheckedIn>(1)]), [2, 1]);
        assert_eq!(counts(&[event::<Closed>(2)]), [1, 0], "it was in use");
        assert_eq!(counts(&[event::<Closed>(1), event::<Closed>(1)]), [0, 0]);
    }
}
