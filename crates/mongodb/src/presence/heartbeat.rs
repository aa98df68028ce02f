//! The heartbeat of a server: one background task for each open store. Every two seconds it takes
//! the steps of [`HeartbeatTask::beat`] and publishes their results as a [`Beat`]. It has
//! connections of its own, so that no load delays it.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use mongodb::Database;
use mongodb::bson::{DateTime, doc};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::client::connect::{connect_apart, disconnect, is_shard};
use crate::client::current::Current;
use crate::client::error::{Fault, OpenError};
use crate::presence::dead::{self, DeadServer, DeadServers};
use crate::presence::expiry_leader::ExpiryLeader;
use crate::presence::servers::{BEAT_INTERVAL, Presence, Reading, ServerDocument};
use crate::presence::sessions::Sessions;
use crate::schema::versions::VersionGuard;
use polynym_directory::{Now, Timestamp};

/// The `appName` of its connections.
const APP_NAME: &str = "polynym heartbeat";
/// Its connections: one for the beats, and one that ends the sessions of dead servers.
const CONNECTIONS: u32 = 2;
/// The time limit for deleting the document of a server that stops.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest round trip that gives a reading of the database's time.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(10);

/// The results of the latest beat. A step that failed or was skipped keeps its earlier result.
#[derive(Clone, Debug, Default)]
pub struct Beat {
    /// The database's clock against the local one.
    pub reading: Option<Reading>,
}

/// A running heartbeat. It ends with [`Heartbeat::stop`], or when this is dropped.
pub struct Heartbeat {
    database: Current<Database>,
    latest: watch::Receiver<Beat>,
    ahead: Arc<AtomicI64>,
    leader: Arc<ExpiryLeader>,
    stop: watch::Sender<Option<Closing>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Whether mutations are in flight when a server stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// No mutation is in flight: the document can be deleted.
    Idle,
    /// Mutations may be in flight: the document stays, and other servers end its sessions.
    Busy,
}

/// The state of the task.
struct HeartbeatTask {
    database: Current<Database>,
    is_routed: bool,
    sessions: Arc<Sessions>,
    version_guard: Arc<VersionGuard>,
    dead: DeadServers,
    /// The task that ends the sessions of dead servers.
    ending: Option<JoinHandle<()>>,
    latest: watch::Sender<Beat>,
    /// Seconds by which the wall clock is ahead of the database's; zero where the two agree.
    ahead: Arc<AtomicI64>,
    leader: Arc<ExpiryLeader>,
    has_failed: bool,
}

impl Heartbeat {
    /// Starts the heartbeat of a server on the store in the database that `uri` names.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn start(
        uri: &str,
        is_routed: bool,
        sessions: Arc<Sessions>,
        version_guard: Arc<VersionGuard>,
    ) -> Result<Self, OpenError> {
        let database = Current::new(Self::connect(uri).await?);
        if let Some(presence) = Presence::of(&database, is_routed).await? {
            sessions.begin(presence);
        }

        let (latest, observed) = watch::channel(Beat::default());
        let (stop, stopped) = watch::channel(None);
        let (dead, ahead) = (DeadServers::default(), Arc::<AtomicI64>::default());
        let leader = Arc::<ExpiryLeader>::default();
        let beating = HeartbeatTask {
            database: database.clone(),
            is_routed,
            sessions,
            version_guard,
            dead,
            ending: None,
            latest,
            ahead: ahead.clone(),
            leader: leader.clone(),
            has_failed: false,
        };
        let task = Mutex::new(Some(tokio::spawn(beating.run(stopped))));

        Ok(Self { database, latest: observed, ahead, leader, stop, task })
    }

    /// Connects for a heartbeat.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn connect(uri: &str) -> Result<Database, OpenError> {
        connect_apart(uri, APP_NAME, CONNECTIONS).await
    }

    /// Beats by these connections from the next command on.
    pub fn replace(&self, database: Database) {
        self.database.replace(database);
    }

    /// Waits for the first reading of the database's time, at most until the second beat.
    pub async fn first_reading(&self) {
        let mut latest = self.latest.clone();
        let _ = timeout(BEAT_INTERVAL, latest.wait_for(|beat| beat.reading.is_some())).await;
    }

    /// The database's time, once it was read. Records the wall clock's lead over it.
    pub fn time(&self, wall: Timestamp) -> Option<Timestamp> {
        let time = self.latest.borrow().reading.map(|reading| reading.present())?;
        let now = Now::compare(wall, Some(time));
        self.ahead
            .store(if now.clock_uncertain { wall.millis_after(time) / 1_000 } else { 0 }, Relaxed);
        Some(time)
    }

    /// Whether this server looks for expired users at present.
    pub fn has_expiry_turn(&self) -> bool {
        self.leader.ask()
    }

    /// The results of the latest beat.
    pub fn latest(&self) -> Beat {
        self.latest.borrow().clone()
    }

    /// Ends the heartbeat.
    pub async fn stop(&self, closing: Closing) {
        self.stop.send_replace(Some(closing));
        if let Some(task) = self.task.lock().await.take() {
            let _ = task.await;
        }
    }
}

