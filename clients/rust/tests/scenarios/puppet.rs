//! The Rust client as a puppet of the testbed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client_testbed::Puppet;
use futures_util::StreamExt;
use futures_util::future::join_all;
use polynym_client::v1::{
    BatchResolveIdentitiesRequest, CreateUserRequest, Event, ListHistoryRequest,
    ResolveIdentityRequest, SearchUsersRequest, WatchRequest,
};
use polynym_client::{Builder, Client, Error, Items, Watch};
use prost::Message;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::call::call;

/// A client, its watch, and its loops of look-ups.
#[derive(Default)]
pub struct RustPuppet {
    client: Option<Client>,
    watch: Option<Watch>,
    kept: Option<Kept>,
}

/// Loops that look up one user after another, and the outcomes so far.
struct Kept {
    loops: JoinSet<()>,
    outcomes: Arc<Mutex<Outcomes>>,
}

/// The number of answers, and the errors.
#[derive(Default)]
struct Outcomes {
    answers: u64,
    errors: Vec<Error>,
}

impl Puppet for RustPuppet {
    async fn take(&mut self, step: Value) -> Result<Value, String> {
        if step["op"] == "connect" {
            self.client = Some(connect(&step));
            return Ok(json!({ "id": step["id"] }));
        }
        let client = self.client.clone().ok_or("no client")?;
        let client = match step["timeout_ms"].as_u64() {
            Some(time) => client.with_timeout(Duration::from_millis(time)),
            None => client,
        };
        let mut answer = match step["op"].as_str().unwrap_or_default() {
            "call" => call(&client, &step).await,
            "resolve" => outcome(&resolve(&client, &step["request"]).await),
            "resolve_concurrently" => resolve_concurrently(&client, &step).await,
            "keep_resolving" => {
                self.kept = Some(keep_resolving(&client, &step));
                json!({})
            }
            "kept" => self.end_loops().await,
            "get_or_create" => get_or_create(&client, &step).await,
            "resolve_many" => {
                let request: BatchResolveIdentitiesRequest = decode(&step["request"]);
                let options = ResolveIdentityRequest {
                    tenant: request.tenant,
                    consistency: request.consistency,
                    max_staleness: request.max_staleness,
                    show_disabled: request.show_disabled,
                    read_mask: request.read_mask,
                    as_of: request.as_of,
                    identifier: None,
                };
                results(&client.resolve_many(request.identifiers).options(options).await)
            }
            "search" => list(client.search(decode::<SearchUsersRequest>(&step["request"]))).await,
            "history" => list(client.history(decode::<ListHistoryRequest>(&step["request"]))).await,
            "watch" => self.begin_watch(&client, &step).await,
            "watched" => self.end_watch(&step).await,
            op => return Err(format!("no step {op}")),
        };
        answer["id"] = step["id"].clone();
        Ok(answer)
    }
}

impl RustPuppet {
    async fn begin_watch(&mut self, client: &Client, step: &Value) -> Value {
        let mut watch = client.watch(decode::<WatchRequest>(&step["request"]));
        match watch.message().await {
            Ok(_) => {
                self.watch = Some(watch);
                json!({})
            }
            Err(error) => json!({ "error": error_json(&error) }),
        }
    }

    async fn end_watch(&mut self, step: &Value) -> Value {
        let mut watch = self.watch.take().unwrap();
        let number = |name: &str| step[name].as_u64().unwrap();
        let deadline = Instant::now() + Duration::from_millis(number("timeout_ms"));
        let mut events: Vec<Result<Event, Error>> = Vec::new();
        while events.len() < number("count") as usize
            && let Ok(event) = timeout_at(deadline, watch.next()).await
        {
            events.push(event);
        }
        results(&events)
    }

    /// Ends the loops after their present look-ups.
    async fn end_loops(&mut self) -> Value {
        let Kept { loops, outcomes } = self.kept.take().unwrap();
        drop(loops);
        let outcomes = outcomes.lock().unwrap();
        let errors: Vec<_> = outcomes.errors.iter().take(20).map(error_json).collect();
        json!({ "answers": outcomes.answers, "errors": errors })
    }
}

