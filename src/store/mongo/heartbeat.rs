//! The heartbeat of a server: one background task for each open store. Every two seconds it takes
//! the steps of [`Beating::beat`], each of which has a file of its own, and publishes what they
//! found as a [`Beat`]. It has a connection of its own, so that no load delays it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mongodb::Database;
use mongodb::bson::{DateTime, doc};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::connect::{connect_apart, disconnect};
use super::dead;
use super::dead::DeadServers;
use super::error::{Fault, OpenError};
use super::presence::{PERIOD, Presence, Reading, ServerDocument};
use super::sessions::Sessions;
use super::versions::Fence;
use crate::directory::clock::Now;
use crate::directory::model::timestamp::Timestamp;

/// The longest that a server that stops waits for its document to be deleted.
const PARTING: Duration = Duration::from_secs(1);
/// The longest round trip by which the database's time is read.
const PROMPT: Duration = Duration::from_secs(10);

/// The results of the latest beat. A step that failed or was left out keeps its earlier result.
#[derive(Clone, Debug, Default)]
pub struct Beat {
    /// The database's clock against the local one.
    pub reading: Option<Reading>,
}

/// A running heartbeat. It ends with [`Heartbeat::stop`], or where this is dropped.
pub struct Heartbeat {
    latest: watch::Receiver<Beat>,
    ahead: Arc<AtomicI64>,
    stop: watch::Sender<Option<Closing>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// The way in which a server stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// No mutation is in flight: the document can go.
    Idle,
    /// Mutations may be in flight: the document stays, and other servers end its sessions.
    Busy,
}

/// The state of the task.
struct Beating {
    database: Database,
    sessions: Arc<Sessions>,
    fence: Arc<Fence>,
    dead: DeadServers,
    latest: watch::Sender<Beat>,
    /// Seconds by which the wall clock is ahead of the database's; zero where the two agree.
    ahead: Arc<AtomicI64>,
    has_failed: bool,
}

impl Heartbeat {
    /// Starts the heartbeat of a server on the store in the database that `uri` names, which is
    /// there.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn start(
        uri: &str,
        sessions: Arc<Sessions>,
        fence: Arc<Fence>,
    ) -> Result<Self, OpenError> {
        let database = connect_apart(uri).await?;
        if let Some(presence) = Presence::of(&database).await? {
            sessions.begin(presence);
        }

        let (latest, observed) = watch::channel(Beat::default());
        let (stop, stopped) = watch::channel(None);
        let (dead, ahead) = (DeadServers::default(), Arc::<AtomicI64>::default());
        let beating = Beating {
            database,
            sessions,
            fence,
            dead,
            latest,
            ahead: ahead.clone(),
            has_failed: false,
        };
        let task = Mutex::new(Some(tokio::spawn(beating.run(stopped))));

        Ok(Self { latest: observed, ahead, stop, task })
    }

    /// Waits for the first reading of the database's time, no longer than to the second beat.
    pub async fn first_reading(&self) {
        let mut latest = self.latest.clone();
        let _ = timeout(PERIOD, latest.wait_for(|beat| beat.reading.is_some())).await;
    }

    /// The database's time, once it was read. Notes how far the wall clock is from it.
    pub fn time(&self, wall: Timestamp) -> Option<Timestamp> {
        let time = self.latest.borrow().reading.map(|reading| reading.present())?;
        let now = Now::compare(wall, Some(time));
        self.ahead
            .store(if now.clock_uncertain { wall.millis_after(time) / 1_000 } else { 0 }, Relaxed);
        Some(time)
    }

    /// The results of the latest beat.
    pub fn latest(&self) -> Beat {
        self.latest.borrow().clone()
    }

    /// Ends the heartbeat of a server that stops.
    pub async fn stop(&self, parting: Closing) {
        self.stop.send_replace(Some(parting));
        if let Some(task) = self.task.lock().await.take() {
            let _ = task.await;
        }
    }
}

impl Beating {
    /// Beats until it is stopped or its handle is dropped.
    async fn run(mut self, mut stopped: watch::Receiver<Option<Closing>>) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let parting = loop {
            tokio::select! {
                // A command that was handed to the driver is not dropped half-way: a beat runs to
                // its end.
                _ = ticks.tick() => {}
                parting = stopped.wait_for(Option::is_some) => {
                    break parting.ok().and_then(|parting| *parting);
                }
            }
            let outcome = self.beat().await;
            self.log(outcome);
        };
        if let (Some(presence), Some(Closing::Idle)) = (self.sessions.presence(), parting) {
            let _ = timeout(PARTING, presence.leave()).await;
        }

        disconnect(&self.database).await;
    }

    /// Takes the steps of one beat. A step that fails ends the beat.
    async fn beat(&mut self) -> Result<(), Fault> {
        self.fence.refresh(&self.database).await?;
        let sessions = self.sessions.clone();
        let start = (Timestamp::now(), Instant::now());
        let Some(presence) = sessions.presence() else { return self.ask_time(start).await };
        sessions.renew().await?;
        let end = (Timestamp::now(), Instant::now());
        let servers = presence.all().await?;
        if let Some(time) = presence.time_in(&servers) {
            self.learn_time(start, time, end);
        }
        self.note_clock(presence, &servers).await?;

        self.end_dead(presence, &servers).await
    }

    /// Asks the server for its time: in a store that has no documents of servers.
    async fn ask_time(&self, start: (Timestamp, Instant)) -> Result<(), Fault> {
        let hello = self.database.run_command(doc! { "hello": 1 }).await?;
        let end = (Timestamp::now(), Instant::now());
        if let Ok(time) = hello.get_datetime("localTime") {
            self.learn_time(start, *time, end);
        }
        Ok(())
    }

    /// Publishes the database's time between two local ones, unless they are too far apart.
    fn learn_time(
        &self,
        (before, sent): (Timestamp, Instant),
        time: DateTime,
        (after, at): (Timestamp, Instant),
    ) {
        let database = Timestamp::from_millis(time.timestamp_millis());
        if at - sent < PROMPT {
            self.latest
                .send_modify(|beat| beat.reading = Some(Reading { before, database, after, at }));
        }
    }

    /// Writes the wall clock's lead, if this server's document has another value.
    async fn note_clock(
        &self,
        presence: &Presence,
        servers: &[ServerDocument],
    ) -> Result<(), Fault> {
        let ahead = self.ahead.load(Relaxed);
        match presence.own_in(servers) {
            Some(own) if own.ahead != ahead => presence.note_clock(ahead).await,
            _ => Ok(()),
        }
    }

    /// Ends what dead servers have left.
    async fn end_dead(
        &mut self,
        presence: &Presence,
        servers: &[ServerDocument],
    ) -> Result<(), Fault> {
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
