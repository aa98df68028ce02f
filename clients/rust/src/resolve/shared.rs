//! Concurrent look-ups share calls. A look-up goes at once if no call is in flight. Those that come
//! meanwhile wait until the call returns or stalls, and go together.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::attempts::delay;
use crate::batch::group::{Answer, Group, Item, Key, Reply};
use crate::batch::{Batches, Slot};
use crate::client::Client;
use crate::error::Error;
use crate::reasons::{ANSWER_TOO_LARGE, USER_TOO_LARGE};
use crate::v1::batch_resolve_identities_response::{self as batch, Found, result::Outcome};
use crate::v1::{Consistency, ResolveIdentityRequest, ResolveIdentityResponse};

/// The time after which a call is stalled: others with the same options do not wait for it.
const STALL_TIMEOUT: Duration = Duration::from_millis(100);

/// How long a look-up waits for the end of its call beyond the deadline that both have.
const GRACE: Duration = Duration::from_millis(100);

/// Whether a look-up can share a call. Linearizable look-ups and those of the past cannot.
pub fn may_share(request: &ResolveIdentityRequest) -> bool {
    request.consistency != Consistency::Linearizable as i32 && request.as_of.is_none()
}

/// Resolves an identifier, alone or with others.
pub async fn resolve(
    batches: &Batches,
    client: &Client,
    mut request: ResolveIdentityRequest,
) -> Answer {
    if request.tenant.is_empty() {
        client.tenant().clone_into(&mut request.tenant);
    }
    let (now, deadline) = (Instant::now(), client.deadline(None));
    let single = request.clone();
    let identifier = request.identifier.take().unwrap_or_default();
    let (mut answer, caller, first) =
        batches.enter(Key::new(request), identifier, deadline, client.max_items());
    if let Some((slot, group)) = first {
        start(slot, client.clone(), group);
    }
    // The second half of the time is for a call of its own.
    let mut reply = timeout_at(now + (deadline - now) / 2, &mut answer).await;
    if reply.is_err() && caller.is_single() {
        reply = timeout_at(deadline + GRACE, answer).await;
    }
    drop(caller);
    match reply {
        Ok(Ok(Reply::Answer(answer))) => answer,
        Ok(Ok(Reply::Again(error))) => again(batches, client, single, deadline, error).await,
        // The task of a shared call ends without a reply if its runtime does.
        Ok(Ok(Reply::TooLarge) | Err(_)) | Err(_) => alone(batches, client, single, deadline).await,
    }
}

/// Resolves an identifier after a shared call has failed, which was its first attempt.
async fn again(
    batches: &Batches,
    client: &Client,
    request: ResolveIdentityRequest,
    deadline: Instant,
    error: Error,
) -> Answer {
    let (rules, delay) = (client.rules(), delay(&error, 1));
    if rules.max <= 1 || !rules.budget.allows() || Instant::now() + delay >= deadline {
        return Err(error);
    }
    sleep(delay).await;
    alone(batches, &client.after_attempts(1), request, deadline).await
}

/// Resolves an identifier by a call of its own, once it has a turn.
async fn alone(
    batches: &Batches,
    client: &Client,
    request: ResolveIdentityRequest,
    deadline: Instant,
) -> Answer {
    let turn = timeout_at(deadline, batches.alone.acquire()).await;
    if turn.is_err() || Instant::now() >= deadline {
        return Err(Error::deadline());
    }
    client.until(deadline).directory().resolve_identity(request).await
}

/// Sends a group in a task of its own, and the next one once it has returned or stalls.
fn start(mut slot: Slot, client: Client, group: Group) {
    tokio::spawn(async move {
        let key = slot.key.clone();
        let mut sent = pin!(send(group, &client, &key));
        if timeout(STALL_TIMEOUT, &mut sent).await.is_err() {
            if let Some(next) = slot.stall() {
                start_next(next, client.clone());
            }
            sent.await;
        }
        if !slot.is_stalled() {
            start_next(slot, client.clone());
        }
    });
}

/// Starts the next group instead of one that has returned or stalls.
fn start_next(mut slot: Slot, client: Client) {
    if let Some(group) = slot.next() {
        start(slot, client, group);
    }
}

/// Calls the server until the latest deadline of those who wait, or until all have left.
async fn send(group: Group, client: &Client, key: &Key) {
    let Group { mut items, callers, .. } = group;
    items.retain(|item| !item.reply.is_closed());
    let Some(deadline) = items.iter().map(|item| item.deadline).max() else { return };
    callers.begin(items.len());
    let client = client.until(deadline);
    let call = async {
        match <[Item; 1]>::try_from(items) {
            Ok([item]) => ask_single(&client, key, item).await,
            Err(items) => ask(&client, key, items).await,
        }
    };
    tokio::select! {
        () = call => {}
        () = callers.have_left() => {}
    }
}

async fn ask_single(client: &Client, key: &Key, item: Item) {
    let answer = client.directory().resolve_identity(key.single(item.identifier)).await;
    // A caller who has left needs no answer.
    let _ = item.reply.send(Reply::Answer(answer));
}

/// Asks for all in one request, or in several if the server takes fewer at once.
async fn ask(client: &Client, key: &Key, mut items: Vec<Item>) {
    while !items.is_empty() {
        let mut requests = Vec::new();
        while !items.is_empty() {
            let rest = items.len().saturating_sub(client.max_items());
            requests.push(items.split_off(rest));
        }
        let asked = requests.into_iter().map(|items| ask_once(client, key, items));
        items = join_all(asked).await.into_iter().flatten().collect();
    }
}

/// Makes one attempt. Returns the items if they were too many.
async fn ask_once(client: &Client, key: &Key, items: Vec<Item>) -> Vec<Item> {
    let request = key.request(items.iter().map(|item| item.identifier.clone()).collect());
    let replies: Vec<Reply> =
        match client.once().directory().batch_resolve_identities(request).await {
            Ok(answer) => answer.results.into_iter().map(reply_of_item).collect(),
            Err(error) if client.learn_limit(&error, items.len()) => return items,
            Err(error) => items.iter().map(|_| reply_of_error(error.clone())).collect(),
        };
    for (item, reply) in items.into_iter().zip(replies) {
        // A caller who has left needs no answer.
        let _ = item.reply.send(reply);
    }
    Vec::new()
}

/// The answer of an item as that of a call of its own.
fn reply_of_item(item: batch::Result) -> Reply {
    match found(item) {
        Ok(Found { user, identity }) => {
            Reply::Answer(Ok(ResolveIdentityResponse { user, identity }))
        }
        Err(error) if [ANSWER_TOO_LARGE, USER_TOO_LARGE].contains(&error.reason()) => {
            Reply::TooLarge
        }
        Err(error) => reply_of_error(error),
    }
}

fn reply_of_error(error: Error) -> Reply {
    // The attempts of a call that the server did not see have lasted until its deadline.
    match error.is_retryable() && !error.is_never_sent() {
        true => Reply::Again(error),
        false => Reply::Answer(Err(error)),
    }
}

/// The user of an item.
pub fn found(item: batch::Result) -> Result<Found, Error> {
    match item.outcome {
        Some(Outcome::Found(found)) => Ok(found),
        Some(Outcome::Error(status)) => Err(Error::of_item(status)),
        None => Err(tonic::Status::internal("the answer lacks an item").into()),
    }
}

#[cfg(test)]
mod tests;
