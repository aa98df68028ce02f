//! The store as `store verify` checks and repairs it: a folder that no server has open.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::ready;
use futures_util::stream::{self, BoxStream};
use locality_uuid::LocalityId;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata};

use crate::bulk_changes::BulkTables;
use crate::deliveries::unreadable_deliveries;
use crate::error::{Fault, OpenError};
use crate::file::lock::FileId;
use crate::file::opener::{Open, Opener};
use crate::inbox::inboxes::Inboxes;
use crate::lookup::snapshot::{Caches, Snapshot, item_result};
use crate::mutation::transaction::Tables;
use crate::schema::claim::{decode_claim, encode_claim};
use crate::schema::tables::{HOLD_TIMES, IDENTITIES, USERS};
use crate::schema::user::{StoredUser, decode_without_attributes};
use crate::setup::bulk_check::BulkCheck;
use crate::setup::content_check::ContentCheck;
use crate::setup::index_check::IndexCheck;
use crate::setup::scoped::{ended_rows, rows_of_keys, tenant_users, user_records};
use crate::version::Supported;
use polynym_directory::{Claim, ClaimWrite, EndedOwnerships, Error, MergeLinks, Tenant, Timestamp};
use polynym_identifier::IdentityKey;
use polynym_store_common::integrity::{
    BulkFault, Candidate, CandidateState, CheckableStore, ClaimRow, IndexFault, NoticeFault, Past,
    Presence, Scope, UserClaims, UserRow, link_repair, plan_repair,
};

/// Memory for the database's pages, in bytes.
pub const CACHE_BYTES: usize = 256 << 20;

/// A store in a folder that no server has open, to be verified.
pub struct IntegritySession {
    open: Open,
    caches: Caches,
}

