//! The passes of a verification, in bounded memory: users with their claims, claims with their
//! users, the search index, the contents of notices, bulk changes, and histories. The store may be
//! in use, so every suspicion is checked again in one snapshot before it is reported.
//!
//! Unclaimed keys are repaired last, by passes of their own: a later user may list the same key.

use std::collections::{HashMap, HashSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;

use super::checkable::{
    Candidate, CandidateState, CheckableStore, ClaimRow, Presence, Side, UserClaims, UserRow,
};
use super::diagnosis::diagnose;
use super::duplicate_filter::{DuplicateFilter, Hashes};
use super::finding::{Finding, Inconsistency, RepairState, Summary};
use super::histories::{ended_faults, history_faults};
use polynym_directory::{Claim, Error, Timestamp};
use polynym_identifier::IdentityKey;

/// The rows of a walk that are checked together.
pub(super) const BATCH_ROWS: usize = 500;
/// The most concurrent checks.
pub(super) const MAX_CONCURRENT_CHECKS: usize = 16;

/// An observer of a verification's progress.
pub trait Observer {
    /// Reports the progress of a walk: the rows done, of about this total.
    fn at(&mut self, walk: &'static str, done: u64, of: u64);

    /// Reports a fault.
    fn found(&mut self, finding: &Finding);
}

/// Walks a store and reports every fault to `observer`, after repairing it if `repairs` is set.
///
/// # Errors
/// Any error of the store that prevents a read or write, such as [`Error::Unavailable`].
pub async fn verify<A: CheckableStore>(
    store: &A,
    repairs: bool,
    observer: &mut dyn Observer,
) -> Result<Summary, Error> {
    let (hashes, unclaimed, contested, reported, summary) = Default::default();
    let totals = store.counts().await?;
    let mut run =
        Run { store, repairs, observer, totals, hashes, unclaimed, contested, reported, summary };
    run.walk_users().await?;
    run.walk_unclaimed().await?;
    run.walk_claims().await?;
    run.walk_index().await?;
    run.walk_contents().await?;
    run.walk_bulk_changes().await?;
    run.walk_histories().await?;
    run.walk_ended().await?;
    Ok(run.summary)
}

pub(super) struct Run<'r, A> {
    pub(super) store: &'r A,
    pub(super) repairs: bool,
    pub(super) observer: &'r mut dyn Observer,
    /// The approximate numbers of users and claims.
    pub(super) totals: (u64, u64),
    hashes: Hashes,
    /// Keys that a user lists without a claim.
    unclaimed: DuplicateFilter,
    /// The unclaimed keys that two users list, with both users.
    contested: HashMap<u64, [LocalityId; 2]>,
    /// Keys whose fault was already reported by the walk of users.
    reported: HashSet<u64>,
    summary: Summary,
}

/// A confirmed candidate and its fault.
struct Case {
    candidate: Candidate,
    fault: Inconsistency,
    other: Option<LocalityId>,
}

impl<A: CheckableStore> Run<'_, A> {
    async fn walk_users(&mut self) -> Result<(), Error> {
        let store = self.store;
        let mut batches = store.users().try_chunks(BATCH_ROWS);
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            self.summary.users += batch.len() as u64;
            let users = self.readable_users(batch);
            let (differing, absent) = self.candidates_of(&users).await?;
            let (unclaimed, others): (Vec<_>, Vec<_>) =
                self.confirm(differing).await?.into_iter().partition(Case::is_unclaimed);
            let candidates = unclaimed.into_iter().map(|case| case.candidate);
            for candidate in absent.into_iter().chain(candidates) {
                self.unclaimed.add(self.hashes.of(&candidate.key));
            }
            self.repair(others).await?;
            self.check_links(&users).await?;
            self.observer.at("users", self.summary.users, self.totals.0);
        }

        Ok(())
    }

    /// The users of a batch. Reports records that are not users.
    fn readable_users(&mut self, batch: Vec<UserRow>) -> Vec<UserClaims> {
        let mut users = Vec::with_capacity(batch.len());
        for row in batch {
            match row {
                UserRow::UserClaims(user) => users.push(user),
                UserRow::Unnamed(user) => {
                    self.report(&Finding::of_user(Inconsistency::Unnamed, user.id));
                    users.push(user);
                }
                UserRow::Unreadable(id) => self.report_document(Inconsistency::UnreadableUser, id),
            }
        }
        users
    }

    /// The candidates of users: those whose claim differs, and those without a claim.
    async fn candidates_of(
        &self,
        users: &[UserClaims],
    ) -> Result<(Vec<Candidate>, Vec<Candidate>), Error> {
        let expected: Vec<_> = users
            .iter()
            .flat_map(|user| user.claims.iter().map(move |claim| (user.id, claim)))
            .collect();
        let keys: Vec<_> = expected.iter().map(|(_, (key, _))| key.clone()).collect();
        let found = self.store.claims_at(&keys).await?;
        let (mut differing, mut absent) = (Vec::new(), Vec::new());
        for ((user, (key, claim)), found) in expected.into_iter().zip(found) {
            let candidate = || Candidate { side: Side::Listed, key: key.clone(), user: Some(user) };
            match found {
                Presence::Present(found) if found == *claim => {}
                Presence::Absent => absent.push(candidate()),
                _ => differing.push(candidate()),
            }
        }

        Ok((differing, absent))
    }

    /// Repairs unclaimed keys, now that all users that list them are known.
    async fn walk_unclaimed(&mut self) -> Result<(), Error> {
        let unclaimed = std::mem::take(&mut self.unclaimed);
        if unclaimed.is_empty() {
            return Ok(());
        }

        self.contested = self.listed_twice(&unclaimed.into_repeated()).await?;
        let store = self.store;
        let mut batches = store.users().try_chunks(BATCH_ROWS);
        let mut done = 0;
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            done += batch.len() as u64;
            let users: Vec<_> = batch.into_iter().filter_map(UserRow::into_claims).collect();
            let (differing, absent) = self.candidates_of(&users).await?;
            let mut cases = self.confirm([differing, absent].concat()).await?;
            cases.retain(Case::is_unclaimed);
            for case in &mut cases {
                self.mark_contested(case);
            }
            self.repair(cases).await?;
            self.observer.at("unclaimed", done, self.totals.0);
        }

        Ok(())
    }

    /// The keys with these hashes that two users list.
    async fn listed_twice(
        &mut self,
        repeated: &HashSet<u64>,
    ) -> Result<HashMap<u64, [LocalityId; 2]>, Error> {
        let (mut first, mut twice) = (HashMap::new(), HashMap::new());
        if repeated.is_empty() {
            return Ok(twice);
        }

        let store = self.store;
        let mut rows = store.users();
        while let Some(row) = rows.try_next().await? {
            let Some(user) = row.into_claims() else { continue };
            for (key, _) in &user.claims {
                let hash = self.hashes.of(key);
                if repeated.contains(&hash) {
                    let other = *first.entry(hash).or_insert(user.id);
                    if other != user.id {
                        twice.insert(hash, [other, user.id]);
                    }
                }
            }
        }

        Ok(twice)
    }

    fn mark_contested(&self, case: &mut Case) {
        if let Some(users) = self.contested.get(&self.hashes.of(&case.candidate.key)) {
            case.fault = Inconsistency::Shared;
            case.other = users.iter().copied().find(|user| Some(*user) != case.candidate.user);
        }
    }

    async fn walk_claims(&mut self) -> Result<(), Error> {
        let store = self.store;
        let mut batches = store.claims().try_chunks(BATCH_ROWS);
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            self.summary.claims += batch.len() as u64;
            let mut claims = Vec::with_capacity(batch.len());
            for row in batch {
                match row {
                    ClaimRow::Claim(key, claim) => claims.push((key, claim)),
                    ClaimRow::Unreadable(key) => {
                        self.report_document(Inconsistency::UnreadableClaim, key)
                    }
                }
            }
            let mut candidates = self.unlisted(claims).await?;
            candidates.retain(|candidate| !self.reported.contains(&self.hashes.of(&candidate.key)));
            let cases = self.confirm(candidates).await?;
            self.repair(cases).await?;
            self.observer.at("claims", self.summary.claims, self.totals.1);
        }

        Ok(())
    }

    async fn walk_histories(&mut self) -> Result<(), Error> {
        let store = self.store;
        let mut batches = store.users().try_chunks(BATCH_ROWS);
        let mut done = 0;
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            done += batch.len() as u64;
            let users = batch.into_iter().filter_map(|row| match row {
                UserRow::UserClaims(user) => Some(user.id),
                UserRow::Unnamed(_) | UserRow::Unreadable(_) => None,
            });
            let faults: Vec<_> = stream::iter(users)
                .map(|user| history_faults(store, user))
                .buffered(MAX_CONCURRENT_CHECKS)
                .try_collect()
                .await?;
            faults.iter().flatten().for_each(|finding| self.report(finding));
            self.observer.at("histories", done, self.totals.0);
        }

        Ok(())
    }

    async fn walk_ended(&mut self) -> Result<(), Error> {
        let store = self.store;
        let mut batches = store.ended().try_chunks(BATCH_ROWS);
        let mut done = 0;
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            done += batch.len() as u64;
            let faults: Vec<_> = stream::iter(batch)
                .map(|(key, ended)| ended_faults(store, key, ended))
                .buffered(MAX_CONCURRENT_CHECKS)
                .try_collect()
                .await?;
            faults.iter().flatten().for_each(|finding| self.report(finding));
            self.observer.at("ended ownerships", done, done);
        }

        Ok(())
    }

    /// The candidates of claims: those whose owner seems not to list the key.
    async fn unlisted(&self, claims: Vec<(IdentityKey, Claim)>) -> Result<Vec<Candidate>, Error> {
        let mut ids: Vec<LocalityId> = claims.iter().filter_map(|(_, claim)| claim.owner).collect();
        ids.sort_unstable();
        ids.dedup();
        let users = self.store.users_at(&ids).await?;
        let lists = |id: LocalityId, key: &IdentityKey| {
            let user = ids.binary_search(&id).ok().map(|n| &users[n]);
            matches!(user, Some(Presence::Present(user)) if user.claim(key).is_some())
        };
        let candidates = claims.into_iter().filter_map(|(key, claim)| match claim.owner {
            Some(id) if lists(id, &key) => None,
            user => Some(Candidate { side: Side::Claimed, key, user }),
        });
        Ok(candidates.collect())
    }

    /// The faults of the candidates, each checked in one snapshot.
    async fn confirm(&self, candidates: Vec<Candidate>) -> Result<Vec<Case>, Error> {
        let cases: Vec<Option<Case>> = stream::iter(candidates)
            .map(|candidate| async {
                let state = self.store.state(&candidate).await?;
                Ok::<_, Error>(Case::of(candidate, &state))
            })
            .buffered(MAX_CONCURRENT_CHECKS)
            .try_collect()
            .await?;
        Ok(cases.into_iter().flatten().collect())
    }

    /// Reports all cases, after repairing them if that is requested and possible.
    async fn repair(&mut self, cases: Vec<Case>) -> Result<(), Error> {
        let (repairable, others): (Vec<_>, Vec<_>) =
            cases.into_iter().partition(|case| case.fault.is_repairable());
        others.into_iter().for_each(|case| self.record(case, RepairState::Impossible));
        if !self.repairs {
            repairable.into_iter().for_each(|case| self.record(case, RepairState::Pending));
            return Ok(());
        }

        let candidates: Vec<_> = repairable.iter().map(|case| case.candidate.clone()).collect();
        let repaired = self.store.repair(&candidates).await?;
        let mut unrepaired = Vec::new();
        for (case, repaired) in repairable.into_iter().zip(repaired) {
            if repaired {
                self.record(case, RepairState::Done);
            } else {
                unrepaired.push(case.candidate);
            }
        }

        // A fault that the repair did not find has gone, or has become another one.
        for case in self.confirm(unrepaired).await? {
            self.record(case, RepairState::Impossible);
        }
        Ok(())
    }

    fn record(&mut self, case: Case, repair: RepairState) {
        let Case { candidate: Candidate { key, user, side }, fault, other } = case;
        if side == Side::Listed && repair != RepairState::Done {
            self.reported.insert(self.hashes.of(&key));
        }
        self.report(&Finding { fault, user, other, key: Some(key), document: None, repair });
    }

    /// Reports an unreadable record, as a user if it has the id of one.
    fn report_document(&mut self, fault: Inconsistency, id: String) {
        let user = (fault == Inconsistency::UnreadableUser).then(|| id.parse().ok()).flatten();
        let document = user.is_none().then_some(id);
        self.report(&Finding {
            fault,
            user,
            other: None,
            key: None,
            document,
            repair: RepairState::Impossible,
        });
    }

    pub(super) fn report(&mut self, finding: &Finding) {
        self.summary.add(finding);
        self.observer.found(finding);
    }
}

impl Case {
    fn of(candidate: Candidate, state: &CandidateState) -> Option<Self> {
        let fault = diagnose(&candidate, state, Timestamp::now())?;
        let owner = match &state.claim {
            Presence::Present(claim) => claim.owner,
            Presence::Absent | Presence::Unreadable => None,
        };
        let other = owner.filter(|owner| Some(*owner) != candidate.user);
        Some(Self { candidate, fault, other })
    }

    /// Whether the key must be repaired after all walks of users.
    const fn is_unclaimed(&self) -> bool {
        matches!(self.fault, Inconsistency::Unclaimed | Inconsistency::Misclaimed)
    }
}
