//! Steps of the server, the proxy and the testbed itself.

use std::time::Duration;

use futures_util::future::try_join_all;
use prost_reflect::DynamicMessage;
use serde_json::{Value, json};

use super::lists::{SEARCH_METHOD, change, count};
use crate::Outcome;
use crate::api;
use crate::direct::Direct;
use crate::puppet::Puppet;
use crate::runner::Runner;
use crate::scenario::{Saved, Step};

impl<P: Puppet> Runner<'_, P> {
    /// Takes a step that is not the client's.
    pub async fn server_step(&mut self, step: &Step) -> Outcome<()> {
        match step {
            Step::Direct { method, request, caller, answer, save } => {
                let caller = caller.as_deref().unwrap_or("admin").to_owned();
                self.call_directly(&caller, method, request, answer.as_ref(), save).await
            }
            Step::Load { users } => self.load(users).await,
            Step::Faults { faults, times } => {
                self.proxy.take_calls();
                self.proxy.set_faults(&faults.repeat(times.unwrap_or(1)));
                Ok(())
            }
            Step::Outage { for_ms } => {
                self.proxy.begin_outage(for_ms.map(Duration::from_millis)).await;
                Ok(())
            }
            Step::RollingRestart { users, request } => self.rolling_restart(users, request).await,
            Step::Restart {} => {
                self.server.restart().await?;
                self.proxy.set_upstream(&self.server.address);
                Ok(())
            }
            Step::Freeze {} => {
                self.proxy.freeze();
                Ok(())
            }
            Step::Calls { at_least, at_most } => match self.proxy.take_calls() {
                calls if (at_least.unwrap_or_default()..=*at_most).contains(&calls) => Ok(()),
                calls => Err(format!("the client has sent {calls} calls, not {at_most}")),
            },
            Step::Happened { user, events } => {
                let user = self.variables.text(user)?;
                let history = self.history_of(&user).await?;
                same_changes(&history, events)
            }
            Step::TenantHappened { events } => {
                let history = self.all("AdminService/ListTenantHistory", "events").await?;
                same_changes(&history, events)
            }
            Step::Users { count: expected } => {
                count("users", self.all(SEARCH_METHOD, "users").await?.len(), *expected)
            }
            Step::BulkChanges { count: expected } => {
                let changes = self.all("RegistryService/ListBulkChanges", "bulk_changes").await?;
                count("bulk changes", changes.len(), *expected)
            }
            _ => Err("a step of the client".to_owned()),
        }
    }

    /// All items of a list of the tenant.
    async fn all(&mut self, method: &str, field: &str) -> Outcome<Vec<DynamicMessage>> {
        let method = self.api.method(method)?;
        let request = self.with_tenant(DynamicMessage::new(method.input()));
        let items = self.direct("admin")?.pages(&method, &request, field).await?;
        items.map_err(|error| format!("{field}: {error:?}"))
    }

    async fn call_directly(
        &mut self,
        caller: &str,
        method: &str,
        request: &Value,
        answer: Option<&Value>,
        save: &Saved,
    ) -> Outcome<()> {
        let method = self.api.method(method)?;
        let request = self.with_tenant(self.request(method.input(), request)?);
        // With the token of `caller` itself: `direct` replaces that of `limited`.
        let token = self.server.token(caller)?;
        let direct = Direct::new(&self.server.address, token)?;
        let message = direct.succeed(&method, &request).await?;
        self.accept(&message, answer, save)
    }

    async fn load(&mut self, users: &Value) -> Outcome<()> {
        let direct = self.direct("admin")?;
        self.load_into(&direct, users).await
    }

    /// Creates users in a server.
    pub async fn load_into(&mut self, direct: &Direct, users: &Value) -> Outcome<()> {
        let method = self.api.method("RegistryService/CreateUser")?;
        let users = self.variables.fill(users)?;
        let users = users.as_array().ok_or("users are a list")?;
        let requests = users.iter().map(|user| {
            let request = api::parse(method.input(), &json!({ "user": user }))?;
            Ok(self.with_tenant(request))
        });
        let requests: Vec<_> = requests.collect::<Outcome<_>>()?;
        try_join_all(requests.iter().map(|request| direct.succeed(&method, request))).await?;
        Ok(())
    }
}

/// Compares a history, which begins with the newest event, with the expected events in their order.
fn same_changes(history: &[DynamicMessage], expected: &[String]) -> Outcome<()> {
    let changes: Vec<_> = history.iter().rev().map(change).collect();
    match changes == expected {
        true => Ok(()),
        false => Err(format!("the history has {changes:?}, not {expected:?}")),
    }
}
