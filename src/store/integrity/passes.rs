//! The passes of a verification, in bounded memory: users with their claims, claims with their
//! users, the index of searches, and histories. Every suspicion is checked again as of one moment,
//! since a store may be in use, and only then reported.
//!
//! A key that a user lists without having its claim is repaired last, by passes of its own: another
//! user, later in the pass, may list it too.

use std::collections::{HashMap, HashSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;

use super::checkable::{
    Candidate, CheckableStore, ClaimRow, Moment, Presence, Side, UserClaims, UserRow,
};
use super::diagnosis::diagnose;
use super::duplicate_filter::{DuplicateFilter, Hashes};
use super::finding::{Finding, Inconsistency, RepairState, Summary};
use super::histories::{ended_faults, history_faults};
use crate::directory::error::Error;
use crate::directory::model::claim::Claim;
use crate::directory::model::timestamp::Timestamp;
use crate::identifier::IdentityKey;

/// Rows of a walk that are checked together.
const BATCH: usize = 500;
/// Candidates that are read again concurrently.
const AT_ONCE: usize = 16;

/// An observer of a verification's progress.
pub trait Observer {
    /// So much of a walk is done, of about so much.
    fn at(&mut self, walk: &'static str, done: u64, of: u64);

    /// Reports a fault.
    fn found(&mut self, finding: &Finding);
}

/// Walks a store and reports every fault to `observer`, after repairing it if `mend` asks for that.
///
/// # Errors
/// The store's, such as [`Error::Unavailable`], where it cannot be read or written.
pub async fn verify<A: CheckableStore>(
    store: &A,
    mend: bool,
    observer: &mut dyn Observer,
) -> Result<Summary, Error> {
    let (hashes, unclaimed, contested, reported) = Default::default();
    let totals = store.counts().await?;
    let summary = Summary::default();
    let mut run =
        Run { store, mend, observer, totals, hashes, unclaimed, contested, reported, summary };
    run.walk_users().await?;
    run.walk_unclaimed().await?;
    run.walk_claims().await?;
    run.walk_index().await?;
    run.walk_histories().await?;
    run.walk_ended().await?;
    Ok(run.summary)
}

struct Run<'r, A> {
    store: &'r A,
    mend: bool,
    observer: &'r mut dyn Observer,
    /// About how many users and claims there are.
    totals: (u64, u64),
    hashes: Hashes,
    /// Keys that a user lists and does not have.
    unclaimed: DuplicateFilter,
    /// Of those, the ones that two users list, with both.
    contested: HashMap<u64, [LocalityId; 2]>,
    /// Keys whose claim was already reported, from the side of a user that lists them.
    reported: HashSet<u64>,
    summary: Summary,
}

/// A candidate that was looked at again, and what is wrong with it.
struct Case {
    candidate: Candidate,
    fault: Inconsistency,
    other: Option<LocalityId>,
}

impl<A: CheckableStore> Run<'_, A> {
    async fn walk_users(&mut self) -> Result<(), Error> {
        let store = self.store;
        let mut batches = store.users().try_chunks(BATCH);
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            self.summary.users += batch.len() as u64;
            let listings = self.readable(batch);
            let (other, none) = self.strange(&listings).await?;
            let (later, now): (Vec<_>, Vec<_>) =
                self.confirm(other).await?.into_iter().partition(Case::is_unclaimed);
            for candidate in none.into_iter().chain(later.into_iter().map(|case| case.candidate)) {
                self.unclaimed.add(self.hashes.of(&candidate.key));
            }
            self.repair(now).await?;
            self.observer.at("users", self.summary.users, self.totals.0);
        }

        Ok(())
    }

    /// The users of a batch; records that are no users are reported.
    fn readable(&mut self, batch: Vec<UserRow>) -> Vec<UserClaims> {
        let mut listings = Vec::with_capacity(batch.len());
        for row in batch {
            match row {
                UserRow::UserClaims(listing) => listings.push(listing),
                UserRow::Unnamed(listing) => {
                    self.report(&Finding::of_user(Inconsistency::Unnamed, listing.id));
                    listings.push(listing);
                }
                UserRow::Unreadable(id) => self.report_document(Inconsistency::UnreadableUser, id),
            }
        }
        listings
    }

    /// Of what the users list: what has another claim than it should have, and what has none.
    async fn strange(
        &self,
        listings: &[UserClaims],
    ) -> Result<(Vec<Candidate>, Vec<Candidate>), Error> {
        let listed = |listing: &UserClaims| {
            listing.claims.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>()
        };
        let keys: Vec<IdentityKey> = listings.iter().flat_map(listed).collect();
        let found = self.store.claims_at(&keys).await?;
        let expected = listings
            .iter()
            .flat_map(|listing| listing.claims.iter().map(move |own| (listing.id, own)));
        let (mut other, mut none) = (Vec::new(), Vec::new());
        for ((user, (key, claim)), found) in expected.zip(found) {
            let candidate = || Candidate { side: Side::Listed, key: key.clone(), user: Some(user) };
            match found {
                Presence::There(found) if found == *claim => {}
                Presence::Absent => none.push(candidate()),
                _ => other.push(candidate()),
            }
        }

        Ok((other, none))
    }

    /// Settles what users list without having its claim, now that it is known who else lists it.
    async fn walk_unclaimed(&mut self) -> Result<(), Error> {
        let unclaimed = std::mem::take(&mut self.unclaimed);
        if unclaimed.is_empty() {
            return Ok(());
        }

        self.contested = self.listed_twice(&unclaimed.into_repeated()).await?;
        let store = self.store;
        let mut batches = store.users().try_chunks(BATCH);
        let mut done = 0;
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            done += batch.len() as u64;
            let listings: Vec<_> = batch.into_iter().filter_map(UserRow::into_listing).collect();
            let (other, none) = self.strange(&listings).await?;
            let mut cases = self.confirm([other, none].concat()).await?;
            cases.retain(Case::is_unclaimed);
            for case in &mut cases {
                self.mark_contested(case);
            }
            self.repair(cases).await?;
            self.observer.at("unclaimed", done, self.totals.0);
        }

        Ok(())
    }

    /// Of keys with these hashes: those that two users list.
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
            let Some(listing) = row.into_listing() else { continue };
            for (key, _) in &listing.claims {
                let hash = self.hashes.of(key);
                if repeated.contains(&hash) {
                    let other = *first.entry(hash).or_insert(listing.id);
                    if other != listing.id {
                        twice.insert(hash, [other, listing.id]);
                    }
                }
            }
        }

        Ok(twice)
    }

    fn mark_contested(&self, case: &mut Case) {
        if let Some(listers) = self.contested.get(&self.hashes.of(&case.candidate.key)) {
            case.fault = Inconsistency::Shared;
            case.other =
                listers.iter().copied().find(|lister| Some(*lister) != case.candidate.user);
        }
    }

    async fn walk_claims(&mut self) -> Result<(), Error> {
        let store = self.store;
        let mut batches = store.claims().try_chunks(BATCH);
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

    async fn walk_index(&mut self) -> Result<(), Error> {
        let store = self.store;
        let mut batches = store.index_faults().try_chunks(BATCH);
        let repair = if self.mend { RepairState::Done } else { RepairState::Pending };
        let mut done = 0;
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            done += batch.len() as u64;
            let faults: Vec<_> = batch.into_iter().flatten().collect();
            if self.mend && !faults.is_empty() {
                store.mend_index(&faults).await?;
            }
            for fault in &faults {
                self.report(&Finding::of_index(fault, repair));
            }
            self.observer.at("index", done, self.totals.0);
        }

        Ok(())
    }

    async fn walk_histories(&mut self) -> Result<(), Error> {
        let store = self.store;
        let mut batches = store.users().try_chunks(BATCH);
        let mut done = 0;
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            done += batch.len() as u64;
            let users = batch.into_iter().filter_map(|row| match row {
                UserRow::UserClaims(user) => Some(user.id),
                UserRow::Unnamed(_) | UserRow::Unreadable(_) => None,
            });
            let faults = stream::iter(users).map(|user| history_faults(store, user));
            let faults: Vec<_> = faults.buffered(AT_ONCE).try_collect().await?;
            faults.iter().flatten().for_each(|finding| self.report(finding));
            self.observer.at("histories", done, self.totals.0);
        }

        Ok(())
    }

    async fn walk_ended(&mut self) -> Result<(), Error> {
        let store = self.store;
        let mut batches = store.ended().try_chunks(BATCH);
        let mut done = 0;
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            done += batch.len() as u64;
            let faults = stream::iter(batch).map(|(key, ended)| ended_faults(store, key, ended));
            let faults: Vec<_> = faults.buffered(AT_ONCE).try_collect().await?;
            faults.iter().flatten().for_each(|finding| self.report(finding));
            self.observer.at("ended ownerships", done, done);
        }

        Ok(())
    }

    /// Of the claims: those that no user seems to list.
    async fn unlisted(&self, claims: Vec<(IdentityKey, Claim)>) -> Result<Vec<Candidate>, Error> {
        let mut ids: Vec<LocalityId> = claims.iter().filter_map(|(_, claim)| claim.owner).collect();
        ids.sort_unstable();
        ids.dedup();
        let users = self.store.users_at(&ids).await?;
        let lists = |id: LocalityId, key: &IdentityKey| {
            let user = ids.binary_search(&id).ok().map(|n| &users[n]);
            matches!(user, Some(Presence::There(user)) if user.claim(key).is_some())
        };
        let candidate = |(key, claim): (IdentityKey, Claim)| match claim.owner {
            Some(id) if lists(id, &key) => None,
            user => Some(Candidate { side: Side::Claimed, key, user }),
        };

        Ok(claims.into_iter().filter_map(candidate).collect())
    }

    /// The faults of the candidates, each read at one moment.
    async fn confirm(&self, candidates: Vec<Candidate>) -> Result<Vec<Case>, Error> {
        let look = |candidate: Candidate| async {
            let moment = self.store.moment(&candidate).await?;
            Ok::<_, Error>(Case::of(candidate, &moment))
        };
        let cases: Vec<Option<Case>> =
            stream::iter(candidates).map(look).buffered(AT_ONCE).try_collect().await?;
        Ok(cases.into_iter().flatten().collect())
    }

    /// Repairs what can be repaired, if asked to, and reports everything.
    async fn repair(&mut self, cases: Vec<Case>) -> Result<(), Error> {
        let (open, lost): (Vec<_>, Vec<_>) =
            cases.into_iter().partition(|case| case.fault.is_repairable());
        lost.into_iter().for_each(|case| self.record(case, RepairState::Impossible));
        if !self.mend {
            open.into_iter().for_each(|case| self.record(case, RepairState::Pending));
            return Ok(());
        }

        let candidates: Vec<_> = open.iter().map(|case| case.candidate.clone()).collect();
        let repaired = self.store.mend(&candidates).await?;
        let mut again = Vec::new();
        for (case, repaired) in open.into_iter().zip(repaired) {
            if repaired {
                self.record(case, RepairState::Done);
            } else {
                again.push(case.candidate);
            }
        }

        // A fault that was not found again has gone, or has become another one.
        for case in self.confirm(again).await? {
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

    /// Reports a document that cannot be read, under its id if that is one.
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

    fn report(&mut self, finding: &Finding) {
        self.summary.add(finding);
        self.observer.found(finding);
    }
}

impl Case {
    fn of(candidate: Candidate, moment: &Moment) -> Option<Self> {
        let fault = diagnose(&candidate, moment, Timestamp::now())?;
        let owner = match &moment.claim {
            Presence::There(claim) => claim.owner,
            Presence::Absent | Presence::Unreadable => None,
        };
        let other = owner.filter(|owner| Some(*owner) != candidate.user);
        Some(Self { candidate, fault, other })
    }

    /// Whether the user's key has to be repaired after all passes over the users.
    const fn is_unclaimed(&self) -> bool {
        matches!(self.fault, Inconsistency::Unclaimed | Inconsistency::Misclaimed)
    }
}

impl UserRow {
    fn into_listing(self) -> Option<UserClaims> {
        match self {
            Self::UserClaims(listing) | Self::Unnamed(listing) => Some(listing),
            Self::Unreadable(_) => None,
        }
    }
}
