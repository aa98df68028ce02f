//! The steps of scenarios.

mod calls;
mod creation;
mod lists;
mod rolling;
mod server;

use std::time::Duration;

use serde_json::json;

use crate::Outcome;
use crate::puppet::Puppet;
use crate::runner::Runner;
use crate::scenario::Step;

impl<P: Puppet> Runner<'_, P> {
    /// Takes one step.
    pub async fn step(&mut self, step: &Step) -> Outcome<()> {
        match step {
            Step::Connect { caller, token, batching } => {
                let caller = caller.as_deref().unwrap_or("admin");
                self.connect(caller, token.as_deref(), batching.unwrap_or(true)).await
            }
            Step::Call { method, request, timeout_ms, answer, error, save } => {
                let expected = calls::Expected { answer: answer.as_ref(), error: error.as_ref() };
                self.call(method, request, *timeout_ms, expected, save).await
            }
            Step::Resolve { request, times, timeout_ms, within_ms: None, error } => {
                for _ in 0..times.unwrap_or(1) {
                    self.resolve(request, *timeout_ms, error.as_ref()).await?;
                }
                Ok(())
            }
            Step::Resolve { request, timeout_ms, within_ms: Some(within), .. } => {
                self.resolve_within(request, *timeout_ms, Duration::from_millis(*within)).await
            }
            Step::GetOrCreate { request, concurrency, creates, save } => {
                self.get_or_create(request, *concurrency, *creates, save).await
            }
            Step::Close {} => self.ask(json!({ "op": "close" })).await.map(drop),
            Step::ResolveConcurrently { requests, timeouts_ms, found } => {
                self.resolve_concurrently(requests, timeouts_ms.as_ref(), *found).await
            }
            Step::ResolveMany { request, found } => self.resolve_many(request, *found).await,
            Step::Search { request, count, error } => {
                self.pages(&lists::SEARCH, request, *count, error.as_ref()).await
            }
            Step::History { request, count, error } => {
                self.pages(&lists::HISTORY, request, *count, error.as_ref()).await
            }
            Step::Watch { request, error } => self.watch(request, error.as_ref()).await,
            Step::Watched { events, within_ms } => self.watched(events, *within_ms).await,
            other => self.server_step(other).await,
        }
    }
}
