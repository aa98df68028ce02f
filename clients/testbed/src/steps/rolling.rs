//! Two servers that are restarted one after the other.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::direct::Direct;
use crate::puppet::Puppet;
use crate::runner::Runner;
use crate::{Outcome, api};

/// The deadline of the client's look-ups meanwhile.
const TIMEOUT_MS: u64 = 10_000;
/// The time between two restarts, in which the client finds the server that is back.
const PAUSE: Duration = Duration::from_secs(2);

impl<P: Puppet> Runner<'_, P> {
    /// Restarts two servers in turn under look-ups. Each has a store of its own with these users.
    pub async fn rolling_restart(&mut self, users: &Value, request: &Value) -> Outcome<()> {
        let mut servers = [self.server.beside().await?, self.server.beside().await?];
        let token = self.server.token("admin")?.to_owned();
        for server in &servers {
            self.load_into(&Direct::new(&server.address, &token)?, users).await?;
        }
        let addresses = [servers[0].address.as_str(), &servers[1].address].join(",");
        self.connect_to(&addresses, &token, TIMEOUT_MS, true).await?;
        let method = self.api.method("DirectoryService/ResolveIdentity")?;
        let request = self.request(method.input(), request)?;
        self.ask(json!({ "op": "keep_resolving", "request": api::encode(&request) })).await?;

        for server in &mut servers {
            sleep(PAUSE).await;
            server.restart_gently().await?;
        }
        sleep(PAUSE).await;
        let answer = self.ask(json!({ "op": "kept" })).await?;
        match (&answer["errors"], answer["answers"].as_u64()) {
            (Value::Array(errors), Some(1..)) if errors.is_empty() => Ok(()),
            _ => Err(format!("look-ups during the restarts: {answer}")),
        }
    }
}
