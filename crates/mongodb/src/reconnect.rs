//! The replacement of the connections of an open store, as with another password.

use std::time::Duration;

use mongodb::Database;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::client::connect;
use crate::client::error::OpenError;
use crate::database::operations::Mongo;
use crate::lookup::health::connect_probes;
use crate::presence::heartbeat::Heartbeat;
use crate::setup::inspect::check_complete;
use crate::setup::token_key;

/// The time limit for connecting anew.
const TIMEOUT: Duration = Duration::from_secs(60);

/// New connections, which work, in place of those of an open store.
struct NewConnections {
    main: Database,
    probes: Database,
    heartbeat: Database,
    /// Of each store for the look-ups of a runtime, in their order.
    look_ups: Vec<Database>,
}

impl Mongo {
    /// Connects by another URI of the same store, as with another password, and so do the stores of
    /// [`Mongo::on_runtime`], each on its runtime. Operations in flight end with the connections
    /// with which they began, which are then closed.
    ///
    /// # Errors
    /// [`OpenError`], with advice: all connections stay as they were.
    pub async fn reconnect(
        &self,
        uri: &str,
        on_runtimes: &[(&Self, &Handle)],
    ) -> Result<(), OpenError> {
        let connecting = timeout(TIMEOUT, self.connect_anew(uri, on_runtimes)).await;
        let late = |_| Err(OpenError::Unreachable("it does not answer in time".to_owned()));
        let new = connecting.unwrap_or_else(late)?;
        self.heartbeat.replace(new.heartbeat);
        self.probes.replace(&new.probes);
        self.connected.replace(&new.main);
        for ((store, _), database) in on_runtimes.iter().zip(&new.look_ups) {
            store.connected.replace(database);
        }
        Ok(())
    }

    /// Connects everything, and replaces nothing.
    async fn connect_anew(
        &self,
        uri: &str,
        on_runtimes: &[(&Self, &Handle)],
    ) -> Result<NewConnections, OpenError> {
        let (main, _) = connect::connect_pool(uri).await?;
        // The driver closes the other ones when they are dropped.
        connect::or_disconnect(&main, async {
            self.check_same(&main).await?;
            let probes = connect_probes(uri).await?;
            let heartbeat = Heartbeat::connect(uri).await?;
            let mut look_ups = Vec::new();
            for (_, runtime) in on_runtimes {
                look_ups.push(connect::connect_on(uri, runtime).await?);
            }
            Ok(NewConnections { main: main.clone(), probes, heartbeat, look_ups })
        })
        .await
    }

    /// Checks that a database is this store, in a deployment of the same kind: whether a store is
    /// routed decides how its operations read.
    async fn check_same(&self, database: &Database) -> Result<(), OpenError> {
        if connect::is_routed(database).await? != self.collections().is_routed {
            return Err(OpenError::OtherTopology);
        }
        self.version_guard.check(database).await?;
        check_complete(database).await?;
        let key = token_key::stored(database).await?;
        if key.is_some_and(|key| key.as_bytes() == self.token_key.as_bytes()) {
            Ok(())
        } else {
            Err(OpenError::OtherStore { database: database.name().to_owned() })
        }
    }
}
