//! What the deliveries of a server share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use locality_uuid::LocalityId;
use polynym_directory::timestamp::time_text;
use polynym_directory::{Directory, Error, EventDelivery};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::address::AddressPolicy;
use crate::attempts::{Attempts, result_of};
use crate::cloud_event;
use crate::receiver::{Message, Receiver, Reply};
use crate::secret::Secret;

/// The time in which turns end when the server stops.
const STOP_TIME: Duration = Duration::from_secs(2);
/// The time of an attempt without an event.
const TEST_TIMEOUT: Duration = Duration::from_secs(8);

/// Delivers the events of all tenants from one server.
pub struct Deliverer {
    pub(crate) directory: Arc<Directory>,
    pub(crate) attempts: Attempts,
    /// The random id of this server.
    pub(crate) server: LocalityId,
    /// Whether deliveries wait for a server that has room: then each has its turn.
    pub(crate) is_crowded: AtomicBool,
    /// Whether the server stops.
    stopping: watch::Sender<bool>,
    /// The number of turns.
    pub(crate) running: watch::Sender<usize>,
}

impl Deliverer {
    /// The deliveries of a server that connects to these addresses.
    pub fn new(directory: Arc<Directory>, policy: AddressPolicy) -> Self {
        let server = directory.new_server_id();
        Self {
            directory,
            attempts: Attempts::new(policy),
            server,
            is_crowded: AtomicBool::new(false),
            stopping: watch::Sender::new(false),
            running: watch::Sender::new(0),
        }
    }

    /// Ends the turns, so that other servers can deliver at once. Those that wait for a receiver
    /// for too long are left, and others take over once their leases have ended.
    pub async fn stop(&self) {
        self.stopping.send_replace(true);
        let mut running = self.running.subscribe();
        let _ = timeout(STOP_TIME, running.wait_for(|running| *running == 0)).await;
    }

    /// Whether the server stops.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits for something that can be given up; none if the server stops.
    pub(crate) async fn unless_stopping<T>(&self, waited: impl Future<Output = T>) -> Option<T> {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            done = waited => Some(done),
            _ = stopping.wait_for(|is_stopping| *is_stopping) => None,
        }
    }

    /// The addresses to which it connects.
    pub const fn policy(&self) -> &AddressPolicy {
        self.attempts.policy()
    }

    /// Sends a message without an event to the receiver of a delivery. Returns whether it was
    /// taken, the result, and how long it took.
    ///
    /// # Errors
    /// [`Error::Internal`].
    pub async fn test(&self, delivery: &EventDelivery) -> Result<(bool, String, Duration), Error> {
        let internal = |error: String| Error::Internal(error.into());
        let Some(receiver) = self.receiver(delivery) else {
            return Ok((false, "ADDRESS_REFUSED".to_owned(), Duration::ZERO));
        };
        let id = format!("test:{}", self.directory.new_server_id());
        let time = time_text(self.directory.now().time);
        let body = cloud_event::test_body(&id, delivery.tenant.as_str(), &time);
        let (began, body) = (Instant::now(), body.map_err(internal)?);
        let message = Message { id: &id, body: &body };
        // A call has ten seconds.
        let attempt = async {
            let permits = self.attempts.permits(&delivery.tenant).await;
            self.attempts.send(permits, &receiver, message).await
        };
        let reply = timeout(TEST_TIMEOUT, attempt).await.unwrap_or(Reply::Silent);
        let is_taken = matches!(reply, Reply::Taken(_));
        Ok((is_taken, result_of(reply), began.elapsed()))
    }

    /// The receiver of a delivery; none if this server does not send to it.
    pub(crate) fn receiver(&self, delivery: &EventDelivery) -> Option<Receiver> {
        let secrets = delivery.target.secrets.iter().map(|text| Secret::parse(text));
        let url = self.policy().parse_url(&delivery.target.url).ok()?;
        Some(Receiver::new(url, secrets.collect::<Result<_, _>>().ok()?))
    }
}
