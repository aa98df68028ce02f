//! The background task that purges deleted users after their restore window, and forgets merges
//! that can no longer be undone.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use locality_uuid::LocalityId;

use super::Directory;
use crate::error::Error;
use crate::mutation::read_set::MutationReport;
use crate::mutation::{Mutation, UserChange};
use crate::service::tenant_cache::KnownTenant;
use crate::stores::ExpiredUser;

/// The pause between two rounds.
const PERIOD: Duration = Duration::from_secs(1);
/// Users in one page.
const PAGE: usize = 100;
/// Users that are expired concurrently. One that hangs must not stop all others.
const AT_ONCE: usize = 4;
/// The pause after a user's first failure. Each one after it is twice as long as the one before, up
/// to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);
/// Failing users that are remembered. Further ones are tried in each round.
const MOST_FAILING: usize = 10_000;

impl Directory {
    /// Does what is due, again and again. Every server may: what one has done, is not due for
    /// another.
    pub async fn run_expiry(&self) -> Infallible {
        let mut failing = Failing::default();
        loop {
            let pause = match self.expire_round(&mut failing).await {
                Ok(()) => failing.period(),
                Err(error) => {
                    let error = error.with_causes();
                    tracing::warn!(%error, "the store does not say what is due: it is asked again");
                    10 * PERIOD
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Does all that is due now, or nothing while the time is in doubt: a page at a time. A user
    /// that fails keeps no other waiting: it is passed over for a while.
    async fn expire_round(&self, failing: &mut Failing) -> Result<(), Error> {
        let (now, mut after) = (self.gauged_now(), None);
        failing.forget_old(Instant::now());
        if now.clock_uncertain {
            return Ok(());
        }

        loop {
            let page = self.backend.histories.expired_users(now.time, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.place());
            let due = page.into_iter().filter(|user| failing.may_try(user.id, Instant::now()));
            let expired = due.map(|user| async move { (user.id, self.expire_user(user).await) });
            let mut expired = stream::iter(expired.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
            while let Some((id, outcome)) = expired.next().await {
                match outcome {
                    Ok(()) => failing.remove(id),
                    Err(error) => {
                        let pause = failing.add(id, Instant::now());
                        let error = error.with_causes();
                        tracing::warn!(user = %id, %error, ?pause, "what is due was not done: it \
                            is tried again");
                    }
                }
            }
        }
    }

    async fn expire_user(&self, user: ExpiredUser) -> Result<(), Error> {
        let (tenant, id) = (user.tenant?, user.id);
        let known = self.tenants.get(&*self.backend.tenants, &tenant).await?;
        let KnownTenant { since, policies, .. } = known.unwrap_or_default();
        let now = self.now();
        let mutation = Mutation::of_user(tenant, id, now.time, UserChange::Expire);
        let mutation = Mutation {
            tenant_since: since,
            clock_uncertain: now.clock_uncertain,
            policies,
            ..mutation
        };
        let outcome = self.mutate_to_completion(mutation).await?;
        if let MutationReport::Purged(users) = outcome.report {
            tracing::info!(user = %id, users = users.len(), "purged");
        }
        Ok(())
    }
}

/// Users whose expiry failed.
#[derive(Default)]
struct Failing(HashMap<LocalityId, Backoff>);

struct Backoff {
    until: Instant,
    pause: Duration,
}

impl Failing {
    /// The pause between two rounds: longer if each has to skip many users.
    fn period(&self) -> Duration {
        PERIOD * (1 + self.0.len() / PAGE) as u32
    }

    fn may_try(&self, id: LocalityId, now: Instant) -> bool {
        self.0.get(&id).is_none_or(|backoff| now >= backoff.until)
    }

    /// Notes that a user has failed. Returns for how long it is passed over.
    fn add(&mut self, id: LocalityId, now: Instant) -> Duration {
        let before = self.0.get(&id).map(|backoff| backoff.pause);
        let pause = before.map_or(PAUSE, |pause| LONGEST_PAUSE.min(2 * pause));
        if before.is_some() || self.0.len() < MOST_FAILING {
            self.0.insert(id, Backoff { until: now + pause, pause });
        }
        pause
    }

    fn remove(&mut self, id: LocalityId) {
        self.0.remove(&id);
    }

    /// Forgets users that are due no longer: another server may have done it.
    fn forget_old(&mut self, now: Instant) {
        self.0.retain(|_, backoff| now < backoff.until + LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> LocalityId {
        LocalityId::from((n as u128).to_be_bytes())
    }

    #[test]
    fn a_user_that_fails_is_tried_less_and_less_often() {
        let (mut failing, now) = (Failing::default(), Instant::now());
        let pauses: Vec<_> = (0..12).map(|_| failing.add(id(1), now).as_secs()).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600, 3_600]);
        assert!(
            !failing.may_try(id(1), now + LONGEST_PAUSE / 2)
                && failing.may_try(id(1), now + LONGEST_PAUSE)
        );
        assert!(failing.may_try(id(2), now));
        failing.forget_old(now + 2 * LONGEST_PAUSE);
        assert_eq!(failing.add(id(1), now).as_secs(), 10);
        failing.remove(id(1));
        assert!(failing.may_try(id(1), now));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut failing, now) = (Failing::default(), Instant::now());
        for n in 0..2 * MOST_FAILING {
            failing.add(id(n), now);
        }
        assert_eq!(failing.0.len(), MOST_FAILING);
        assert!(failing.may_try(id(MOST_FAILING), now));
        assert_eq!(failing.period(), 101 * PERIOD);
    }
}
