//! Look-ups of any number of identifiers.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Duration;

use prost::Message;
use tokio::time::sleep;

use super::Resolve;
use super::shared::found;
use crate::attempts::delay;
use crate::batch::group::{ITEM_BYTES, MAX_BYTES};
use crate::error::{Error, Kind};
use crate::reasons::{ANSWER_TOO_LARGE, USER_TOO_LARGE};
use crate::v1::batch_resolve_identities_response::Found;
use crate::v1::{BatchResolveIdentitiesRequest, Identifier, ResolveIdentityRequest};

/// Resolves all, in requests of at most 1,000. What a request refuses is asked again after a delay.
pub async fn resolve(look_up: Resolve<Vec<Identifier>>) -> Vec<Result<Found, Error>> {
    let count = look_up.target.len();
    let waiting = (0..count).collect();
    let outcomes = vec![None; count];
    let mut many = Many { look_up, outcomes, waiting, refused: Vec::new() };
    many.ask_all().await;
    let max = many.look_up.client.rules().max;
    for made in 1..max {
        let Some(delay) = many.take_refused(made) else { break };
        sleep(delay).await;
        many.ask_all().await;
    }
    many.outcomes.into_iter().flatten().collect()
}

/// The look-ups, by their places in the list.
struct Many {
    look_up: Resolve<Vec<Identifier>>,
    outcomes: Vec<Option<Result<Found, Error>>>,
    waiting: VecDeque<usize>,
    /// Those that a further request may answer. They have their errors as outcomes.
    refused: Vec<usize>,
}

impl Many {
    /// Makes the requests of all that wait.
    async fn ask_all(&mut self) {
        let client = self.look_up.client.clone();
        while !self.waiting.is_empty() {
            let target = &self.look_up.target;
            let batch = next_batch(target, &mut self.waiting, client.max_items());
            match self.look_up.call(&batch).await {
                Ok(answers) => self.take(batch, answers).await,
                Err(error) if client.learn_limit(&error, batch.len()) => self.put_back(batch),
                Err(error) => self.fail(batch, &error),
            }
        }
    }

    async fn take(&mut self, batch: Vec<usize>, answers: Vec<Result<Found, Error>>) {
        let is_progress = answers.iter().any(|answer| !has_reason(answer, ANSWER_TOO_LARGE));
        let mut unfit = Vec::new();
        for (n, answer) in batch.into_iter().zip(answers) {
            if has_reason(&answer, ANSWER_TOO_LARGE) && is_progress {
                unfit.push(n);
            } else if has_reason(&answer, ANSWER_TOO_LARGE) || has_reason(&answer, USER_TOO_LARGE) {
                self.outcomes[n] = Some(self.look_up.call_single(n).await);
            } else {
                if answer.as_ref().is_err_and(Error::is_retryable) {
                    self.refused.push(n);
                }
                self.outcomes[n] = Some(answer);
            }
        }
        self.put_back(unfit);
    }

    /// Has these asked next.
    fn put_back(&mut self, batch: Vec<usize>) {
        for n in batch.into_iter().rev() {
            self.waiting.push_front(n);
        }
    }

    /// Sets the error of a request, and of all later ones if they cannot succeed either.
    fn fail(&mut self, batch: Vec<usize>, error: &Error) {
        let rest = match is_of_all(error) {
            true => std::mem::take(&mut self.waiting),
            false => VecDeque::new(),
        };
        if is_of_all(error) {
            self.refused.clear();
        }
        for n in batch.into_iter().chain(rest) {
            self.outcomes[n] = Some(Err(error.clone()));
        }
    }

    /// Has those that were refused wait again, and returns the delay before.
    fn take_refused(&mut self, made: u32) -> Option<Duration> {
        let refused = std::mem::take(&mut self.refused);
        if !self.look_up.client.rules().budget.allows() {
            return None;
        }
        let limit = self.look_up.client.timeout();
        let mut longest = None;
        for n in refused {
            let Some(Err(error)) = &self.outcomes[n] else { continue };
            let delay = delay(error, made);
            if delay < limit {
                longest = longest.max(Some(delay));
                self.waiting.push_back(n);
            }
        }
        longest
    }
}

/// Whether no request can succeed after this error of one.
fn is_of_all(error: &Error) -> bool {
    matches!(
        error.kind(),
        Kind::Unauthenticated | Kind::PermissionDenied | Kind::DeadlineExceeded | Kind::Cancelled
    )
}

fn has_reason(answer: &Result<Found, Error>, reason: &str) -> bool {
    answer.as_ref().is_err_and(|error| error.reason() == reason)
}

/// The next identifiers that fit into a request.
fn next_batch(
    identifiers: &[Identifier],
    waiting: &mut VecDeque<usize>,
    max_items: usize,
) -> Vec<usize> {
    let mut total = 0;
    let fits = waiting.iter().take(max_items).try_fold(0, |count, n| {
        total += identifiers[*n].encoded_len() + ITEM_BYTES;
        match total > MAX_BYTES && count > 0 {
            true => ControlFlow::Break(count),
            false => ControlFlow::Continue(count + 1),
        }
    });
    let (ControlFlow::Break(count) | ControlFlow::Continue(count)) = fits;
    waiting.drain(..count).collect()
}

