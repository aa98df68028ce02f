//! The metric of the connections to MongoDB, and the number of attempts of an operation.

use std::cell::Cell;

use metrics::gauge;
use mongodb::event::EventHandler;
use mongodb::event::cmap::CmapEvent;

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

/// A handler of the pool's events that updates the gauge.
pub fn watch() -> EventHandler<CmapEvent> {
    EventHandler::callback(|event| {
        let (state, step) = match event {
            CmapEvent::ConnectionCreated(_) => ("open", 1.0),
            CmapEvent::ConnectionClosed(_) => ("open", -1.0),
            CmapEvent::ConnectionCheckedOut(_) => {
                let _ = TAKEN.try_with(|taken| taken.set(taken.get() + 1));
                ("in_use", 1.0)
            }
            CmapEvent::ConnectionCheckedIn(_) => ("in_use", -1.0),
            _ => return,
        };
        gauge!(CONNECTIONS.0, "state" => state).increment(step);
    })
}
