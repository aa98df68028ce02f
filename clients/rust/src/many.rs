//! Look-ups of any number of identifiers.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Duration;

use prost::Message;
use tokio::time::sleep;

use crate::attempts::{delay, is_retryable};
use crate::batch::group::{ITEM_BYTES, MAX_BYTES, found};
use crate::error::{Error, Kind};
use crate::reasons::{ANSWER_TOO_LARGE, USER_TOO_LARGE};
use crate::resolve::Resolve;
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
                if answer.as_ref().is_err_and(is_retryable) {
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

    /// Has those that were refused wait again, and returns the delay before; none if there are none.
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
    use super::*;
    use crate::batch::group::MAX_ITEMS;
    use crate::email;

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
}
