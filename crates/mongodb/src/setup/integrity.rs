//! The store for `store verify`: walks over both collections, and reads and repairs candidates,
//! each in a transaction. The store may be in use: each read sees all that those before it have
//! seen.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use locality_uuid::LocalityId;
use mongodb::bson::{Bson, RawDocument, RawDocumentBuf, doc};
use mongodb::options::FindOptions;
use mongodb::{Collection, Database};
use tokio::time::Instant;

use crate::client::backoff::retry_transient;
use crate::client::connect::{connect_at_least, disconnect, is_routed, or_disconnect};
use crate::client::error::{Fault, OpenError};
use crate::client::options::Options;
use crate::client::supported::Supported;
use crate::database::collections::Collections;
use crate::database::commit::commit;
use crate::database::freshness::Freshness;
use crate::database::ordered::OrderedFinds;
use crate::database::times::Times;
use crate::database::transaction::Transaction;
use crate::history::ended::read_row;
use crate::mutation::commit_gate::CommitGate;
use crate::schema::bson::{by_id, id_text, id_value, key_value};
use crate::schema::claim::read_claim;
use crate::schema::fields::{ENDED, ID, TENANT};
use crate::schema::user::StoredUser;
use crate::schema::versions::{VersionGuard, Versions};
use crate::setup::element_check::{index_fault, missing, repair_elements};
use crate::setup::status::{count, count_matching};
use crate::setup::walks::{Part, keys_of, users_of};
use polynym_directory::{Claim, EndedOwnerships, Error, MergeLinks, Tenant, Timestamp};
use polynym_identifier::IdentityKey;
use polynym_store_common::integrity::{
    BulkFault, Candidate, CandidateState, CheckableStore, ClaimRow, IndexFault, NoticeFault, Past,
    Presence, Scope, UserClaims, UserRow, link_repair, plan_repair,
};

/// The documents of a batch.
pub(super) const BATCH: usize = 1_000;
/// The limit of concurrent repairs.
const MAX_CONCURRENT: usize = 8;
/// The connections that a verification may have, whatever the URI says: a walk and batches that are
/// read ahead keep some while single records are checked, and would wait for each other.
const MIN_CONNECTIONS: u32 = 32;

/// A store in a database of MongoDB, to be verified.
pub struct IntegritySession {
    pub(super) collections: Collections,
    /// The times of all reads.
    times: Mutex<Times>,
}

