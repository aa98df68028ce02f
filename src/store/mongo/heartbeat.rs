//! The heartbeat of a server: one background task for each open store. Every two seconds it takes the steps of
//! [`Beating::beat`], each of which has a file of its own, and publishes what they found as a [`Beat`]. It has a
//! connection of its own, so that no load delays it.

use std::sync::Arc;
use std::time::Duration;

use mongodb::Database;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::connect::{connect_apart, disconnect};
use super::dead::{self, DeadServers};
use super::error::{Fault, OpenError};
use super::presence::{Presence, Reading, ServerDocument};
use super::sessions::Sessions;
use super::versions::Fence;
use crate::directory::Timestamp;

/// The time from one beat to the next.
pub const PERIOD: Duration = Duration::from_secs(2);
/// The longest that a server that stops waits for its document to be deleted.
const PARTING: Duration = Duration::from_secs(1);

/// The results of the latest beat. A step that failed or was left out keeps its earlier result.
#[derive(Clone, Debug, Default)]
pub struct Beat {
    /// The database's clock against the local one.
    pub reading: Option<Reading>,
}

/// A running heartbeat. It ends with [`Heartbeat::stop`], or where this is dropped.
pub struct Heartbeat {
    latest: watch::Receiver<Beat>,
    stop: watch::Sender<Option<Parting>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// How a server stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// Nothing is under way: it needs no document any more.
    Idle,
    /// Something may be under way. Its document stays, and others end its sessions.
    Busy,
}

/// The state of the task.
struct Beating {
    database: Database,
    sessions: Arc<Sessions>,
    fence: Arc<Fence>,
    dead: DeadServers,
    latest: watch::Sender<Beat>,
    has_failed: bool,
}

impl Heartbeat {
    /// Starts the heartbeat of a server on the store in the database that `uri` names, which is there.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn start(uri: &str, sessions: Arc<Sessions>, fence: Arc<Fence>) -> Result<Self, OpenError> {
        let database = connect_apart(uri).await?;
        if let Some(presence) = Presence::of(&database).await? {
            sessions.begin(presence);
        }
        let (latest, observed) = watch::channel(Beat::default());
        let (stop, stopped) = watch::channel(None);
        let beating = Beating { database, sessions, fence, dead: DeadServers::default(), latest, has_failed: false };
        let task = Mutex::new(Some(tokio::spawn(beating.run(stopped))));
        Ok(Self { latest: observed, stop, task })
    }

    /// The results of the latest beat.
    pub fn latest(&self) -> Beat {
        self.latest.borrow().clone()
    }

    /// Ends the heartbeat of a server that stops.
    pub async fn stop(&self, parting: Parting) {
        self.stop.send_replace(Some(parting));
        if let Some(task) = self.task.lock().await.take() {
            let _ = task.await;
        }
    }
}

impl Beating {
    /// Beats until it is to stop, or nobody can stop it any more.
    async fn run(mut self, mut stopped: watch::Receiver<Option<Parting>>) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let parting = loop {
            tokio::select! {
                // What was handed to the driver is not dropped half-way: a beat runs to its end.
                _ = ticks.tick() => {}
                parting = stopped.wait_for(Option::is_some) => break parting.ok().and_then(|parting| *parting),
            }
            let outcome = self.beat().await;
            self.log(outcome);
        };
        if let (Some(presence), Some(Parting::Idle)) = (self.sessions.presence(), parting) {
            let _ = timeout(PARTING, presence.leave()).await;
        }
        disconnect(&self.database).await;
    }

    /// Takes the steps of one beat. A step that fails ends the beat.
    async fn beat(&mut self) -> Result<(), Fault> {
        self.fence.refresh(&self.database).await?;
        let sessions = self.sessions.clone();
        let Some(presence) = sessions.presence() else { return Ok(()) };
        let before = Timestamp::now();
        sessions.renew().await?;
        let after = Timestamp::now();
        let servers = presence.all().await?;
        if let Some(time) = presence.time_in(&servers) {
            let database = Timestamp::from_millis(time.timestamp_millis());
            self.latest.send_modify(|beat| beat.reading = Some(Reading { before, database, after }));
        }
        self.end_dead(presence, &servers).await
    }

    /// Ends what dead servers have left.
    async fn end_dead(&mut self, presence: &Presence, servers: &[ServerDocument]) -> Result<(), Fault> {
        let mut outcome = Ok(());
        for (server, age) in self.dead.find(presence, servers) {
            let (sessions, seconds) = (server.sessions.len(), age.as_secs());
            tracing::debug!(sessions, seconds, "a server is dead: its sessions are ended");
            outcome = outcome.and(dead::end(&self.database, presence, &server, age).await);
        }
        outcome
    }

    /// Logs the first failure of several in a row, and the end of them.
    fn log(&mut self, outcome: Result<(), Fault>) {
        match (outcome, self.has_failed) {
            (Err(fault), false) => {
                tracing::warn!(%fault, "the heartbeat failed; it is tried again every {PERIOD:?}");
                self.has_failed = true;
            }
            (Ok(()), true) => {
                tracing::info!("the heartbeat works again");
                self.has_failed = false;
            }
            (Err(_), true) | (Ok(()), false) => {}
        }
    }
}
