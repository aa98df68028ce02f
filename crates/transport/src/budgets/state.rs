//! The state that the calls and streams of a connection share, and their reservations in it.

use std::sync::{Arc, OnceLock};

use tokio::sync::watch;

use super::activity::{Activity, InFlight};
use super::byte_budget::{ByteBudget, ServerBytes};
use crate::budgets::streams::Ending;
use polynym_access::{Caller, ComputeLock, MethodCounts};

/// The usage of all connections.
#[derive(Default)]
pub struct ServerUsage {
    /// The reserved bytes.
    pub bytes: Arc<ServerBytes>,
    /// The open streams, by method.
    pub streams: MethodCounts,
}

/// The state of one connection.
pub struct ConnectionState {
    /// The usage of all connections.
    pub server: Arc<ServerUsage>,
    /// The reserved bytes.
    pub bytes: ByteBudget,
    /// The calls and streams in flight.
    pub activity: Activity,
    /// The open streams, by method.
    pub streams: MethodCounts,
    /// The streams that end before their time.
    ending: watch::Sender<Ending>,
    /// The lock of the long computations of clients without credentials.
    strangers_lock: ComputeLock,
    /// The compute lock of the caller that the connection is assigned to.
    owner_lock: OnceLock<ComputeLock>,
}

impl ConnectionState {
    pub fn new(server: Arc<ServerUsage>) -> Self {
        Self {
            bytes: ByteBudget::new(server.bytes.clone()),
            server,
            activity: Activity::default(),
            streams: MethodCounts::default(),
            ending: watch::Sender::default(),
            strangers_lock: ComputeLock::default(),
            owner_lock: OnceLock::new(),
        }
    }

    /// Assigns the bytes and the computations of the connection to a caller. The first one stays.
    pub fn assign_to(&self, caller: &Caller) {
        self.bytes.assign_to(caller);
        self.owner_lock.get_or_init(|| self.compute_lock_of(caller).clone());
    }

    /// The lock of a caller for long computations; without credentials, that of the connection.
    pub fn compute_lock_of<'l>(&'l self, caller: &'l Caller) -> &'l ComputeLock {
        if caller.is_anonymous() { &self.strangers_lock } else { &caller.state.compute_lock }
    }

    /// Ends these streams with a status.
    pub fn end_streams(&self, ending: Ending) {
        self.ending.send_replace(ending);
    }

    /// The streams that end before their time.
    pub fn ending(&self) -> watch::Receiver<Ending> {
        self.ending.subscribe()
    }
}

/// Bytes reserved for a connection, and their call, until this is dropped.
pub struct Reservation {
    connection: Arc<ConnectionState>,
    bytes: usize,
    in_flight: Option<InFlight>,
}

impl Reservation {
    /// Starts a call, in flight until its answer is sent.
    pub fn for_call(connection: &Arc<ConnectionState>) -> Self {
        Self::new(connection, Some(connection.activity.begin_call()))
    }

    /// Starts a request of the site, in flight until it is answered.
    pub fn for_site_request(connection: &Arc<ConnectionState>) -> Self {
        Self::new(connection, Some(connection.activity.begin(InFlight::SiteRequest)))
    }

    /// Starts a stream that comes to an end by itself.
    pub fn for_finite_stream(connection: &Arc<ConnectionState>) -> Self {
        Self::new(connection, Some(connection.activity.begin(InFlight::FiniteStream)))
    }

    /// For a message of a stream without an end.
    pub fn for_message(connection: &Arc<ConnectionState>) -> Self {
        Self::new(connection, None)
    }

    fn new(connection: &Arc<ConnectionState>, in_flight: Option<InFlight>) -> Self {
        Self { connection: connection.clone(), bytes: 0, in_flight }
    }

    /// The reserved bytes.
    #[cfg(test)]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The lock for long computations of the caller of the connection.
    pub fn compute_lock(&self) -> &ComputeLock {
        self.connection.owner_lock.get().unwrap_or(&self.connection.strangers_lock)
    }

    /// Reserves more bytes. Returns whether they fit.
    pub fn reserve(&mut self, bytes: usize) -> bool {
        let fits = self.connection.bytes.reserve(bytes);
        self.bytes += if fits { bytes } else { 0 };
        fits
    }

    /// Releases bytes.
    pub fn release(&mut self, bytes: usize) {
        let less = bytes.min(self.bytes);
        if less > 0 {
            self.bytes -= less;
            self.connection.bytes.release(less);
        }
    }

    /// Replaces the reserved bytes. Returns whether they fit; fewer always do.
    pub fn resize(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes {
            self.release(self.bytes - bytes);
            return true;
        }
        self.release(self.bytes);
        self.reserve(bytes)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release(self.bytes);
        if let Some(work) = self.in_flight {
            self.connection.activity.end(work);
        }
    }
}

#[cfg(test)]
mod tests;
