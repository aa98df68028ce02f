//! The advice for a store that no server uses. It may be a copy of another one, as after a restore:
//! what servers of the other one have begun is in it, too.

use mongodb::Database;
use mongodb::bson::{DateTime, Document, doc};
use mongodb::error::Error as DriverError;

use crate::client::documents::collect;
use crate::schema::fields::{BULK, RUNNING, SERVERS, TIME};
use crate::setup::cluster::STEP_TIMEOUT;
use crate::setup::status::Advice;

/// The milliseconds after which a server that has not written its document does not run.
const SILENCE: i64 = 10_000;

/// The advice for a store, unless a server runs.
pub async fn idle_advice(database: &Database) -> Result<Vec<Advice>, DriverError> {
    let hello = database.run_command(doc! { "hello": 1 }).await?;
    let now = hello.get_datetime("localTime").map_or_else(|_| DateTime::now(), |now| *now);
    let servers = database.collection(SERVERS).find(doc! {}).max_time(STEP_TIMEOUT).await?;
    let servers: Vec<Document> = collect(servers).await?;
    let has_beaten = |server: &Document| {
        let time = server.get_datetime(TIME).map_or(0, |time| time.timestamp_millis());
        now.timestamp_millis() - time < SILENCE
    };
    if servers.iter().any(has_beaten) {
        return Ok(Vec::new());
    }

    let bulk = database.collection::<Document>(BULK);
    let running = bulk.count_documents(doc! { RUNNING: true }).max_time(STEP_TIMEOUT).await?;
    let mut advice = Vec::new();
    if running > 0 {
        let are = if running == 1 { "bulk change is" } else { "bulk changes are" };
        advice.push(Advice {
            text: format!(
                "{running} {are} running, and no server is: the first server that starts goes on \
                 with them. If this is a copy that was restored, and they shall not go on, remove \
                 them"
            ),
            command: Some(format!("db.{BULK}.deleteMany({{ {RUNNING}: true }})")),
        });
    }
    if !servers.is_empty() {
        let are = if servers.len() == 1 { "server is" } else { "servers are" };
        advice.push(Advice {
            text: format!(
                "{} {are} registered, and none runs: the first server that starts ends their \
                 transactions. If this is a copy, and they run on the original on the same \
                 MongoDB, remove them",
                servers.len()
            ),
            command: Some(format!("db.{SERVERS}.deleteMany({{}})")),
        });
    }
    Ok(advice)
}
