//! `get_or_create` of the client.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::lists::count;
use crate::puppet::Puppet;
use crate::runner::Runner;
use crate::scenario::Saved;
use crate::value::at;
use crate::{Outcome, api, check};

impl<P: Puppet> Runner<'_, P> {
    /// Many callers want one user: all get the same one, and one of them creates it, or none.
    pub async fn get_or_create(
        &mut self,
        request: &Value,
        concurrency: usize,
        creates: bool,
        save: &Saved,
    ) -> Outcome<()> {
        let method = self.api.method("RegistryService/CreateUser")?;
        let request = self.request(method.input(), request)?;
        let step = json!({
            "op": "get_or_create", "request": api::encode(&request), "concurrency": concurrency,
        });
        let answer = self.ask(step).await?;

        let results = check::results(&answer)?;
        count("results", results.len(), concurrency)?;
        let mut users = BTreeSet::new();
        for result in results {
            let user = api::json(&check::message(result, self.api.message("User")?)?)?;
            users.insert(at(&user, "userId")?.to_string());
            for (name, path) in save {
                self.variables.set(name, at(&user, path)?.clone());
            }
        }
        count("users", users.len(), 1)?;
        let created = results.iter().filter(|result| result["created"] == true).count();
        count("callers who created the user", created, usize::from(creates))
    }
}
