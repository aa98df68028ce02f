//! Deliveries: a tenant's events on their way to a receiver.

use std::fmt;

use crate::model::bulk::lease::Lease;
use crate::model::delivery::held::HeldUsers;
use crate::model::delivery::log::DeliveryLog;
use crate::model::event::{Event, EventKind};
use crate::model::tenant::Tenant;
use crate::timestamp::Timestamp;

/// The deliveries of a tenant.
pub const MAX_DELIVERIES: usize = 100;

/// A delivery of a tenant's events to a receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct EventDelivery {
    /// The tenant.
    pub tenant: Tenant,
    /// Its id.
    pub id: String,
    /// What is sent, and to whom.
    pub target: DeliveryTarget,
    /// Why it is paused; none while it is not.
    pub pause: Option<DeliveryPause>,
    /// The caller who created it.
    pub caller: String,
    /// The time when it was created.
    pub create_time: Timestamp,
    /// The time when somebody last changed it.
    pub update_time: Timestamp,
    /// How far it is.
    pub progress: DeliveryProgress,
    /// Events that somebody wants to be sent again. The server that delivers takes them over.
    pub replays: HeldUsers,
    /// The server that delivers.
    pub lease: Option<Lease>,
}

/// What is sent, and to whom.
#[derive(Clone, PartialEq, Eq)]
pub struct DeliveryTarget {
    /// The URL of the receiver.
    pub url: String,
    /// The kinds of events; empty for all.
    pub kinds: Vec<EventKind>,
    /// Whether events have their values, or the ids of users alone.
    pub with_values: bool,
    /// The secrets of the signatures: one, or two while one replaces the other.
    pub secrets: Vec<String>,
    /// What it is for; may be empty.
    pub description: String,
}

/// A pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryPause {
    /// The reason, such as `RECEIVER_GONE`.
    pub reason: String,
    /// The caller who paused it; empty if a server did.
    pub caller: String,
    /// Since when.
    pub time: Timestamp,
}

/// How far a delivery is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryProgress {
    /// The position in the feed: all events before it were taken, are held, or are dead letters.
    pub position: Vec<u8>,
    /// The events that a receiver has not taken.
    pub held: HeldUsers,
    /// Why no event is sent, if so.
    pub stall: Option<Stall>,
    /// What it remembers.
    pub log: DeliveryLog,
}

/// A time in which no event is sent: the receiver cannot be reached, or asks for later messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The result of the last attempt.
    pub result: String,
    /// Since when.
    pub since: Timestamp,
    /// The attempts since.
    pub attempts: u32,
    /// The time of the next attempt.
    pub until: Timestamp,
}

impl EventDelivery {
    /// A new one, from a position of the feed on.
    pub fn new(
        tenant: Tenant,
        id: &str,
        target: DeliveryTarget,
        position: Vec<u8>,
        now: Timestamp,
    ) -> Self {
        Self {
            tenant,
            id: id.to_owned(),
            target,
            pause: None,
            caller: String::new(),
            create_time: now,
            update_time: now,
            progress: DeliveryProgress { position, ..DeliveryProgress::default() },
            replays: HeldUsers::default(),
            lease: None,
        }
    }

    /// The time when a server may take it; none while it is paused.
    pub fn due_time(&self) -> Option<Timestamp> {
        let due = self.lease.map_or(self.update_time, |lease| lease.until);
        Some(due).filter(|_| self.pause.is_none())
    }

    /// Pauses it.
    pub fn stop(&mut self, reason: &str, caller: &str, now: Timestamp) {
        self.lease = None;
        self.pause.get_or_insert_with(|| DeliveryPause {
            reason: reason.to_owned(),
            caller: caller.to_owned(),
            time: now,
        });
    }
}

/// Without the secrets.
impl fmt::Debug for DeliveryTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, kinds, with_values, secrets: _, description } = self;
        let mut shown = f.debug_struct("DeliveryTarget");
        shown.field("url", url).field("kinds", kinds).field("with_values", with_values);
        shown.field("description", description).finish_non_exhaustive()
    }
}

impl DeliveryTarget {
    /// Whether it is sent an event.
    pub fn wants(&self, event: &Event) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|kind| event.is_of(*kind))
    }
}