impl IntegritySession {
    /// Opens the store in `folder`, which must exist, and checks the integrity of its file. Blocks.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        Self::open_supporting(folder, Supported::PRESENT)
    }

    /// Opens the store as a program that supports these versions. Blocks.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_supporting(folder: &Path, supported: Supported) -> Result<Self, OpenError> {
        Self::checked(folder, supported).map(|(session, _)| session)
    }

    /// Opens the store, and returns whether its file needed no repair. Blocks.
    ///
    /// # Errors
    /// [`OpenError`].
    pub(super) fn checked(folder: &Path, supported: Supported) -> Result<(Self, bool), OpenError> {
        Self::checked_by(Opener::new(folder, CACHE_BYTES).supporting(supported))
    }

    /// Opens the store that this opener opens, and returns whether its file needed no repair.
    /// Blocks.
    pub(super) fn checked_by(mut opener: Opener) -> Result<(Self, bool), OpenError> {
        let mut open = opener.open_existing()?;
        // The database panics on an invalid page that it trusts.
        let checked = catch_unwind(AssertUnwindSafe(|| open.database.check_integrity()));
        match checked {
            Ok(Ok(is_sound)) => Ok((Self { open, caches: Caches::new(0) }, is_sound)),
            Ok(Err(error)) => Err(opener.damaged(error)),
            Err(_) => Err(opener.damaged("its structure is invalid")),
        }
    }

    /// The database.
    pub(super) const fn database(&self) -> &Database {
        &self.open.database
    }

    /// The id of the opened file.
    pub(super) fn file_id(&self) -> FileId {
        self.open.gate.file_id()
    }

    /// The number of users whose records cannot be read.
    pub(super) fn unreadable_users(&self) -> Result<u64, Fault> {
        let mut unreadable = 0;
        for row in self.snapshot()?.users.range::<&[u8; 16]>(..)? {
            let (id, record) = row?;
            let claims = user_claims(LocalityId::from(*id.value()), record.value());
            unreadable += u64::from(claims.is_err());
        }
        Ok(unreadable)
    }

    fn read<T>(&self, read: impl FnOnce(&ReadTransaction) -> Result<T, Fault>) -> Result<T, Error> {
        let transaction = self.open.database.begin_read().map_err(Fault::from)?;
        Ok(read(&transaction)?)
    }

    fn snapshot(&self) -> Result<Snapshot, Fault> {
        Snapshot::new(&self.open.database, &self.caches)
    }

    /// Adds missing entries of the index, and deletes stray ones.
    fn write_index(&self, faults: &[IndexFault]) -> Result<(), Fault> {
        let mut check = IndexCheck::new(self.snapshot()?, &Scope::default())?;
        let mut transaction = self.open.database.begin_write()?;
        transaction.set_quick_repair(true);
        check.repair(&transaction, faults)?;
        self.open.commit(transaction)
    }

    /// Repairs faults of notices.
    fn write_notices(&self, faults: &[NoticeFault]) -> Result<(), Fault> {
        let mut transaction = self.open.database.begin_write()?;
        transaction.set_quick_repair(true);
        {
            let mut inboxes = Inboxes::open(&transaction)?;
            faults.iter().try_for_each(|fault| inboxes.repair(fault))?;
        }
        self.open.commit(transaction)
    }

    /// Repairs faults of bulk changes.
    fn write_bulk_changes(&self, faults: &[BulkFault]) -> Result<(), Fault> {
        let mut transaction = self.open.database.begin_write()?;
        transaction.set_quick_repair(true);
        {
            let mut tables = BulkTables::open(&transaction)?;
            faults.iter().try_for_each(|fault| tables.repair(fault))?;
        }
        self.open.commit(transaction)
    }

    /// Removes the faults of a user's links.
    fn write_links(&self, links: &MergeLinks) -> Result<bool, Fault> {
        let repair = link_repair(links, self.snapshot()?.tenant(&links.tenant)?);
        let mut transaction = self.open.database.begin_write()?;
        transaction.set_quick_repair(true);
        let mut tables = Tables::open(&transaction, &self.caches)?;
        let is_repaired = tables.mutate(&repair)?.is_ok();
        tables.finish()?;
        self.open.commit(transaction)?;
        Ok(is_repaired)
    }

    /// Repairs candidates in one transaction.
    fn write(&self, candidates: &[Candidate]) -> Result<Vec<bool>, Fault> {
        let mut transaction = self.open.database.begin_write()?;
        transaction.set_quick_repair(true);
        let mut repaired = Vec::with_capacity(candidates.len());
        {
            let users = transaction.open_table(USERS)?;
            let mut claims = transaction.open_table(IDENTITIES)?;
            let mut hold_times = transaction.open_table(HOLD_TIMES)?;
            for candidate in candidates {
                let state = read_state(&users, &claims, candidate)?;
                let write = plan_repair(candidate, &state, Timestamp::now());
                repaired.push(write.is_some());
                let key = candidate.key.as_str().as_bytes();
                match write {
                    None => {}
                    Some(ClaimWrite::Delete) => drop(claims.remove(key)?),
                    Some(ClaimWrite::Insert(claim) | ClaimWrite::Update(claim)) => {
                        claims.insert(key, encode_claim(&claim).as_slice())?;
                        if let Some(until) = claim.hold {
                            hold_times.insert((until.as_millis(), key), ())?;
                        }
                    }
                }
            }
        }
        self.open.commit(transaction)?;

        Ok(repaired)
    }
}

#[async_trait]
impl CheckableStore for IntegritySession {
    async fn counts(&self, tenant: Option<&Tenant>) -> Result<(u64, u64), Error> {
        self.read(|transaction| {
            let claims = transaction.open_table(IDENTITIES)?;
            let Some(tenant) = tenant else {
                return Ok((transaction.open_table(USERS)?.len()?, claims.len()?));
            };
            let scope = Scope { tenant: Some(tenant.clone()), sample: None };
            let users = tenant_users(transaction, tenant)?.count();
            Ok((users as u64, rows_of_keys(&claims, &scope)?.count() as u64))
        })
    }

