//! The metric of the connections to MongoDB, and the number of attempts of an operation.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::mem;
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

/// The connections of one client, and their part of the gauge. The events are not always in pairs:
/// a connection whose operation ends before it gets it is returned without having been taken, and
/// one that is in use when its client ends is closed without being returned.
struct Connections {
    open: Gauge,
    in_use: Gauge,
    /// The servers with open connections.
    servers: Mutex<Vec<Server>>,
}

struct Server {
    address: ServerAddress,
    /// The open connections by their numbers, and whether each is in use.
    connections: BTreeMap<u32, bool>,
}

impl Default for Connections {
    fn default() -> Self {
        let [open, in_use] =
            ["open", "in_use"].map(|state| gauge!(CONNECTIONS.0, "state" => state));
        Self { open, in_use, servers: Mutex::default() }
    }
}

impl Connections {
    fn record(&self, event: CmapEvent) {
        match event {
            CmapEvent::ConnectionCreated(event) => self.add(event.address, event.connection_id),
            CmapEvent::ConnectionClosed(event) => self.remove(&event.address, event.connection_id),
            CmapEvent::ConnectionCheckedOut(event) => {
                let _ = TAKEN.try_with(|taken| taken.set(taken.get() + 1));
                self.set_in_use(&event.address, event.connection_id, true);
            }
            CmapEvent::ConnectionCheckedIn(event) => {
                self.set_in_use(&event.address, event.connection_id, false);
            }
            _ => {}
        }
    }

    fn add(&self, address: ServerAddress, id: u32) {
        let mut servers = self.servers();
        let known = servers.iter().position(|server| server.address == address);
        let index = known.unwrap_or_else(|| {
            servers.push(Server { address, connections: BTreeMap::new() });
            servers.len() - 1
        });
        if let Entry::Vacant(entry) = servers[index].connections.entry(id) {
            entry.insert(false);
            self.open.increment(1.0);
        }
    }

    fn remove(&self, address: &ServerAddress, id: u32) {
        let mut servers = self.servers();
        let known = servers.iter().position(|server| server.address == *address);
        let Some(index) = known else { return };
        let connections = &mut servers[index].connections;
        let Some(was_in_use) = connections.remove(&id) else { return };
        if connections.is_empty() {
            servers.swap_remove(index);
        }
        self.open.decrement(1.0);
        if was_in_use {
            self.in_use.decrement(1.0);
        }
    }

    /// Records whether an open connection is in use. Every command does so twice.
    fn set_in_use(&self, address: &ServerAddress, id: u32, is_in_use: bool) {
        let mut servers = self.servers();
        let server = servers.iter_mut().find(|server| server.address == *address);
        let Some(state) = server.and_then(|server| server.connections.get_mut(&id)) else { return };
        match (mem::replace(state, is_in_use), is_in_use) {
            (false, true) => self.in_use.increment(1.0),
            (true, false) => self.in_use.decrement(1.0),
            _ => {}
        }
    }

    /// The numbers of open connections, and of those in use.
    fn counts(&self) -> [usize; 2] {
        let servers = self.servers();
        let states = || servers.iter().flat_map(|server| server.connections.values());
        [states().count(), states().filter(|is_in_use| **is_in_use).count()]
    }

    fn servers(&self) -> MutexGuard<'_, Vec<Server>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        let [open, in_use] = self.counts();
        self.open.decrement(open as f64);
        self.in_use.decrement(in_use as f64);
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
            connections.counts()
        };
        assert_eq!(counts(&[event::<Created>(1), event::<Created>(2)]), [2, 0]);
        assert_eq!(counts(&[event::<CheckedIn>(1)]), [2, 0], "its operation had ended");
        assert_eq!(counts(&[event::<CheckedOut>(1), event::<CheckedOut>(2)]), [2, 2]);
        assert_eq!(counts(&[event::<CheckedIn>(1), event::<CheckedIn>(1)]), [2, 1]);
        assert_eq!(counts(&[event::<Closed>(2)]), [1, 0], "it was in use");
        assert_eq!(counts(&[event::<Closed>(1), event::<Closed>(1)]), [0, 0]);
    }
}