impl HeartbeatTask {
    /// Beats until it is stopped or its handle is dropped.
    async fn run(mut self, mut stopped: watch::Receiver<Option<Closing>>) {
        let mut ticks = interval(BEAT_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let closing = loop {
            // The driver's commands must not be dropped half-way: a beat runs to its end. After a
            // slow one the next is due at once, unless the store is closed.
            tokio::select! {
                biased;
                closing = stopped.wait_for(Option::is_some) => {
                    break closing.ok().and_then(|closing| *closing);
                }
                _ = ticks.tick() => {}
            }
            let outcome = self.beat().await;
            self.log(outcome);
        };
        if let (Some(presence), Some(Closing::Idle)) = (self.sessions.presence(), closing) {
            let _ = timeout(LEAVE_TIMEOUT, presence.delete_own()).await;
        }

        disconnect(&self.database.get()).await;
    }

    /// Takes the steps of one beat. A step that fails ends the beat.
    async fn beat(&mut self) -> Result<(), Fault> {
        let database = self.database.get();
        if !self.is_routed && is_shard(&database).await {
            self.version_guard.record_shard();
        }
        self.version_guard.refresh(&database).await?;
        let sessions = self.sessions.clone();
        let start = (Timestamp::now(), Instant::now());
        let Some(presence) = sessions.presence() else { return self.read_server_time(start).await };
        sessions.renew().await?;
        let end = (Timestamp::now(), Instant::now());
        let servers = presence.all().await?;
        if let Some(time) = presence.time_in(&servers) {
            self.publish_time(start, time, end);
        }
        self.leader.decide(presence, &servers);
        self.write_state(presence, &servers).await?;
        self.end_dead(presence, &servers);
        Ok(())
    }

    /// Asks the server for its time, if the store has no documents of servers.
    async fn read_server_time(&self, start: (Timestamp, Instant)) -> Result<(), Fault> {
        let hello = self.database.get().run_command(doc! { "hello": 1 }).await?;
        let end = (Timestamp::now(), Instant::now());
        if let Ok(time) = hello.get_datetime("localTime") {
            self.publish_time(start, *time, end);
        }
        Ok(())
    }

    /// Publishes the database's time, unless the local times around it are too far apart.
    fn publish_time(
        &self,
        (before, sent): (Timestamp, Instant),
        time: DateTime,
        (after, at): (Timestamp, Instant),
    ) {
        let database = Timestamp::from_millis(time.timestamp_millis());
        if at - sent < MAX_ROUND_TRIP {
            self.latest
                .send_modify(|beat| beat.reading = Some(Reading { before, database, after, at }));
        }
    }

    /// Writes the wall clock's lead, and whether this server looks for expired users, if its
    /// document has other values.
    async fn write_state(
        &self,
        presence: &Presence,
        servers: &[ServerDocument],
    ) -> Result<(), Fault> {
        let ahead = self.ahead.load(Relaxed);
        // A program that does not support the store's versions cannot expire users.
        let expires = self.leader.is_candidate() && self.version_guard.versions().is_ok();
        match presence.own_in(servers) {
            Some(stored) if (stored.ahead, stored.expires) != (ahead, expires) => {
                presence.write_state(ahead, expires).await
            }
            _ => Ok(()),
        }
    }

    /// Ends the sessions of dead servers on a task: that takes long while a member of a shard is
    /// dead, and this server must go on renewing its document.
    fn end_dead(&mut self, presence: &Presence, servers: &[ServerDocument]) {
        let dead = self.dead.find(presence, servers);
        let is_ending = self.ending.as_ref().is_some_and(|ending| !ending.is_finished());
        if dead.is_empty() || is_ending {
            return;
        }
        let (database, presence) = (self.database.get(), presence.clone());
        self.ending = Some(tokio::spawn(async move {
            for DeadServer { document, age, is_new } in dead {
                if is_new {
                    let (sessions, seconds) = (document.sessions.len(), age.as_secs());
                    tracing::info!(sessions, seconds, "ending the sessions of a server that died");
                }
                if let Err(fault) = dead::end(&database, &presence, &document, age).await {
                    tracing::warn!(%fault, "sessions of a dead server did not end; it is retried");
                }
            }
        }));
    }

    /// Logs the first failure of several in a row, and the end of them.
    fn log(&mut self, outcome: Result<(), Fault>) {
        match (outcome, self.has_failed) {
            (Err(fault), false) => {
                tracing::warn!(%fault, "the heartbeat failed; it retries every {BEAT_INTERVAL:?}");
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