    fn users(&self, scope: &Scope) -> BoxStream<'_, Result<UserRow, Error>> {
        let rows = self.snapshot().and_then(|snapshot| {
            let records = user_records(&snapshot.transaction, scope)?;
            Ok(records.map(move |row| {
                let (id, record) = row?;
                Ok(user_row(&snapshot, id, record.value())?)
            }))
        });
        rows_or_failure(rows.map_err(Error::from))
    }

    fn claims(&self, scope: &Scope) -> BoxStream<'_, Result<ClaimRow, Error>> {
        let rows =
            self.read(|transaction| rows_of_keys(&transaction.open_table(IDENTITIES)?, scope));
        rows_or_failure(rows.map(|rows| {
            rows.map(|row| {
                let (key, claim) = row.map_err(Fault::from)?;
                let text = String::from_utf8_lossy(key.value()).into_owned();
                let key = IdentityKey::from_stored(text.clone())
                    .filter(|own| own.as_str().as_bytes() == key.value());
                Ok(match (key, decode_claim(claim.value())) {
                    (Some(key), Ok(claim)) => ClaimRow::Claim(key, claim),
                    _ => ClaimRow::Unreadable(text),
                })
            })
        }))
    }

    async fn claims_at(&self, keys: &[IdentityKey]) -> Result<Vec<Presence<Claim>>, Error> {
        self.read(|transaction| {
            let claims = transaction.open_table(IDENTITIES)?;
            keys.iter().map(|key| claim_presence(&claims, key)).collect()
        })
    }

    async fn users_at(&self, ids: &[LocalityId]) -> Result<Vec<Presence<UserClaims>>, Error> {
        self.read(|transaction| {
            let users = transaction.open_table(USERS)?;
            ids.iter().map(|id| user_presence(&users, Some(*id))).collect()
        })
    }

    async fn state(&self, candidate: &Candidate) -> Result<CandidateState, Error> {
        self.read(|transaction| {
            read_state(
                &transaction.open_table(USERS)?,
                &transaction.open_table(IDENTITIES)?,
                candidate,
            )
        })
    }

    async fn repair(&self, candidates: &[Candidate]) -> Result<Vec<bool>, Error> {
        Ok(self.write(candidates)?)
    }

    async fn repair_links(&self, links: &MergeLinks) -> Result<bool, Error> {
        Ok(self.write_links(links)?)
    }

    fn index_faults(&self, scope: &Scope) -> BoxStream<'_, Result<Option<IndexFault>, Error>> {
        let check = self.snapshot().and_then(|snapshot| IndexCheck::new(snapshot, scope));
        let check = check.map_err(Error::from);
        rows_or_failure(check.map(|check| check.map(|fault| Ok(fault?))))
    }

    fn notice_faults(&self) -> BoxStream<'_, Result<Option<NoticeFault>, Error>> {
        let check = self.read(ContentCheck::new);
        rows_or_failure(check.map(|check| check.map(|fault| Ok(fault?))))
    }

    async fn repair_notices(&self, faults: &[NoticeFault]) -> Result<(), Error> {
        Ok(self.write_notices(faults)?)
    }

    async fn pasts(
        &self,
        users: &[LocalityId],
        max_events: u64,
    ) -> Result<Vec<Presence<Past>>, Error> {
        let (snapshot, mut tenants) = (self.snapshot()?, HashMap::new());
        let (mut pasts, mut events) = (Vec::new(), 0);
        for user in users {
            let past = item_result(snapshot.past(*user, &mut tenants))?;
            events += past.as_ref().ok().and_then(Option::as_ref).map_or(0, Past::event_count);
            pasts.push(match past {
                Ok(past) => past.map_or(Presence::Absent, Presence::Present),
                Err(_) => Presence::Unreadable,
            });
            if events >= max_events {
                break;
            }
        }
        Ok(pasts)
    }

    async fn ended_at(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error> {
        let snapshot = self.snapshot()?;
        Ok(keys.iter().map(|key| snapshot.ended(key)).collect::<Result<_, _>>()?)
    }

    fn ended(&self, scope: &Scope) -> BoxStream<'_, Result<(IdentityKey, EndedOwnerships), Error>> {
        let rows = self.read(|transaction| ended_rows(transaction, scope));
        rows_or_failure(rows.map(|rows| rows.map(|row| Ok(row?))))
    }

    async fn repair_index(&self, faults: &[IndexFault]) -> Result<(), Error> {
        Ok(self.write_index(faults)?)
    }

    fn bulk_faults(&self) -> BoxStream<'_, Result<Option<BulkFault>, Error>> {
        let check = self.read(|transaction| {
            Ok((BulkCheck::new(transaction)?, unreadable_deliveries(transaction)?))
        });
        let faults = |(check, deliveries): (Option<BulkCheck>, Vec<String>)| {
            let deliveries = deliveries.into_iter().map(BulkFault::Unreadable);
            check.into_iter().flatten().chain(deliveries.map(|fault| Ok(Some(fault))))
        };
        rows_or_failure(check.map(|check| faults(check).map(|fault| Ok(fault?))))
    }

    async fn repair_bulk_changes(&self, faults: &[BulkFault]) -> Result<(), Error> {
        Ok(self.write_bulk_changes(faults)?)
    }
}

