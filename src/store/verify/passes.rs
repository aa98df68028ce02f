//! The walks of a verification, in bounded memory: users with their claims, then claims with their users. What a walk
//! finds strange is looked at again as it is at one moment, since a store may be in use, and only then told.
//!
//! A key that a user lists without having its claim is settled last, by walks of their own: another user, later in the
//! walk, may list it too.

use std::collections::{HashMap, HashSet};

use futures_util::{StreamExt, TryStreamExt, stream};

use super::audited::{Audited, ClaimRow, Listing, Moment, Side, Stood, Suspect, UserRow};
use super::finding::{Fault, Finding, Settled, Summary};
use super::judge::judge;
use super::sketch::{Hashes, Sketch};
use crate::directory::{Claim, Error, Timestamp};
use crate::identifier::IdentityKey;
use crate::locality::LocalityId;

/// How many rows of a walk are looked at together.
const BATCH: usize = 500;
/// How many suspects are looked at again at once.
const AT_ONCE: usize = 16;

/// Who is told how a verification goes.
pub trait Observer {
    /// So much of a walk is done, of about so much.
    fn at(&mut self, walk: &'static str, done: u64, of: u64);

    /// Something is wrong.
    fn found(&mut self, finding: &Finding);
}

/// Walks a store and tells `observer` of all that is wrong, once it was settled where that is asked for by `mend`.
///
/// # Errors
/// The store's, such as [`Error::Unavailable`], where it cannot be read or written.
pub async fn verify<A: Audited>(store: &A, mend: bool, observer: &mut dyn Observer) -> Result<Summary, Error> {
    let (hashes, unclaimed, contested, told) = Default::default();
    let totals = store.counts().await?;
    let summary = Summary::default();
    let mut run = Run { store, mend, observer, totals, hashes, unclaimed, contested, told, summary };
    run.walk_users().await?;
    run.walk_unclaimed().await?;
    run.walk_claims().await?;
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
    unclaimed: Sketch,
    /// Of those, the ones that two users list, with both.
    contested: HashMap<u64, [LocalityId; 2]>,
    /// Keys whose claim was told of already, from the side of a user who lists them.
    told: HashSet<u64>,
    summary: Summary,
}

/// A suspect that was looked at again, and what is wrong with it.
struct Case {
    suspect: Suspect,
    fault: Fault,
    other: Option<LocalityId>,
}

impl<A: Audited> Run<'_, A> {
    async fn walk_users(&mut self) -> Result<(), Error> {
        let store = self.store;
        let mut batches = store.users().try_chunks(BATCH);
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            self.summary.users += batch.len() as u64;
            let listings = self.readable(batch);
            let (other, none) = self.strange(&listings).await?;
            let (later, now): (Vec<_>, Vec<_>) = self.confirm(other).await?.into_iter().partition(Case::is_unclaimed);
            for suspect in none.into_iter().chain(later.into_iter().map(|case| case.suspect)) {
                self.unclaimed.add(self.hashes.of(&suspect.key));
            }
            self.settle(now).await?;
            self.observer.at("users", self.summary.users, self.totals.0);
        }
        Ok(())
    }

    /// The users of a batch; tells of what is none.
    fn readable(&mut self, batch: Vec<UserRow>) -> Vec<Listing> {
        let mut listings = Vec::with_capacity(batch.len());
        for row in batch {
            match row {
                UserRow::Listing(listing) => listings.push(listing),
                UserRow::Unreadable(id) => self.tell_document(Fault::UnreadableUser, id),
            }
        }
        listings
    }

    /// Of what the users list: what has another claim than it should have, and what has none.
    async fn strange(&self, listings: &[Listing]) -> Result<(Vec<Suspect>, Vec<Suspect>), Error> {
        let listed = |listing: &Listing| listing.claims.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
        let keys: Vec<IdentityKey> = listings.iter().flat_map(listed).collect();
        let found = self.store.claims_at(&keys).await?;
        let expected = listings.iter().flat_map(|listing| listing.claims.iter().map(move |own| (listing.id, own)));
        let (mut other, mut none) = (Vec::new(), Vec::new());
        for ((user, (key, claim)), found) in expected.zip(found) {
            let suspect = || Suspect { side: Side::Listed, key: key.clone(), user: Some(user) };
            match found {
                Stood::There(found) if found == *claim => {}
                Stood::Absent => none.push(suspect()),
                _ => other.push(suspect()),
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
            self.settle(cases).await?;
            self.observer.at("unclaimed", done, self.totals.0);
        }
        Ok(())
    }

    /// Of keys with these hashes: those that two users list.
    async fn listed_twice(&mut self, repeated: &HashSet<u64>) -> Result<HashMap<u64, [LocalityId; 2]>, Error> {
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
        if let Some(listers) = self.contested.get(&self.hashes.of(&case.suspect.key)) {
            case.fault = Fault::Shared;
            case.other = listers.iter().copied().find(|lister| Some(*lister) != case.suspect.user);
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
                    ClaimRow::Unreadable(key) => self.tell_document(Fault::UnreadableClaim, key),
                }
            }
            let mut suspects = self.unlisted(claims).await?;
            suspects.retain(|suspect| !self.told.contains(&self.hashes.of(&suspect.key)));
            let cases = self.confirm(suspects).await?;
            self.settle(cases).await?;
            self.observer.at("claims", self.summary.claims, self.totals.1);
        }
        Ok(())
    }

    /// Of the claims: those that no user seems to list.
    async fn unlisted(&self, claims: Vec<(IdentityKey, Claim)>) -> Result<Vec<Suspect>, Error> {
        let mut ids: Vec<LocalityId> = claims.iter().filter_map(|(_, claim)| claim.owner).collect();
        ids.sort_unstable();
        ids.dedup();
        let users = self.store.users_at(&ids).await?;
        let lists = |id: LocalityId, key: &IdentityKey| {
            let user = ids.binary_search(&id).ok().map(|n| &users[n]);
            matches!(user, Some(Stood::There(user)) if user.claim(key).is_some())
        };
        let suspect = |(key, claim): (IdentityKey, Claim)| match claim.owner {
            Some(id) if lists(id, &key) => None,
            user => Some(Suspect { side: Side::Claimed, key, user }),
        };
        Ok(claims.into_iter().filter_map(suspect).collect())
    }

    /// What is wrong with the suspects, as each is at one moment.
    async fn confirm(&self, suspects: Vec<Suspect>) -> Result<Vec<Case>, Error> {
        let look = |suspect: Suspect| async {
            let moment = self.store.moment(&suspect).await?;
            Ok::<_, Error>(Case::of(suspect, &moment))
        };
        let cases: Vec<Option<Case>> = stream::iter(suspects).map(look).buffered(AT_ONCE).try_collect().await?;
        Ok(cases.into_iter().flatten().collect())
    }

    /// Settles what can be settled, where that is asked for, and tells of all.
    async fn settle(&mut self, cases: Vec<Case>) -> Result<(), Error> {
        let (open, lost): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| case.fault.can_be_settled());
        lost.into_iter().for_each(|case| self.tell(case, Settled::CannotBe));
        if !self.mend {
            open.into_iter().for_each(|case| self.tell(case, Settled::CouldBe));
            return Ok(());
        }
        let suspects: Vec<_> = open.iter().map(|case| case.suspect.clone()).collect();
        let mended = self.store.mend(&suspects).await?;
        let mut again = Vec::new();
        for (case, mended) in open.into_iter().zip(mended) {
            if mended {
                self.tell(case, Settled::Was);
            } else {
                again.push(case.suspect);
            }
        }
        // What was not there to be mended has gone by itself, or become something else.
        for case in self.confirm(again).await? {
            self.tell(case, Settled::CannotBe);
        }
        Ok(())
    }

    fn tell(&mut self, case: Case, settled: Settled) {
        let Case { suspect: Suspect { key, user, side }, fault, other } = case;
        if side == Side::Listed && settled != Settled::Was {
            self.told.insert(self.hashes.of(&key));
        }
        self.report(&Finding { fault, user, other, key: Some(key), document: None, settled });
    }

    /// Tells of a document that cannot be read. Where its id is one, it is told as such.
    fn tell_document(&mut self, fault: Fault, id: String) {
        let user = (fault == Fault::UnreadableUser).then(|| id.parse().ok()).flatten();
        let document = user.is_none().then_some(id);
        self.report(&Finding { fault, user, other: None, key: None, document, settled: Settled::CannotBe });
    }

    fn report(&mut self, finding: &Finding) {
        self.summary.add(finding);
        self.observer.found(finding);
    }
}

impl Case {
    fn of(suspect: Suspect, moment: &Moment) -> Option<Self> {
        let fault = judge(&suspect, moment, Timestamp::now())?;
        let owner = match &moment.claim {
            Stood::There(claim) => claim.owner,
            Stood::Absent | Stood::Unreadable => None,
        };
        let other = owner.filter(|owner| Some(*owner) != suspect.user);
        Some(Self { suspect, fault, other })
    }

    /// Whether the user's key has to be settled after all walks of users.
    const fn is_unclaimed(&self) -> bool {
        matches!(self.fault, Fault::Unclaimed | Fault::Misclaimed)
    }
}

impl UserRow {
    fn into_listing(self) -> Option<Listing> {
        match self {
            Self::Listing(listing) => Some(listing),
            Self::Unreadable(_) => None,
        }
    }
}