impl IntegritySession {
    /// Opens the store in the database that `uri` names.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(uri: &str) -> Result<Self, OpenError> {
        Self::open_supporting(uri, Supported::PRESENT).await
    }

    /// Opens the store as a program that supports these versions.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open_supporting(uri: &str, supported: Supported) -> Result<Self, OpenError> {
        let database = connect_at_least(uri, MIN_CONNECTIONS).await?;
        or_disconnect(&database, Self::over(database.clone(), supported)).await
    }

    /// Opens the store in a database of the caller's client.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn over(database: Database, supported: Supported) -> Result<Self, OpenError> {
        let version_guard =
            VersionGuard::new(supported, Versions::supported_in(&database, supported).await?);
        let is_routed = is_routed(&database).await?;
        let timeout = Options::default().timeout;
        let collections = Collections::new(database, timeout, is_routed, version_guard);
        Ok(Self { collections, times: Mutex::default() })
    }

    /// Ends the sessions on the servers, and closes the connections.
    pub async fn close(self) {
        disconnect(&self.collections.database).await;
    }

    /// Begins finds that see all that was seen so far.
    pub(super) async fn in_order(&self) -> Result<OrderedFinds, Fault> {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.collections.in_order_after(&times).await
    }

    /// Records what finds have seen.
    pub(super) fn learn(&self, finds: &OrderedFinds) {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).learn(&finds.session);
    }

    /// The documents with these ids.
    pub(super) async fn find(
        &self,
        from: &Collection<RawDocumentBuf>,
        ids: Vec<Bson>,
    ) -> Result<Vec<RawDocumentBuf>, Fault> {
        let (mut found, mut finds) = (Vec::with_capacity(ids.len()), self.in_order().await?);
        for ids in ids.chunks(BATCH) {
            let options = FindOptions::builder().batch_size(ids.len() as u32 + 1).build();
            let filter = by_id(ids.to_vec());
            found.extend(finds.find_documents(from, filter, options).await?);
        }
        self.learn(&finds);
        Ok(found)
    }

    /// Repairs a candidate, if it needs repair, unless users change concurrently.
    async fn repair_one(&self, candidate: &Candidate) -> Result<bool, Fault> {
        let deadline = Instant::now() + self.collections.timeout;
        match retry_transient(deadline, || self.attempt(candidate, deadline)).await {
            Err(fault) if fault.is_duplicate() => Ok(false),
            outcome => outcome,
        }
    }

    async fn attempt(&self, candidate: &Candidate, deadline: Instant) -> Result<bool, Fault> {
        let versions = self.collections.version_guard.versions()?;
        let mut transaction =
            Transaction::begin(&self.collections, &Freshness::default(), deadline)
                .await?
                .with_versions(versions);
        match self.statements(&mut transaction, candidate).await {
            Ok(true) => commit(transaction, deadline).await.map(|_| true),
            outcome => {
                transaction.abort().await;
                outcome
            }
        }
    }

    async fn statements(
        &self,
        transaction: &mut Transaction<'_>,
        candidate: &Candidate,
    ) -> Result<bool, Fault> {
        let state = self.read_state(transaction, candidate).await?;
        let Some(write) = plan_repair(candidate, &state, Timestamp::now()) else {
            return Ok(false);
        };

        for user in [state.user, state.owner] {
            if let Presence::Present(user) = user {
                transaction.touch(user.id).await?;
            }
        }

        transaction.write_claims(&[(&candidate.key, &write)]).await?;
        Ok(true)
    }

    async fn read_state(
        &self,
        transaction: &mut Transaction<'_>,
        candidate: &Candidate,
    ) -> Result<CandidateState, Fault> {
        let claim = transaction
            .find_one(&self.collections.identities, doc! { ID: key_value(&candidate.key) })
            .await?;
        let claim = claim
            .map_or(Presence::Absent, |claim| presence(read_claim(&claim).map(|(_, claim)| claim)));
        let owner = match &claim {
            Presence::Present(claim) => claim.owner.filter(|owner| Some(*owner) != candidate.user),
            Presence::Absent | Presence::Unreadable => None,
        };
        let user = self.read_claims_of(transaction, candidate.user).await?;
        let owner = self.read_claims_of(transaction, owner).await?;

        Ok(CandidateState { claim, user, owner })
    }

    /// The rows of users, with whether all attributes of each have names.
    async fn with_names(
        &self,
        rows: Vec<Result<(UserClaims, StoredUser), String>>,
    ) -> Result<Vec<UserRow>, Error> {
        let users = rows.iter().flatten().map(|(_, stored)| stored);
        let (names, read) = self.collections.known_names_of(users).await;
        read?;
        let mut named = Vec::with_capacity(rows.len());
        for row in rows {
            named.push(match row {
                Err(id) => UserRow::Unreadable(id),
                Ok((claims, stored)) => match names.of(&stored) {
                    Err(Fault::Damaged(_)) if !self.is_named(&stored).await? => {
                        UserRow::Unnamed(claims)
                    }
                    _ => UserRow::UserClaims(claims),
                },
            });
        }
        Ok(named)
    }

    /// Whether all attributes of a user have names, or it has changed since: it and its tenant may
    /// have been deleted concurrently.
    async fn is_named(&self, user: &StoredUser) -> Result<bool, Fault> {
        let found = self.find(&self.collections.users, vec![id_value(user.id)]).await?;
        let Some(again) = found.first() else { return Ok(true) };
        let again = StoredUser::read(again)?;
        Ok(again.revision != user.revision && self.collections.names_for(&again).await.is_ok())
    }

    async fn read_claims_of(
        &self,
        transaction: &mut Transaction<'_>,
        id: Option<LocalityId>,
    ) -> Result<Presence<UserClaims>, Fault> {
        let Some(id) = id else { return Ok(Presence::Absent) };
        let user = transaction.find_one(&self.collections.users, doc! { ID: id_value(id) }).await?;
        Ok(user.map_or(Presence::Absent, |user| presence(read_claims(&user))))
    }
}

#[async_trait]
impl CheckableStore for IntegritySession {
    async fn counts(&self, tenant: Option<&Tenant>) -> Result<(u64, u64), Error> {
        let Collections { users, identities, .. } = &self.collections;
        let counts = match tenant {
            None => (count(users).await, count(identities).await),
            Some(tenant) => (
                count_matching(users, users_of(tenant)).await,
                count_matching(identities, keys_of(tenant)).await,
            ),
        };
        Ok((counts.0.map_err(failure)?, counts.1.map_err(failure)?))
    }

