//! The sessions of servers that died in a transaction. Their transactions lock documents until
//! MongoDB ends them after a minute. Every server ends the sessions of others that have not renewed
//! their documents.

use std::collections::HashMap;
use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Bson, DateTime, Document, doc};
use tokio::time::Instant;

use crate::store::mongo::client::error::Fault;
use crate::store::mongo::presence::servers::{PERIOD, Presence, ServerDocument};

/// The age, by the database's clock, at which the document of a server counts as that of a dead
/// one.
const DEAD: Duration = Duration::from_secs(8);
/// The age at which a document is deleted. Until then its sessions are ended with every beat: a
/// statement that was in flight when the server died may arrive late.
const FORGOTTEN: Duration = Duration::from_secs(20);
/// The age at which a document is deleted even if its sessions could not be ended. MongoDB has
/// ended them by then.
const GIVEN_UP: Duration = Duration::from_secs(5 * 60);
/// In how many beats of this server a document has stood still that is taken for one of the dead.
/// The database's clock may jump, and a database that was away makes all documents old.
const STILL: u32 = 3;
/// Sessions that are ended in one command.
const AT_ONCE: usize = 1_000;

/// The other servers, as the last beats have found them.
#[derive(Default)]
pub struct DeadServers {
    /// The time in each document, and in how many beats it was there.
    seen: HashMap<Vec<u8>, (DateTime, u32)>,
    last: Option<Instant>,
}

impl DeadServers {
    /// Takes note of the documents in one beat. Answers with those of servers that are dead, and
    /// their age.
    pub fn find(
        &mut self,
        presence: &Presence,
        all: &[ServerDocument],
    ) -> Vec<(ServerDocument, Duration)> {
        // After a longer silence the others have to be given time to renew theirs.
        if self.last.replace(Instant::now()).is_none_or(|last| last.elapsed() > 2 * PERIOD) {
            self.seen.clear();
        }
        let Some(now) = presence.time_in(all) else { return Vec::new() };
        let mut seen = HashMap::new();
        let mut dead = Vec::new();
        for server in all.iter().filter(|server| !presence.is_own(server)) {
            let Some(id) = key(&server.id) else { continue };
            let before = self.seen.get(&id).filter(|(time, _)| *time == server.time);
            let beats = before.map_or(1, |(_, beats)| beats.saturating_add(1));
            let age = now.timestamp_millis().saturating_sub(server.time.timestamp_millis());
            let age = Duration::from_millis(age.try_into().unwrap_or_default());
            if beats >= STILL && age >= DEAD {
                dead.push((server.clone(), age));
            }
            seen.insert(id, (server.time, beats));
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

/// Ends the transactions of a server that is dead. What has prepared is its coordinator's to end.
///
/// # Errors
/// [`Fault`], where it is to be done again.
pub async fn end(
    database: &Database,
    presence: &Presence,
    server: &ServerDocument,
    age: Duration,
) -> Result<(), Fault> {
    let mut ended = Ok(());
    for sessions in server.sessions.chunks(AT_ONCE) {
        let ids = sessions.iter().map(|id| doc! { "id": id.clone() }).collect();
        ended = ended.and(kill(database, ids).await);
    }
    if age >= if ended.is_ok() { FORGOTTEN } else { GIVEN_UP } {
        presence.remove(server).await?;
    }
    ended
}

/// Ends sessions: without a right of its own, those of the same database user.
///
/// # Errors
/// [`Fault`].
pub async fn kill(database: &Database, ids: Vec<Document>) -> Result<(), Fault> {
    database.client().database("admin").run_command(doc! { "killSessions": ids }).await?;
    Ok(())
}
