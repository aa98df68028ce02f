//! The store as `store verify` sees it: walks over both collections, candidates looked at in one
//! transaction, and mended in one each. It may be in use meanwhile.

use std::collections::HashMap;

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use locality_uuid::LocalityId;
use mongodb::bson::{Bson, RawDocument, RawDocumentBuf, doc};
use mongodb::options::{FindOptions, ReadConcern};
use mongodb::{Collection, Database};
use tokio::time::Instant;

use super::backoff::while_transient;
use super::collections::Collections;
use super::commit::commit;
use super::connect::{connect, disconnect, is_routed, or_disconnect};
use super::ended::read_row;
use super::error::{Fault, OpenError};
use super::freshness::Freshness;
use super::schema::{ENDED, ID, StoredUser, TENANT, by_id, id_value, key_value, read_claim};
use super::status::count;
use super::supported::Supported;
use super::transaction::Transaction;
use super::versions::{Fence, Versions};
use crate::directory::error::Error;
use crate::directory::model::claim::Claim;
use crate::directory::model::ownership::EndedOwnerships;
use crate::directory::model::timestamp::Timestamp;
use crate::identifier::IdentityKey;
use crate::store::integrity::{
    Candidate, CandidateState, CheckableStore, ClaimRow, Past, Presence, UserClaims, UserRow,
    plan_repair,
};

/// Documents in one page.
const BATCH: usize = 1_000;
/// Candidates that are repaired concurrently.
const AT_ONCE: usize = 8;

/// A store in a database of MongoDB, to be verified.
pub struct IntegritySession {
    collections: Collections,
}

impl IntegritySession {
    /// Opens the store in the database that `uri` names.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(uri: &str) -> Result<Self, OpenError> {
        Self::open_supporting(uri, Supported::PRESENT).await
    }

    /// Opens it as a program does that supports other versions.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open_supporting(uri: &str, supported: Supported) -> Result<Self, OpenError> {
        let database = connect(uri).await?;
        or_disconnect(&database, Self::over(database.clone(), supported)).await
    }

    /// Looks at the store in a database through a client of the caller's.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn over(database: Database, supported: Supported) -> Result<Self, OpenError> {
        let fence = Fence::new(supported, Versions::supported_in(&database, supported).await?);
        let is_routed = is_routed(&database).await?;
        let timeout = super::Options::default().timeout;
        Ok(Self { collections: Collections::new(database, timeout, is_routed, fence) })
    }

    /// Ends the sessions on the servers, and closes the connections.
    pub async fn close(self) {
        disconnect(&self.collections.database).await;
    }

    /// The documents with these ids, by them as text.
    async fn find(
        &self,
        from: &Collection<RawDocumentBuf>,
        ids: Vec<Bson>,
    ) -> Result<Vec<RawDocumentBuf>, Fault> {
        let mut found = Vec::with_capacity(ids.len());
        for ids in ids.chunks(BATCH) {
            let options = FindOptions::builder().batch_size(ids.len() as u32 + 1).build();
            found.extend(self.collections.all(from, by_id(ids.to_vec()), options).await?);
        }
        Ok(found)
    }

    /// All documents of a collection, ascending by id.
    fn walk<T: Send + 'static>(
        &self,
        collection: &Collection<RawDocumentBuf>,
        row: fn(&RawDocument) -> T,
    ) -> BoxStream<'_, Result<T, Error>> {
        let find = collection.clone();
        let cursor = async move {
            let find = find.find(doc! {}).sort(doc! { ID: 1 }).batch_size(BATCH as u32);
            let cursor = find.read_concern(ReadConcern::majority()).await.map_err(failure)?;
            Ok::<_, Error>(cursor.map_err(failure).map_ok(move |document| row(&document)))
        };
        stream::once(cursor).try_flatten().boxed()
    }

    /// Writes the repair of a candidate, if there is one, unless users change meanwhile.
    async fn mend_one(&self, candidate: &Candidate) -> Result<bool, Fault> {
        let deadline = Instant::now() + self.collections.timeout;
        match while_transient(deadline, || self.attempt(candidate, deadline)).await {
            Err(fault) if fault.is_duplicate() => Ok(false),
            outcome => outcome,
        }
    }

    async fn attempt(&self, candidate: &Candidate, deadline: Instant) -> Result<bool, Fault> {
        let versions = self.collections.fence.versions()?;
        let mut transaction =
            Transaction::begin(&self.collections, &Freshness::default()).await?.under(versions);
        match self.statements(&mut transaction, candidate).await {
            Ok(true) => commit(transaction, deadline).await.map(|()| true),
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
        let moment = self.read_moment(transaction, candidate).await?;
        let Some(write) = plan_repair(candidate, &moment, Timestamp::now()) else {
            return Ok(false);
        };

        for user in [moment.user, moment.owner] {
            if let Presence::Present(user) = user {
                transaction.touch(user.id).await?;
            }
        }

        transaction.write_claims(&[(&candidate.key, &write)]).await?;
        transaction.confirm_epoch().await?;
        Ok(true)
    }

    async fn read_moment(
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
        let user = self.look_at_user(transaction, candidate.user).await?;
        let owner = self.look_at_user(transaction, owner).await?;

        Ok(CandidateState { claim, user, owner })
    }

    /// Whether all attributes of a user have names. What has none is read again: it may have been
    /// deleted meanwhile, and its tenant's names after it.
    async fn is_named(&self, user: &StoredUser) -> Result<bool, Fault> {
        let known = self.collections.names_for(user).await;
        if !matches!(known, Err(Fault::Damaged(_))) {
            return known.map(|_| true);
        }
        let found = self.find(&self.collections.users, vec![id_value(user.id)]).await?;
        let Some(again) = found.first() else { return Ok(true) };
        let again = StoredUser::read(again)?;
        Ok(again.revision != user.revision && self.collections.names_for(&again).await.is_ok())
    }

    async fn look_at_user(
        &self,
        transaction: &mut Transaction<'_>,
        id: Option<LocalityId>,
    ) -> Result<Presence<UserClaims>, Fault> {
        let Some(id) = id else { return Ok(Presence::Absent) };
        let user = transaction.find_one(&self.collections.users, doc! { ID: id_value(id) }).await?;
        Ok(user.map_or(Presence::Absent, |user| presence(listing(&user))))
    }
}

