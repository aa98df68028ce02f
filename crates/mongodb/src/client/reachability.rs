//! Whether all shards answered the latest probe: a metric and log lines.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::client::error::Fault;

/// The gauge of a store that answers only in part: its name and its help text.
pub const PARTLY_UNREACHABLE: (&str, &str) = (
    "polynym_store_partly_away",
    "1 while some shards of the store do not answer and others do, else 0",
);

/// The result of the latest probe.
#[derive(Default)]
pub struct Reachability {
    is_part: AtomicBool,
}

impl Reachability {
    /// Whether some shards answered the latest probe, and others did not.
    pub fn is_part(&self) -> bool {
        self.is_part.load(Relaxed)
    }

    /// Records whether a part is missing. Logs changes.
    pub fn record(&self, missing: Option<&Fault>) {
        metrics::gauge!(PARTLY_UNREACHABLE.0).set(u8::from(missing.is_some()));
        let was_part = self.is_part.swap(missing.is_some(), Relaxed);
        match missing {
            Some(fault) if !was_part => {
                tracing::warn!(%fault, "a part of the store does not answer; calls that do not \
                    need it succeed, and `polynym store status` names the shards");
            }
            None if was_part => tracing::info!("all of the store answers again"),
            _ => {}
        }
    }
}
