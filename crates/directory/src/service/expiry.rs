//! The background task that purges deleted users after their restore window, and drops the undo
//! data of merges after their undo window.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use locality_uuid::LocalityId;

use super::Directory;
use crate::error::Error;
use crate::mutation::read_set::MutationReport;
use crate::mutation::{Mutation, UserChange};
use crate::stores::ExpiredUser;
use crate::tenant_cache::KnownTenant;

/// The pause between two rounds.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);
/// Users in one page.
const PAGE_SIZE: usize = 100;
/// Users that expire concurrently. One that hangs must not stop all others.
const CONCURRENT_EXPIRIES: usize = 4;
/// The retry delay after a user's first failure. It doubles with each failure, up to
/// [`MAX_RETRY_DELAY`].
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(10);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60 * 60);
/// Failing users in memory. Further ones are tried in each round.
const MAX_FAILING: usize = 10_000;

impl Directory {
    /// Expires due users in a loop, in turn with other servers. Safe on several at once.
    pub async fn run_expiry(&self) -> Infallible {
        let mut failing = Failing::default();
        loop {
            let pause = match self.expire_round(&mut failing).await {
                Ok(()) => failing.period(),
                Err(error) => {
                    let error = error.with_causes();
                    tracing::warn!(%error, "the search for expired users failed; it is retried");
                    10 * ROUND_INTERVAL
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Expires all due users, page by page, or none while the clock is uncertain or it is another
    /// server's turn. Skips a user that
    /// fails for a while, so that it does not delay others.
    async fn expire_round(&self, failing: &mut Failing) -> Result<(), Error> {
        failing.forget_old(Instant::now());
        let now = self.gauged_now();
        if now.clock_uncertain || !self.backend.histories.has_expiry_turn() {
            return Ok(());
        }

        let mut after = None;
        loop {
            let page = self.backend.histories.expired_users(now.time, after, PAGE_SIZE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.position());
            let due = page.into_iter().filter(|user| failing.may_try(user.id, Instant::now()));
            let tasks = due.map(|user| async move { (user.id, self.expire_user(user).await) });
            let mut expired =
                stream::iter(tasks.collect::<Vec<_>>()).buffer_unordered(CONCURRENT_EXPIRIES);
            while let Some((id, outcome)) = expired.next().await {
                match outcome {
                    Ok(()) => failing.remove(id),
                    Err(error) => {
                        let pause = failing.add(id, Instant::now());
                        let error = error.with_causes();
                        tracing::warn!(user = %id, %error, ?pause, "a user did not expire; it is \
                            retried");
                    }
                }
            }
        }
    }

    async fn expire_user(&self, user: ExpiredUser) -> Result<(), Error> {
        let (tenant, id) = (user.tenant?, user.id);
        let known = self.tenants.get(&self.backend.tenants, &tenant).await?;
        let KnownTenant { since, policies, .. } = known.unwrap_or_default();
        let now = self.now();
        let mutation = Mutation {
            tenant_since: since,
            policies,
            ..Mutation::of_user(tenant, id, now, UserChange::Expire)
        };
        let outcome = self.mutate_despite_damage(mutation).await?;
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
    /// The pause between two rounds: longer if a round skips many users.
    fn period(&self) -> Duration {
        ROUND_INTERVAL * (1 + self.0.len() / PAGE_SIZE) as u32
    }

    fn may_try(&self, id: LocalityId, now: Instant) -> bool {
        self.0.get(&id).is_none_or(|backoff| now >= backoff.until)
    }

    /// Records a failure. Returns for how long the user is skipped.
    fn add(&mut self, id: LocalityId, now: Instant) -> Duration {
        let last = self.0.get(&id).map(|backoff| backoff.pause);
        let pause = last.map_or(FIRST_RETRY_DELAY, |pause| MAX_RETRY_DELAY.min(2 * pause));
        if last.is_some() || self.0.len() < MAX_FAILING {
            self.0.insert(id, Backoff { until: now + pause, pause });
        }
        pause
    }

    fn remove(&mut self, id: LocalityId) {
        self.0.remove(&id);
    }

    /// Forgets users that are no longer due: another server may have expired them.
    fn forget_old(&mut self, now: Instant) {
        self.0.retain(|_, backoff| now < backoff.until + MAX_RETRY_DELAY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> LocalityId {
        LocalityId::from((n as u128).to_be_bytes())
    }

    #[test]
    fn the_retry_delay_of_a_failing_user_doubles_up_to_an_hour() {
        let (mut failing, now) = (Failing::default(), Instant::now());
        let pauses: Vec<_> = (0..12).map(|_| failing.add(id(1), now).as_secs()).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600, 3_600]);
        assert!(
            !failing.may_try(id(1), now + MAX_RETRY_DELAY / 2)
                && failing.may_try(id(1), now + MAX_RETRY_DELAY)
        );
        assert!(failing.may_try(id(2), now));
        failing.forget_old(now + 2 * MAX_RETRY_DELAY);
        assert_eq!(failing.add(id(1), now).as_secs(), 10);
        failing.remove(id(1));
        assert!(failing.may_try(id(1), now));
    }

    #[test]
    fn the_memory_of_failing_users_is_bounded() {
        let (mut failing, now) = (Failing::default(), Instant::now());
        for n in 0..2 * MAX_FAILING {
            failing.add(id(n), now);
        }
        assert_eq!(failing.0.len(), MAX_FAILING);
        assert!(failing.may_try(id(MAX_FAILING), now));
        assert_eq!(failing.period(), 101 * ROUND_INTERVAL);
    }
}
