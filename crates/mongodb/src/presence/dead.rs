//! The sessions of servers that died. Their transactions lock documents until MongoDB ends them
//! after a minute. Every server ends the sessions of servers that have not renewed their documents.

use std::collections::HashMap;
use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Bson, DateTime, Document, doc};
use tokio::time::Instant;

use crate::client::error::Fault;
use crate::command::run::run;
use crate::presence::servers::{BEAT_INTERVAL, Presence, ServerDocument};

/// The age of a document, by the database's clock, at which its server counts as dead.
pub const DEAD_AFTER: Duration = Duration::from_secs(8);
/// The age at which a document is deleted. Until then every beat ends its sessions: a statement
/// that was in flight when the server died may arrive late.
const DELETE_AFTER: Duration = Duration::from_secs(20);
/// The age at which a document is deleted even if its sessions could not be ended: by then MongoDB
/// has ended them.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5 * 60);
/// The beats in which a document must be unchanged before its server counts as dead. The
/// database's clock may jump, and an outage of the database makes all documents old.
const DEAD_AFTER_BEATS: u32 = 3;
/// The time limit of a command that ends sessions. A router asks all members of all shards, also
/// those that are dead.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// The sessions of one command.
const SESSIONS_PER_COMMAND: usize = 1_000;

/// The other servers, as the latest beats found them.
#[derive(Default)]
pub struct DeadServers {
    seen: HashMap<Vec<u8>, Seen>,
    last: Option<Instant>,
}

/// The document of another server, as the latest beats found it.
#[derive(Clone, Copy)]
struct Seen {
    time: DateTime,
    /// The number of beats that found it unchanged.
    beats: u32,
    is_dead: bool,
}

/// A server that has died.
pub struct DeadServer {
    /// Its document.
    pub document: ServerDocument,
    /// The age of its document.
    pub age: Duration,
    /// Whether the beats before found it alive.
    pub is_new: bool,
}

impl DeadServers {
    /// Records the documents of one beat. Returns the dead servers.
    pub fn find(&mut self, presence: &Presence, all: &[ServerDocument]) -> Vec<DeadServer> {
        // After a gap between beats, other servers need time to renew their documents.
        if self.last.replace(Instant::now()).is_none_or(|last| last.elapsed() > 2 * BEAT_INTERVAL) {
            self.seen.clear();
        }
        let Some(now) = presence.time_in(all) else { return Vec::new() };
        let mut seen = HashMap::new();
        let mut dead = Vec::new();
        for server in all.iter().filter(|server| !presence.is_own(server)) {
            let Some(id) = key(&server.id) else { continue };
            let before = self.seen.get(&id).filter(|seen| seen.time == server.time);
            let beats = before.map_or(1, |seen| seen.beats.saturating_add(1));
            let millis = now.timestamp_millis().saturating_sub(server.time.timestamp_millis());
            let age = Duration::from_millis(millis.try_into().unwrap_or_default());
            let is_dead = beats >= DEAD_AFTER_BEATS && age >= DEAD_AFTER;
            if is_dead {
                let is_new = before.is_none_or(|seen| !seen.is_dead);
                dead.push(DeadServer { document: server.clone(), age, is_new });
            }
            seen.insert(id, Seen { time: server.time, beats, is_dead });
        }
        self.seen = seen;

        dead
    }
}

fn key(id: &Bson) -> Option<Vec<u8>> {
    match id {
        Bson::Binary(id) => Some(id.bytes.clone()),
        _ => None,
    }
}

/// Ends the transactions of a dead server. A prepared one is left to its coordinator.
///
/// # Errors
/// [`Fault`]: call it again.
pub async fn end(
    database: &Database,
    presence: &Presence,
    server: &ServerDocument,
    age: Duration,
) -> Result<(), Fault> {
    let mut ended = Ok(());
    for sessions in server.sessions.chunks(SESSIONS_PER_COMMAND) {
        let ids = sessions.iter().map(|id| doc! { "id": id.clone() }).collect();
        ended = ended.and(kill(database, ids).await);
    }
    if age >= if ended.is_ok() { DELETE_AFTER } else { GIVE_UP_AFTER } {
        presence.remove(server).await?;
    }
    ended
}

/// Ends sessions. Without the privilege to end others, these must be of the same database user.
///
/// # Errors
/// [`Fault`].
pub async fn kill(database: &Database, ids: Vec<Document>) -> Result<(), Fault> {
    let admin = database.client().database("admin");
    run(&admin, doc! { "killSessions": ids }, KILL_TIMEOUT).await?;
    Ok(())
}