    fn users(&self, scope: &Scope) -> BoxStream<'_, Result<UserRow, Error>> {
        let rows = self.walk_batches(&self.collections.users, Part::of_users(scope), |document| {
            StoredUser::read(document)
                .and_then(|stored| Ok((claims_of(document, &stored)?, stored)))
                .map_err(|_| id_text(document))
        });
        let named = rows.and_then(|rows| self.with_names(rows));
        named.map_ok(|rows| stream::iter(rows.into_iter().map(Ok))).try_flatten().boxed()
    }

    fn claims(&self, scope: &Scope) -> BoxStream<'_, Result<ClaimRow, Error>> {
        self.walk(&self.collections.identities, Part::of_keys(scope), |document| {
            let row = read_claim(document).ok().and_then(|(key, claim)| {
                Some(ClaimRow::Claim(IdentityKey::from_stored(key.to_owned())?, claim))
            });
            row.unwrap_or_else(|| ClaimRow::Unreadable(id_text(document)))
        })
    }

    async fn claims_at(&self, keys: &[IdentityKey]) -> Result<Vec<Presence<Claim>>, Error> {
        let found =
            self.find(&self.collections.identities, keys.iter().map(key_value).collect()).await?;
        let by_key = |claim: &RawDocumentBuf| {
            Some((
                claim.get_str(ID).ok()?.to_owned(),
                presence(read_claim(claim).map(|(_, claim)| claim)),
            ))
        };
        let found: HashMap<String, Presence<Claim>> = found.iter().filter_map(by_key).collect();

        Ok(keys
            .iter()
            .map(|key| found.get(key.as_str()).cloned().unwrap_or(Presence::Absent))
            .collect())
    }

    async fn users_at(&self, ids: &[LocalityId]) -> Result<Vec<Presence<UserClaims>>, Error> {
        let found =
            self.find(&self.collections.users, ids.iter().copied().map(id_value).collect()).await?;
        let mut by_id: HashMap<String, Presence<UserClaims>> =
            found.iter().map(|user| (id_text(user), presence(read_claims(user)))).collect();
        Ok(ids.iter().map(|id| by_id.remove(&id.to_string()).unwrap_or(Presence::Absent)).collect())
    }

    async fn state(&self, candidate: &Candidate) -> Result<CandidateState, Error> {
        let deadline = Instant::now() + self.collections.timeout;
        let attempt = || async {
            let mut transaction =
                Transaction::begin(&self.collections, &Freshness::default(), deadline).await?;
            let state = self.read_state(&mut transaction, candidate).await;
            transaction.abort().await;
            state
        };
        Ok(retry_transient(deadline, attempt).await?)
    }

    async fn repair_links(&self, links: &MergeLinks) -> Result<bool, Error> {
        let repair = link_repair(links, self.collections.tenant(&links.tenant).await?);
        let gate = CommitGate::new(Instant::now() + self.collections.timeout);
        self.collections.mutate(&repair, &gate).await.map(|_| true)
    }

    /// The index itself is MongoDB's. Its elements are checked: a document has them beside the user
    /// from which they are derived.
    fn index_faults(&self, scope: &Scope) -> BoxStream<'_, Result<Option<IndexFault>, Error>> {
        self.walk(&self.collections.users, Part::of_users(scope), index_fault)
    }

    async fn repair_index(&self, faults: &[IndexFault]) -> Result<(), Error> {
        let ids = faults.iter().filter_map(missing).map(id_value).collect();
        for user in self.find(&self.collections.users, ids).await? {
            repair_elements(&self.collections, &user).await?;
        }
        Ok(())
    }

    async fn pasts(
        &self,
        users: &[LocalityId],
        max_events: u64,
    ) -> Result<Vec<Presence<Past>>, Error> {
        let mut finds = self.in_order().await?;
        let pasts = self.collections.pasts(&mut finds, users, max_events).await;
        self.learn(&finds);
        Ok(pasts?)
    }

    async fn ended_at(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error> {
        let mut finds = self.in_order().await?;
        let ended = self.collections.ended_ownerships(&mut finds, keys).await;
        self.learn(&finds);
        Ok(ended?)
    }

    fn ended(&self, scope: &Scope) -> BoxStream<'_, Result<(IdentityKey, EndedOwnerships), Error>> {
        let ended = self.walk(&self.collections.collection(ENDED), Part::of_keys(scope), read_row);
        ended.map(|row| Ok(row??)).boxed()
    }

    fn notice_faults(&self) -> BoxStream<'_, Result<Option<NoticeFault>, Error>> {
        self.all_notice_faults()
    }

    async fn repair_notices(&self, faults: &[NoticeFault]) -> Result<(), Error> {
        Ok(self.repair_each_notice(faults).await?)
    }

    fn bulk_faults(&self) -> BoxStream<'_, Result<Option<BulkFault>, Error>> {
        self.all_bulk_faults()
    }

    async fn repair_bulk_changes(&self, faults: &[BulkFault]) -> Result<(), Error> {
        Ok(self.repair_each_bulk_change(faults).await?)
    }

    async fn repair(&self, candidates: &[Candidate]) -> Result<Vec<bool>, Error> {
        let one = |n: usize| self.repair_one(&candidates[n]);
        let repaired = stream::iter(0..candidates.len()).map(one).buffered(MAX_CONCURRENT);
        Ok(repaired.try_collect().await?)
    }
}

pub(super) fn failure(error: mongodb::error::Error) -> Error {
    Fault::from(error).into()
}

fn presence<T>(read: Result<T, Fault>) -> Presence<T> {
    read.map_or(Presence::Unreadable, Presence::Present)
}

/// The keys that a user's document lists. Fails if the document has another id or tenant.
fn read_claims(document: &RawDocument) -> Result<UserClaims, Fault> {
    claims_of(document, &StoredUser::read(document)?)
}

fn claims_of(document: &RawDocument, stored: &StoredUser) -> Result<UserClaims, Fault> {
    let record = stored.decode_without_attributes()?;
    let tenant = document.get_str(TENANT).map_err(Fault::damaged)?;
    if record.id() != stored.id || record.user.tenant.as_str() != tenant {
        return Err(Fault::damaged("a user has another id or tenant than its document"));
    }
    Ok(UserClaims::of(&record))
}