#[async_trait]
impl CheckableStore for IntegritySession {
    async fn counts(&self) -> Result<(u64, u64), Error> {
        let users = count(&self.collections.users).await.map_err(failure)?;
        let claims = count(&self.collections.identities).await.map_err(failure)?;
        Ok((users, claims))
    }

    fn users(&self) -> BoxStream<'_, Result<UserRow, Error>> {
        let rows = self.walk(&self.collections.users, |document| {
            StoredUser::read(document)
                .and_then(|stored| Ok((claims_of(document, &stored)?, stored)))
                .map_err(|_| id_text(document))
        });
        rows.and_then(|row| async {
            Ok(match row {
                Err(id) => UserRow::Unreadable(id),
                Ok((claims, stored)) if self.is_named(&stored).await? => {
                    UserRow::UserClaims(claims)
                }
                Ok((claims, _)) => UserRow::Unnamed(claims),
            })
        })
        .boxed()
    }

    fn claims(&self) -> BoxStream<'_, Result<ClaimRow, Error>> {
        self.walk(&self.collections.identities, |document| {
            let claim = read_claim(document).ok();
            let claim = claim
                .and_then(|(key, claim)| Some((IdentityKey::from_stored(key.to_owned())?, claim)));
            claim.map_or_else(
                || ClaimRow::Unreadable(id_text(document)),
                |(key, claim)| ClaimRow::Claim(key, claim),
            )
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
            found.iter().map(|user| (id_text(user), presence(listing(user)))).collect();
        Ok(ids.iter().map(|id| by_id.remove(&id.to_string()).unwrap_or(Presence::Absent)).collect())
    }

    async fn state(&self, candidate: &Candidate) -> Result<CandidateState, Error> {
        let look = || async {
            let mut transaction =
                Transaction::begin(&self.collections, &Freshness::default()).await?;
            let moment = self.read_moment(&mut transaction, candidate).await;
            transaction.abort().await;
            moment
        };
        Ok(while_transient(Instant::now() + self.collections.timeout, look).await?)
    }

    async fn past(&self, user: LocalityId) -> Result<Option<Past>, Error> {
        Ok(self.collections.past(user).await?)
    }

    async fn ended_at(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error> {
        Ok(self.collections.ended_ownerships(keys).await?)
    }

    fn ended(&self) -> BoxStream<'_, Result<(IdentityKey, EndedOwnerships), Error>> {
        let ended = self.walk(&self.collections.database.collection(ENDED), read_row);
        ended.map(|row| Ok(row??)).boxed()
    }

    async fn repair(&self, candidates: &[Candidate]) -> Result<Vec<bool>, Error> {
        let one = |n: usize| self.mend_one(&candidates[n]);
        let mended = stream::iter(0..candidates.len()).map(one).buffered(AT_ONCE);
        Ok(mended.try_collect().await?)
    }
}

fn failure(error: mongodb::error::Error) -> Error {
    Fault::from(error).into()
}

fn presence<T>(read: Result<T, Fault>) -> Presence<T> {
    read.map_or(Presence::Unreadable, Presence::Present)
}

/// The keys that a user's document lists; none if it is filed under another id or tenant than its
/// user's.
fn listing(document: &RawDocument) -> Result<UserClaims, Fault> {
    claims_of(document, &StoredUser::read(document)?)
}

fn claims_of(document: &RawDocument, stored: &StoredUser) -> Result<UserClaims, Fault> {
    let record = stored.decode_without_attributes()?;
    let tenant = document.get_str(TENANT).map_err(Fault::damaged)?;
    if record.id() != stored.id || record.user.tenant.as_str() != tenant {
        return Err(Fault::damaged("a user filed under another one's id or tenant"));
    }
    Ok(UserClaims::of(&record))
}

/// The id of a document as text.
fn id_text(document: &RawDocument) -> String {
    let Ok(Some(id)) = document.get(ID) else { return String::new() };
    match (id.as_str(), id.as_binary()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(binary)) => match <[u8; 16]>::try_from(binary.bytes) {
            Ok(bytes) => LocalityId::from(bytes).to_string(),
            Err(_) => format!("{id:?}"),
        },
        _ => format!("{id:?}"),
    }
}