impl Resolve<Vec<Identifier>> {
    /// The answer for each of these identifiers.
    async fn call(&self, batch: &[usize]) -> Result<Vec<Result<Found, Error>>, Error> {
        let options = self.request.clone();
        let request = BatchResolveIdentitiesRequest {
            tenant: options.tenant,
            identifiers: batch.iter().map(|n| self.target[*n].clone()).collect(),
            consistency: options.consistency,
            max_staleness: options.max_staleness,
            show_disabled: options.show_disabled,
            read_mask: options.read_mask,
            as_of: options.as_of,
        };
        let answer = self.client.directory().batch_resolve_identities(request).await?;
        Ok(answer.results.into_iter().map(found).collect())
    }

    async fn call_single(&self, n: usize) -> Result<Found, Error> {
        let identifier = Some(self.target[n].clone());
        let request = ResolveIdentityRequest { identifier, ..self.request.clone() };
        let answer = self.client.directory().resolve_identity(request).await?;
        Ok(Found { user: answer.user, identity: answer.identity })
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::batch::group::MAX_ITEMS;
    use crate::client::Client;
    use crate::email;
    use crate::fake::{Answer, Fake, status};

    #[test]
    fn batches_are_limited_by_number_and_by_bytes() {
        let short = vec![email("joe@example.com"); 2_500];
        let mut waiting: VecDeque<usize> = (0..short.len()).collect();
        assert_eq!(next_batch(&short, &mut waiting, MAX_ITEMS), (0..1_000).collect::<Vec<_>>());
        assert_eq!(next_batch(&short, &mut waiting, MAX_ITEMS).len(), 1_000);
        assert_eq!(next_batch(&short, &mut waiting, MAX_ITEMS).len(), 500);

        let long = vec![email("x".repeat(4_000)); 300];
        let mut waiting: VecDeque<usize> = (0..long.len()).collect();
        assert_eq!(next_batch(&long, &mut waiting, MAX_ITEMS).len(), 229);

        let huge = vec![email("x".repeat(MAX_BYTES)); 2];
        let mut waiting: VecDeque<usize> = (0..huge.len()).collect();
        assert_eq!(next_batch(&huge, &mut waiting, MAX_ITEMS), [0]);
        assert_eq!(next_batch(&short, &mut (0..9).collect(), 2), [0, 1]);
    }

    async fn resolve_all(client: &Client, count: usize) -> Vec<Result<Found, Error>> {
        client.resolve_many((0..count).map(|n| email(format!("user{n}@example.com")))).await
    }

    #[tokio::test]
    async fn a_failed_request_leaves_the_others_alone() {
        let invalid = status(Code::InvalidArgument, "TENANT_INVALID", Duration::ZERO, "");
        let server = Fake::start(move |call| match call.number {
            2 => Answer::Fails(invalid.clone()),
            _ => Answer::Found,
        });
        let outcomes = resolve_all(&server.await.builder().connect_lazy().unwrap(), 2_100).await;
        let failed = |outcomes: &[Result<Found, Error>]| {
            outcomes.iter().filter(|outcome| outcome.is_err()).count()
        };
        assert_eq!(failed(&outcomes[..1_000]), 0);
        assert_eq!(failed(&outcomes[1_000..2_000]), 1_000);
        assert_eq!(failed(&outcomes[2_000..]), 0);
    }

    #[tokio::test]
    async fn no_request_follows_an_error_of_all() {
        let denied = status(Code::PermissionDenied, "ROLE_DENIED", Duration::ZERO, "");
        let server = Fake::start(move |call| match call.number {
            1 => Answer::Found,
            _ => Answer::Fails(denied.clone()),
        });
        let server = server.await;
        let outcomes = resolve_all(&server.builder().connect_lazy().unwrap(), 3_000).await;
        assert_eq!(server.counts(), [1_000, 1_000]);
        assert!(outcomes[..1_000].iter().all(Result::is_ok));
        assert!(outcomes[1_000..].iter().all(Result::is_err));
    }

    #[tokio::test]
    async fn what_a_request_refuses_is_asked_again() {
        let delay = Duration::from_millis(20);
        let refusal = status(Code::ResourceExhausted, "RATE_LIMITED", delay, "");
        let refusals = refusal.clone();
        let server = Fake::start(move |call| match call.number {
            1 => Answer::RefusesFirst(refusal.clone()),
            _ => Answer::Found,
        });
        let server = server.await;
        let outcomes = resolve_all(&server.builder().connect_lazy().unwrap(), 10).await;
        assert!(outcomes.iter().all(Result::is_ok));
        assert_eq!(server.counts(), [10, 1]);

        let server = Fake::start(move |_| Answer::RefusesFirst(refusals.clone())).await;
        let outcomes = resolve_all(&server.builder().connect_lazy().unwrap(), 10).await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_err()).count(), 1);
        assert_eq!(server.counts(), [10, 1, 1]);
    }
}
