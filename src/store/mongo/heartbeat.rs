//! The heartbeat of a server: one background task for each open store. Every two seconds it takes the steps of
//! [`Beating::beat`], each of which has a file of its own, and publishes what they found as a [`Beat`]. It has a
//! connection of its own, so that no load delays it.

use std::time::Duration;

use mongodb::Database;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::connect::{connect_apart, disconnect};
use super::error::{Fault, OpenError};
use super::presence::{Presence, Reading};

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
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// The state of the task.
struct Beating {
    database: Database,
    /// None where the store has no collection for it.
    presence: Option<Presence>,
    latest: watch::Sender<Beat>,
    has_failed: bool,
}

impl Heartbeat {
    /// Starts the heartbeat of a server on the store in the database that `uri` names, which is there.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn start(uri: &str) -> Result<Self, OpenError> {
        let database = connect_apart(uri).await?;
        let presence = Presence::of(&database).await?;
        let (latest, observed) = watch::channel(Beat::default());
        let (stop, stopped) = watch::channel(false);
        let beating = Beating { database, presence, latest, has_failed: false };
        let task = Mutex::new(Some(tokio::spawn(beating.run(stopped))));
        Ok(Self { latest: observed, stop, task })
    }

    /// The results of the latest beat.
    pub fn latest(&self) -> Beat {
        self.latest.borrow().clone()
    }

    /// Ends the heartbeat: others learn that this server has stopped.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        if let Some(task) = self.task.lock().await.take() {
            let _ = task.await;
        }
    }
}

impl Beating {
    /// Beats until it is to stop, or nobody can stop it any more.
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // What was handed to the driver is not dropped half-way: a beat runs to its end.
                _ = ticks.tick() => {}
                _ = stopped.wait_for(|stopped| *stopped) => break,
            }
            let outcome = self.beat().await;
            self.log(outcome);
        }
        if let Some(presence) = &self.presence {
            let _ = timeout(PARTING, presence.end()).await;
        }
        disconnect(&self.database).await;
    }

    /// Takes the steps of one beat. A step that fails ends the beat.
    async fn beat(&mut self) -> Result<(), Fault> {
        if let Some(presence) = &mut self.presence {
            let reading = presence.renew().await?;
            self.latest.send_modify(|beat| beat.reading = Some(reading));
        }
        Ok(())
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