fn keep_resolving(client: &Client, step: &Value) -> Kept {
    let outcomes = Arc::new(Mutex::new(Outcomes::default()));
    let mut loops = JoinSet::new();
    for _ in 0..8 {
        let (client, request) = (client.clone(), step["request"].clone());
        let outcomes = Arc::clone(&outcomes);
        loops.spawn(async move {
            loop {
                let outcome = resolve(&client, &request).await;
                let mut outcomes = outcomes.lock().unwrap();
                match outcome {
                    Ok(_) => outcomes.answers += 1,
                    Err(error) => outcomes.errors.push(error),
                }
            }
        });
    }
    Kept { loops, outcomes }
}

async fn get_or_create(client: &Client, step: &Value) -> Value {
    let user = decode::<CreateUserRequest>(&step["request"]).user.unwrap();
    let identifier = user.identities[0].identifier.clone().unwrap();
    let callers = (0..step["concurrency"].as_u64().unwrap()).map(async |_| {
        match client.get_or_create(identifier.clone(), user.clone()).await {
            Ok(found) => json!({
                "ok": STANDARD.encode(found.user.encode_to_vec()), "created": found.is_created,
            }),
            Err(error) => json!({ "error": error_json(&error) }),
        }
    });
    json!({ "results": join_all(callers).await })
}

fn connect(step: &Value) -> Client {
    let text = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
    let mut builder = Builder::new(text("server"))
        .tenant(text("tenant"))
        .batching(step["batching"].as_bool().unwrap())
        .timeout(Duration::from_millis(step["timeout_ms"].as_u64().unwrap()));
    if let Some(token) = step["token"].as_str() {
        builder = builder.token(token);
    }
    builder.connect_lazy().unwrap()
}

async fn resolve(
    client: &Client,
    request: &Value,
) -> Result<polynym_client::v1::ResolveIdentityResponse, Error> {
    let mut request: ResolveIdentityRequest = decode(request);
    let identifier = request.identifier.take().unwrap_or_default();
    client.resolve(identifier).options(request).await
}

async fn resolve_concurrently(client: &Client, step: &Value) -> Value {
    let requests = step["requests"].as_array().unwrap();
    let calls = requests.iter().enumerate().map(|(n, request)| {
        let client = match step["timeouts_ms"][n].as_u64() {
            Some(time) => client.with_timeout(Duration::from_millis(time)),
            None => client.clone(),
        };
        async move { resolve(&client, request).await }
    });
    results(&join_all(calls).await)
}

async fn list<T: Message>(items: Items<T>) -> Value {
    results(&items.collect::<Vec<_>>().await)
}

fn results<T: Message>(outcomes: &[Result<T, Error>]) -> Value {
    json!({ "results": outcomes.iter().map(outcome).collect::<Vec<_>>() })
}

/// The outcome of a call as JSON.
pub fn outcome<T: Message>(outcome: &Result<T, Error>) -> Value {
    match outcome {
        Ok(message) => json!({ "ok": STANDARD.encode(message.encode_to_vec()) }),
        Err(error) => json!({ "error": error_json(error) }),
    }
}

/// A message of a step.
pub fn decode<T: Message + Default>(text: &Value) -> T {
    T::decode(STANDARD.decode(text.as_str().unwrap()).unwrap().as_slice()).unwrap()
}

fn error_json(error: &Error) -> Value {
    json!({
        "type": screaming(&format!("{:?}", error.kind())),
        "code": screaming(&format!("{:?}", error.code())),
        "reason": error.reason(),
        "field": error.field(),
        "owner": error.owner(),
        "retry_after_ms": error.retry_after().map(|delay| delay.as_secs_f64() * 1e3),
        "request_id": error.request_id(),
    })
}

/// `NotFound` as `NOT_FOUND`.
fn screaming(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}