fn rows_or_failure<T: Send + 'static>(
    rows: Result<impl Iterator<Item = Result<T, Error>> + Send + 'static, Error>,
) -> BoxStream<'static, Result<T, Error>> {
    match rows {
        Ok(rows) => stream::iter(rows).boxed(),
        Err(error) => stream::once(ready(Err(error))).boxed(),
    }
}

fn read_state(
    users: &impl ReadableTable<&'static [u8; 16], &'static [u8]>,
    claims: &impl ReadableTable<&'static [u8], &'static [u8]>,
    candidate: &Candidate,
) -> Result<CandidateState, Fault> {
    let claim = claim_presence(claims, &candidate.key)?;
    let owner = match &claim {
        Presence::Present(claim) => claim.owner.filter(|owner| Some(*owner) != candidate.user),
        Presence::Absent | Presence::Unreadable => None,
    };
    Ok(CandidateState {
        claim,
        user: user_presence(users, candidate.user)?,
        owner: user_presence(users, owner)?,
    })
}

fn claim_presence(
    claims: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: &IdentityKey,
) -> Result<Presence<Claim>, Fault> {
    let claim = claims.get(key.as_str().as_bytes())?;
    Ok(claim.map_or(Presence::Absent, |claim| {
        decode_claim(claim.value()).map_or(Presence::Unreadable, Presence::Present)
    }))
}

fn user_presence(
    users: &impl ReadableTable<&'static [u8; 16], &'static [u8]>,
    id: Option<LocalityId>,
) -> Result<Presence<UserClaims>, Fault> {
    let Some(id) = id else { return Ok(Presence::Absent) };
    let record = users.get(id.as_bytes())?;
    Ok(record.map_or(Presence::Absent, |record| {
        user_claims(id, record.value()).map_or(Presence::Unreadable, Presence::Present)
    }))
}

fn user_row(snapshot: &Snapshot, id: LocalityId, record: &[u8]) -> Result<UserRow, Fault> {
    let Ok(claims) = user_claims(id, record) else {
        return Ok(UserRow::Unreadable(id.to_string()));
    };
    let is_named = item_result(snapshot.names_for(&StoredUser::read(record)?))?.is_ok();
    Ok(if is_named { UserRow::UserClaims(claims) } else { UserRow::Unnamed(claims) })
}

/// The claims that a user's record lists. Fails if the record has another id.
fn user_claims(id: LocalityId, record: &[u8]) -> Result<UserClaims, Fault> {
    let record = decode_without_attributes(record)?;
    if record.id() == id {
        Ok(UserClaims::of(&record))
    } else {
        Err(Fault::damaged("a user stored under another id"))
    }
}
