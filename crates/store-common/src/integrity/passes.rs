//! The passes of a verification, in bounded memory: users with their claims and histories, claims
//! with their users, the search index, the contents of notices, bulk changes, and ended ownerships.
//! The store may be in use, so every suspicion is checked again in one snapshot before it is
//! reported.
//!
//! Unclaimed keys are repaired last, by passes of their own: a later user may list the same key.

use std::collections::{HashMap, HashSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;

use super::batches::{candidates_of, check_claims, check_users};
use super::checkable::{Candidate, CandidateState, CheckableStore, Presence, Side, UserRow};
use super::diagnosis::diagnose;
use super::duplicate_filter::{DuplicateFilter, Hashes};
use super::finding::{Finding, Inconsistency, RepairState, Summary};
use super::histories::ended_rows_faults;
use super::limits::{BATCH_ROWS, MAX_CONCURRENT_BATCHES, MAX_CONCURRENT_CHECKS};
use super::scope::Scope;
use polynym_directory::{Error, Timestamp};

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
    verify_part(store, repairs, Scope::default(), observer).await
}

/// Verifies a part of a store. In a part, notices and bulk changes are not checked. A sample cannot
/// show that two users list one key, so it must not be repaired.
///
/// # Errors
/// Any error of the store that prevents a read or write, such as [`Error::Unavailable`].
pub async fn verify_part<A: CheckableStore>(
    store: &A,
    repairs: bool,
    scope: Scope,
    observer: &mut dyn Observer,
) -> Result<Summary, Error> {
    let (hashes, unclaimed, contested, reported, summary) = Default::default();
    let (users, claims) = store.counts(scope.tenant.as_ref()).await?;
    let totals = (scope.part_of(users), scope.part_of(claims));
    let is_whole = scope.is_whole();
    let mut run = Run {
        store,
        repairs,
        scope,
        observer,
        totals,
        hashes,
        unclaimed,
        contested,
        reported,
        summary,
    };
    run.walk_users().await?;
    run.walk_unclaimed().await?;
    run.walk_claims().await?;
    run.walk_index().await?;
    if is_whole {
        run.walk_contents().await?;
        run.walk_bulk_changes().await?;
    }
    run.walk_ended().await?;
    Ok(run.summary)
}

pub(super) struct Run<'r, A> {
    pub(super) store: &'r A,
    pub(super) repairs: bool,
    pub(super) scope: Scope,
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
        let batches = store.users(&self.scope).try_chunks(BATCH_ROWS).map_err(|error| error.1);
        let checks = batches.map_ok(|rows| check_users(store, rows));
        let mut checked = checks.try_buffered(MAX_CONCURRENT_BATCHES);
        while let Some(batch) = checked.try_next().await? {
            self.summary.users += batch.rows;
            batch.findings.iter().for_each(|finding| self.report(finding));
            let (unclaimed, others): (Vec<_>, Vec<_>) =
                self.confirm(batch.differing).await?.into_iter().partition(Case::is_unclaimed);
            let candidates = unclaimed.into_iter().map(|case| case.candidate);
            for candidate in batch.absent.into_iter().chain(candidates) {
                self.unclaimed.add(self.hashes.of(&candidate.key));
            }
            self.repair(others).await?;
            self.check_links(&batch.users).await?;
            self.observer.at("users", self.summary.users, self.totals.0);
        }

        Ok(())
    }

    /// Repairs unclaimed keys, now that all users that list them are known.
    async fn walk_unclaimed(&mut self) -> Result<(), Error> {
        let unclaimed = std::mem::take(&mut self.unclaimed);
        if unclaimed.is_empty() {
            return Ok(());
        }

        self.contested = self.listed_twice(&unclaimed.into_repeated()).await?;
        let store = self.store;
        let mut batches = store.users(&self.scope).try_chunks(BATCH_ROWS);
        let mut done = 0;
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            done += batch.len() as u64;
            let users: Vec<_> = batch.into_iter().filter_map(UserRow::into_claims).collect();
            let (differing, absent) = candidates_of(store, &users).await?;
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
        let mut rows = store.users(&self.scope);
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
        let batches = store.claims(&self.scope).try_chunks(BATCH_ROWS).map_err(|error| error.1);
        let checks = batches.map_ok(|rows| check_claims(store, rows));
        let mut checked = checks.try_buffered(MAX_CONCURRENT_BATCHES);
        while let Some(batch) = checked.try_next().await? {
            self.summary.claims += batch.rows;
            batch.findings.iter().for_each(|finding| self.report(finding));
            let mut candidates = batch.candidates;
            candidates.retain(|candidate| !self.reported.contains(&self.hashes.of(&candidate.key)));
            let cases = self.confirm(candidates).await?;
            self.repair(cases).await?;
            self.observer.at("claims", self.summary.claims, self.totals.1);
        }

        Ok(())
    }

    async fn walk_ended(&mut self) -> Result<(), Error> {
        let store = self.store;
        let batches = store.ended(&self.scope).try_chunks(BATCH_ROWS).map_err(|error| error.1);
        let check = async |rows: Vec<_>| {
            let faults = ended_rows_faults(store, &rows).await?;
            Ok::<_, Error>((rows.len() as u64, faults))
        };
        let mut checked = batches.map_ok(check).try_buffered(MAX_CONCURRENT_BATCHES);
        let mut done = 0;
        while let Some((rows, faults)) = checked.try_next().await? {
            done += rows;
            faults.iter().for_each(|finding| self.report(finding));
            self.observer.at("ended ownerships", done, done);
        }

        Ok(())
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
