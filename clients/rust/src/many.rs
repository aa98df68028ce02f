//! Look-ups of any number of identifiers.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use prost::Message;

use crate::batch::{ITEM_BYTES, MAX_BYTES, MAX_ITEMS, found};
use crate::error::Error;
use crate::resolve::Resolve;
use crate::v1::batch_resolve_identities_response::Found;
use crate::v1::{BatchResolveIdentitiesRequest, Identifier, ResolveIdentityRequest};

const ANSWER_TOO_LARGE: &str = "ANSWER_TOO_LARGE";
const USER_TOO_LARGE: &str = "USER_TOO_LARGE";

/// Resolves all, in calls of at most 1,000. Repeats the items that did not fit into an answer.
pub async fn resolve(look_up: Resolve<Vec<Identifier>>) -> Vec<Result<Found, Error>> {
    let identifiers = &look_up.target;
    let mut outcomes: Vec<Option<Result<Found, Error>>> = vec![None; identifiers.len()];
    let mut waiting: VecDeque<usize> = (0..identifiers.len()).collect();
    while !waiting.is_empty() {
        let batch = next_batch(identifiers, &mut waiting);
        let answers = look_up.call(&batch).await;
        let is_progress = answers.iter().any(|answer| !has_reason(answer, ANSWER_TOO_LARGE));
        for (n, answer) in batch.into_iter().zip(answers).rev() {
            if has_reason(&answer, ANSWER_TOO_LARGE) && is_progress {
                waiting.push_front(n);
            } else if has_reason(&answer, ANSWER_TOO_LARGE) || has_reason(&answer, USER_TOO_LARGE) {
                outcomes[n] = Some(look_up.call_single(n).await);
            } else {
                outcomes[n] = Some(answer);
            }
        }
    }
    outcomes.into_iter().flatten().collect()
}

fn has_reason(answer: &Result<Found, Error>, reason: &str) -> bool {
    answer.as_ref().is_err_and(|error| error.reason() == reason)
}

/// The next identifiers that fit into a request.
fn next_batch(identifiers: &[Identifier], waiting: &mut VecDeque<usize>) -> Vec<usize> {
    let mut total = 0;
    let fits = waiting.iter().take(MAX_ITEMS).try_fold(0, |count, n| {
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
    async fn call(&self, batch: &[usize]) -> Vec<Result<Found, Error>> {
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
        match self.client.directory().batch_resolve_identities(request).await {
            Ok(answer) => answer.results.into_iter().map(found).collect(),
            Err(error) => vec![Err(error); batch.len()],
        }
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
    use crate::email;

    #[test]
    fn batches_are_limited_by_number_and_by_bytes() {
        let short = vec![email("joe@example.com"); 2_500];
        let mut waiting: VecDeque<usize> = (0..short.len()).collect();
        assert_eq!(next_batch(&short, &mut waiting), (0..1_000).collect::<Vec<_>>());
        assert_eq!(next_batch(&short, &mut waiting).len(), 1_000);
        assert_eq!(next_batch(&short, &mut waiting).len(), 500);

        let long = vec![email("x".repeat(4_000)); 300];
        let mut waiting: VecDeque<usize> = (0..long.len()).collect();
        assert_eq!(next_batch(&long, &mut waiting).len(), 229);

        let huge = vec![email("x".repeat(MAX_BYTES)); 2];
        let mut waiting: VecDeque<usize> = (0..huge.len()).collect();
        assert_eq!(next_batch(&huge, &mut waiting), [0]);
    }
}
