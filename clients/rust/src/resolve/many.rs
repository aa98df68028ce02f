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
use crate::client::Client;
use crate::error::{Error, Kind};
use crate::reasons::{ANSWER_TOO_LARGE, USER_TOO_LARGE};
use crate::v1::batch_resolve_identities_response::Found;
use crate::v1::{BatchResolveIdentitiesRequest, Identifier, ResolveIdentityRequest};

/// Resolves all, in requests of at most 1,000, in rounds that are one attempt each. Items
/// that a round leaves unanswered for the moment are requested again after a delay.
pub async fn resolve(look_up: Resolve<Vec<Identifier>>) -> Vec<Result<Found, Error>> {
    let count = look_up.target.len();
    let waiting = (0..count).collect();
    let outcomes = vec![None; count];
    let mut many = Many { look_up, outcomes, waiting, refused: Vec::new(), made: 0 };
    many.ask_all().await;
    while let Some(delay) = many.take_refused() {
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
    /// Those that a further round may answer after a delay. They have their errors as outcomes.
    refused: Vec<(usize, Duration)>,
    /// The attempts before this round.
    made: u32,
}

impl Many {
    /// Makes the requests of all that wait.
    async fn ask_all(&mut self) {
        let client = self.look_up.client.after_attempts(self.made);
        while !self.waiting.is_empty() {
            let target = &self.look_up.target;
            let batch = next_batch(target, &mut self.waiting, client.max_items());
            match self.look_up.call(&client.once(), &batch).await {
                Ok(answers) => self.take(&client, batch, answers).await,
                Err(error) if client.learn_limit(&error, batch.len()) => self.put_back(batch),
                Err(error) if is_of_all(&error) => self.fail_rest(batch, &error),
                Err(error) => self.fail(batch, &error),
            }
        }
    }

    async fn take(
        &mut self,
        client: &Client,
        batch: Vec<usize>,
        answers: Vec<Result<Found, Error>>,
    ) {
        let is_progress = answers.iter().any(|answer| !has_reason(answer, ANSWER_TOO_LARGE));
        let (mut unfit, mut alone) = (Vec::new(), VecDeque::new());
        for (n, answer) in batch.into_iter().zip(answers) {
            if has_reason(&answer, ANSWER_TOO_LARGE) && is_progress {
                unfit.push(n);
            } else if has_reason(&answer, ANSWER_TOO_LARGE) || has_reason(&answer, USER_TOO_LARGE) {
                alone.push_back(n);
            } else if let Err(error) = answer {
                self.fail(vec![n], &error);
            } else {
                self.outcomes[n] = Some(answer);
            }
        }
        self.put_back(unfit);
        self.ask_alone(client, alone).await;
    }

    /// Asks for users that are too large for a batch, each by a call with all attempts.
    async fn ask_alone(&mut self, client: &Client, mut alone: VecDeque<usize>) {
        while let Some(n) = alone.pop_front() {
            match self.look_up.call_single(client, n).await {
                Err(error) if is_of_all(&error) => {
                    alone.push_front(n);
                    return self.fail_rest(alone, &error);
                }
                outcome => self.outcomes[n] = Some(outcome),
            }
        }
    }

    /// Has these asked next.
    fn put_back(&mut self, batch: Vec<usize>) {
        for n in batch.into_iter().rev() {
            self.waiting.push_front(n);
        }
    }

    /// Sets the error of these. A further round may answer them.
    fn fail(&mut self, batch: Vec<usize>, error: &Error) {
        let delay = error.is_retryable().then(|| delay(error, self.made + 1));
        for n in batch {
            self.outcomes[n] = Some(Err(error.clone()));
            self.refused.extend(delay.map(|delay| (n, delay)));
        }
    }

    /// Sets the error of these, and of all that would be asked later.
    fn fail_rest(&mut self, batch: impl IntoIterator<Item = usize>, error: &Error) {
        let refused = self.refused.drain(..).map(|(n, _)| n);
        for n in batch.into_iter().chain(self.waiting.drain(..)).chain(refused) {
            self.outcomes[n] = Some(Err(error.clone()));
        }
    }

    /// Has those that were refused wait for the next round, and returns the delay before it.
    fn take_refused(&mut self) -> Option<Duration> {
        let (rules, limit) = (self.look_up.client.rules(), self.look_up.client.timeout());
        self.made += 1;
        if self.made >= rules.max || !rules.budget.allows() {
            return None;
        }
        let mut refused = std::mem::take(&mut self.refused);
        refused.retain(|(_, delay)| *delay < limit);
        self.waiting.extend(refused.iter().map(|(n, _)| *n));
        refused.into_iter().map(|(_, delay)| delay).max()
    }
}

/// Whether no request can succeed after this error of one. One that no server has seen has waited
/// for a server until its deadline.
fn is_of_all(error: &Error) -> bool {
    let is_of_kind = matches!(
        error.kind(),
        Kind::Unauthenticated | Kind::PermissionDenied | Kind::DeadlineExceeded | Kind::Cancelled
    );
    is_of_kind || error.is_never_sent()
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
    async fn call(
        &self,
        client: &Client,
        batch: &[usize],
    ) -> Result<Vec<Result<Found, Error>>, Error> {
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
        let answer = client.directory().batch_resolve_identities(request).await?;
        Ok(answer.results.into_iter().map(found).collect())
    }

    async fn call_single(&self, client: &Client, n: usize) -> Result<Found, Error> {
        let identifier = Some(self.target[n].clone());
        let request = ResolveIdentityRequest { identifier, ..self.request.clone() };
        let answer = client.directory().resolve_identity(request).await?;
        Ok(Found { user: answer.user, identity: answer.identity })
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::batch::group::MAX_ITEMS;
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
    async fn an_error_of_all_is_also_that_of_what_was_refused_before() {
        let refusal = status(Code::Unavailable, "STORE_UNAVAILABLE", Duration::ZERO, "");
        let denied = status(Code::PermissionDenied, "ROLE_DENIED", Duration::ZERO, "");
        let server = Fake::start(move |call| match call.number {
            1 => Answer::RefusesFirst(refusal.clone()),
            _ => Answer::Fails(denied.clone()),
        });
        let server = server.await;
        let outcomes = resolve_all(&server.builder().connect_lazy().unwrap(), 3_000).await;
        assert_eq!(server.counts(), [1_000, 1_000]);
        let error = outcomes[0].as_ref().unwrap_err();
        assert_eq!(error.reason(), "ROLE_DENIED");
    }

    #[test]
    fn no_request_follows_one_that_no_server_saw() {
        assert!(is_of_all(&Error::unreachable(
            std::sync::Arc::new(std::fmt::Error),
            &"away".into()
        )));
    }

    #[tokio::test]
    async fn identifiers_have_three_attempts_in_all_rounds() {
        let unavailable = status(Code::Unavailable, "STORE_UNAVAILABLE", Duration::ZERO, "");
        let server = Fake::start(move |call| match call.number {
            1 => Answer::RefusesFirst(unavailable.clone()),
            _ => Answer::Fails(unavailable.clone()),
        });
        let server = server.await;
        resolve_all(&server.builder().connect_lazy().unwrap(), 10).await;
        assert_eq!(server.counts(), [10, 1, 1]);
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
