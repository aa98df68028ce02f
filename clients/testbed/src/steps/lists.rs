//! Calls of the client with many answers. Each must be that of the server itself.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use prost::Message;
use prost_reflect::{DynamicMessage, ReflectMessage, Value as FieldValue};
use serde_json::{Value, json};

use crate::direct::DirectError;
use crate::puppet::Puppet;
use crate::runner::Runner;
use crate::scenario::ExpectedError;
use crate::{Outcome, api, check, context};

/// The method of a search.
pub const SEARCH_METHOD: &str = "DirectoryService/SearchUsers";
const RESOLVE: &str = "DirectoryService/ResolveIdentity";
/// Concurrent calls of the testbed itself.
const CONCURRENT_CALLS: usize = 64;
/// The maximum time until a watch has seen its events.
const WATCH_TIMEOUT_MS: u64 = 60_000;

/// A list that has pages.
pub struct Pages {
    op: &'static str,
    method: &'static str,
    field: &'static str,
    item: &'static str,
}

pub const SEARCH: Pages =
    Pages { op: "search", method: SEARCH_METHOD, field: "users", item: "User" };
pub const HISTORY: Pages =
    Pages { op: "history", method: "DirectoryService/ListHistory", field: "events", item: "Event" };

impl<P: Puppet> Runner<'_, P> {
    /// Look-ups of the client at once.
    pub async fn resolve_concurrently(
        &mut self,
        requests: &Value,
        timeouts: Option<&Value>,
        found: usize,
    ) -> Outcome<()> {
        let method = self.api.method(RESOLVE)?;
        let requests = self.variables.fill(requests)?;
        let requests = requests.as_array().ok_or("requests are a list")?;
        let requests = requests.iter().map(|json| api::parse(method.input(), json));
        let requests: Vec<_> = requests.collect::<Outcome<_>>()?;
        let timeouts = timeouts.map(|list| self.variables.fill(list)).transpose()?;
        let encoded: Vec<_> = requests.iter().map(api::encode).collect();
        let step = json!({
            "op": "resolve_concurrently", "requests": encoded, "timeouts_ms": timeouts,
        });
        let answer = self.ask(step).await?;

        let results = check::results(&answer)?;
        let timeout_of = |n: usize| timeouts.as_ref().map_or(&Value::Null, |list| &list[n]);
        for (n, result) in results.iter().enumerate().filter(|(n, _)| !timeout_of(*n).is_null()) {
            if result["error"]["type"] != "DEADLINE_EXCEEDED" {
                return Err(format!("caller {n} has expired, but gets {result}"));
            }
        }
        let waits: Vec<usize> = (0..requests.len()).filter(|n| timeout_of(*n).is_null()).collect();
        let patient = waits.iter().map(|n| requests[*n].clone()).collect();
        let results: Vec<&Value> = waits.iter().filter_map(|n| results.get(*n)).collect();
        self.compare(&results, &self.resolve_directly(patient).await?, found)
    }

    /// `resolve_many` of the client.
    pub async fn resolve_many(&mut self, request: &Value, found: usize) -> Outcome<()> {
        let method = self.api.method("DirectoryService/BatchResolveIdentities")?;
        let request = self.request(method.input(), request)?;
        let step = json!({ "op": "resolve_many", "request": api::encode(&request) });
        let answer = self.ask(step).await?;

        let single = self.api.method(RESOLVE)?.input();
        let of_identifier = |identifier| {
            let mut one = DynamicMessage::new(single.clone());
            for (field, value) in request.fields() {
                if let Some(target) = single.get_field_by_name(field.name()) {
                    one.set_field(&target, value.clone());
                }
            }
            one.set_field_by_name("identifier", FieldValue::Message(identifier));
            one
        };
        let singles = api::list(&request, "identifiers").into_iter().map(of_identifier).collect();
        let item = self.api.message("BatchResolveIdentitiesResponse.Found")?;
        // A found item has the fields of a response, by the same numbers.
        let found_item = |response: DynamicMessage| {
            let bytes = response.encode_to_vec();
            DynamicMessage::decode(item.clone(), bytes.as_slice()).map_err(context("an item"))
        };
        let mut expected = Vec::new();
        for outcome in self.resolve_directly(singles).await? {
            expected.push(match outcome {
                Ok(response) => Ok(found_item(response)?),
                Err(error) => Err(error),
            });
        }
        let results: Vec<&Value> = check::results(&answer)?.iter().collect();
        self.compare(&results, &expected, found)
    }

    /// The answers of the server itself.
    async fn resolve_directly(
        &self,
        requests: Vec<DynamicMessage>,
    ) -> Outcome<Vec<Result<DynamicMessage, DirectError>>> {
        let method = self.api.method(RESOLVE)?;
        let direct = self.direct(&self.caller)?;
        let mut answers = Vec::new();
        for part in requests.chunks(CONCURRENT_CALLS) {
            let part: Vec<_> =
                part.iter().map(|request| self.with_tenant(request.clone())).collect();
            let calls = part.iter().map(|request| direct.call(&method, request));
            answers.extend(try_join_all(calls).await?);
        }
        Ok(answers)
    }

    fn compare(
        &self,
        results: &[&Value],
        expected: &[Result<DynamicMessage, DirectError>],
        found: usize,
    ) -> Outcome<()> {
        count("results", results.len(), expected.len())?;
        for (n, (result, expected)) in results.iter().zip(expected).enumerate() {
            check::same(result, expected).map_err(|why| format!("result {}: {why}", n + 1))?;
        }
        count("found results", expected.iter().filter(|outcome| outcome.is_ok()).count(), found)
    }

    /// All items of a list with pages.
    pub async fn pages(
        &mut self,
        pages: &Pages,
        request: &Value,
        expected_count: usize,
        error: Option<&ExpectedError>,
    ) -> Outcome<()> {
        let method = self.api.method(pages.method)?;
        let request = self.request(method.input(), request)?;
        let answer = self.ask(json!({ "op": pages.op, "request": api::encode(&request) })).await?;
        let mut results = check::results(&answer)?.clone();
        if let Some(error) = error {
            let last = results.pop().ok_or("no results")?;
            check::error(&last, error, &mut self.variables)?;
            return count("items before the error", results.len(), expected_count);
        }

        let direct = self.direct(&self.caller)?;
        let items = direct.pages(&method, &self.with_tenant(request), pages.field).await?;
        let items = items.map_err(|error| format!("the server says {error:?}"))?;
        count("items", results.len(), expected_count)?;
        let item = self.api.message(pages.item)?;
        let found = results.iter().map(|result| check::message(result, item.clone()));
        let found: Vec<_> = found.collect::<Outcome<_>>()?;
        match found == items {
            true => Ok(()),
            false => Err("the items are not those of the server".to_owned()),
        }
    }

    /// Begins a watch.
    pub async fn watch(&mut self, request: &Value, error: Option<&ExpectedError>) -> Outcome<()> {
        let request = self.request(self.api.message("WatchRequest")?, request)?;
        let answer = self.ask(json!({ "op": "watch", "request": api::encode(&request) })).await?;
        match (error, answer.get("error")) {
            (Some(error), _) => check::error(&answer, error, &mut self.variables),
            (None, Some(error)) => Err(format!("the watch fails: {error}")),
            (None, None) => Ok(()),
        }
    }

    /// Ends the watch once it has seen these events, each once, as the histories have them.
    pub async fn watched(
        &mut self,
        expected: &[(String, String)],
        within_ms: Option<u64>,
    ) -> Outcome<()> {
        let timeout_ms = within_ms.unwrap_or(WATCH_TIMEOUT_MS);
        let answer = self
            .ask(json!({
                "op": "watched", "count": expected.len(), "timeout_ms": timeout_ms,
            }))
            .await?;
        let descriptor = self.api.message("Event")?;
        let events = check::results(&answer)?.iter();
        let events = events.map(|result| check::message(result, descriptor.clone()));
        let events: Vec<_> = events.collect::<Outcome<_>>()?;

        let mut pairs = Vec::new();
        for (user, kind) in expected {
            pairs.push((self.variables.text(user)?, kind.clone()));
        }
        let seen: Vec<_> =
            events.iter().map(|event| (api::text(event, "user_id"), change(event))).collect();
        if seen != pairs {
            return Err(format!("the watch has seen {seen:?}, not {pairs:?}"));
        }
        let users: BTreeSet<_> = pairs.into_iter().map(|(user, _)| user).collect();
        let mut recorded = Vec::new();
        for user in users {
            recorded.extend(self.history_of(&user).await?);
        }
        match events.iter().all(|event| recorded.contains(event)) {
            true => Ok(()),
            false => Err("the watch has events that no history has".to_owned()),
        }
    }

    /// The history of a user, by the server itself.
    pub async fn history_of(&self, user: &str) -> Outcome<Vec<DynamicMessage>> {
        let method = self.api.method(HISTORY.method)?;
        let request = self.request(method.input(), &json!({ "userId": user }))?;
        let direct = self.direct("admin")?;
        let events = direct.pages(&method, &self.with_tenant(request), HISTORY.field).await?;
        events.map_err(|error| format!("the history: {error:?}"))
    }
}

/// The name of an event's change, such as `userCreated`.
pub fn change(event: &DynamicMessage) -> String {
    let oneof = event.descriptor().oneofs().find(|oneof| oneof.name() == "change");
    let mut fields = oneof.iter().flat_map(prost_reflect::OneofDescriptor::fields);
    let set = fields.find(|field| event.has_field(field));
    set.map(|field| field.json_name().to_owned()).unwrap_or_default()
}

/// Fails if a number is not the expected one.
pub fn count(what: &str, found: usize, expected: usize) -> Outcome<()> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{found} {what}, not {expected}")),
    }
}
