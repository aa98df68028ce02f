//! The tables inside one write transaction, and the changes of a mutation to them. A mutation is
//! decided before its first write, so that a rejected mutation leaves no trace in its group. One
//! whose writes fail ends the transaction.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use locality_uuid::LocalityId;
use redb::{AccessGuard, ReadableTable, Table, WriteTransaction};

use crate::bulk_changes::BulkTables;
use crate::deliveries::DeliveryTables;
use crate::error::Fault;
use crate::history::journal::Journal;
use crate::inbox::contents::Content;
use crate::inbox::inboxes::Inboxes;
use crate::lookup::snapshot::Caches;
use crate::recent_events::EventChanges;
use crate::requests::Requests;
use crate::schema::claim::{decode_claim, encode_claim, encode_claim_over};
#[cfg(feature = "test-entity")]
use crate::schema::tables::META;
use crate::schema::tables::{EXPIRES_AT, HOLD_TIMES, IDENTITIES, TENANT_USERS, TENANTS, USERS};
use crate::schema::user::{JournalHead, StoredUser};
use crate::search::index::Attributes;
use polynym_directory::{
    Claim, ClaimWrite, Decision, Error, IdempotencyKey, InboxLimits, Mutation, Outcome,
    PriorRequest, ReadRequest, ReadSet, Record, TenantRecord, Timestamp, Write, WriteSet,
};
use polynym_identifier::IdentityKey;
use polynym_store_common::attribute_names::KnownNames;
use polynym_store_common::owner_hints::OwnerHints;

/// The tables inside one write transaction.
pub struct Tables<'t> {
    hints: &'t Arc<OwnerHints>,
    pub(super) users: Table<'t, &'static [u8; 16], &'static [u8]>,
    pub(super) identities: Table<'t, &'static [u8], &'static [u8]>,
    pub(super) requests: Requests<'t>,
    tenants: Table<'t, &'static str, &'static [u8]>,
    pub(super) tenant_users: Table<'t, (&'static str, &'static [u8; 16]), ()>,
    pub(super) attributes: Attributes<'t>,
    pub(super) journal: Journal<'t>,
    /// Opened for mutations of bulk changes and deliveries alone, whose tables may be missing.
    transaction: &'t WriteTransaction,
    pub(super) inboxes: Inboxes<'t>,
    /// The histories of the users that the current mutation has read.
    pub(super) heads: HashMap<LocalityId, JournalHead>,
    pub(super) expiries: Table<'t, (i64, &'static [u8; 16]), ()>,
    pub(super) hold_times: Table<'t, (i64, &'static [u8]), ()>,
    #[cfg(feature = "test-entity")]
    counters: Table<'t, &'static str, u64>,
}

/// A decided mutation.
struct Decided {
    read_set: ReadSet,
    write_set: Box<WriteSet>,
}

impl<'t> Tables<'t> {
    pub fn open(transaction: &'t WriteTransaction, caches: &'t Caches) -> Result<Self, Fault> {
        Ok(Self {
            hints: &caches.hints,
            transaction,
            users: transaction.open_table(USERS)?,
            identities: transaction.open_table(IDENTITIES)?,
            requests: Requests::open(transaction)?,
            tenants: transaction.open_table(TENANTS)?,
            tenant_users: transaction.open_table(TENANT_USERS)?,
            attributes: Attributes::open(transaction, &caches.names)?,
            journal: Journal::open(transaction)?,
            inboxes: Inboxes::open(transaction)?,
            heads: HashMap::new(),
            expiries: transaction.open_table(EXPIRES_AT)?,
            hold_times: transaction.open_table(HOLD_TIMES)?,
            #[cfg(feature = "test-entity")]
            counters: transaction.open_table(META)?,
        })
    }

    /// Applies a mutation. The outer error is the store's: the mutation may have written a part of
    /// itself, and the transaction must end. The inner error is the caller's: nothing was written.
    pub fn mutate(&mut self, mutation: &Mutation) -> Result<Result<Outcome, Error>, Fault> {
        let decided = match self.decide(mutation) {
            Ok(Ok(decided)) => decided,
            Ok(Err(rejection)) => return Ok(Err(rejection)),
            // Nothing is written yet: the rest of the group continues.
            Err(fault @ Fault::Damaged(_)) => return Ok(Err(fault.into())),
            Err(fault) => return Err(fault),
        };
        let Decided { read_set, write_set } = decided;
        let names = match self.names_of(mutation, &write_set)? {
            Ok(names) => names,
            Err(rejection) => return Ok(Err(rejection)),
        };
        self.write(mutation, &read_set, &write_set, &names)?;
        let is_done = write_set.completes_request();
        if let Some(request) = mutation.request.as_ref().filter(|_| is_done) {
            let subject = IdempotencyKey::stored_subject(write_set.subject);
            let tenant_since = mutation.request_tenant_since(&write_set);
            self.requests.remember(request, subject, mutation.now.time, tenant_since)?;
        }

        Ok(Ok(write_set.into_outcome()))
    }

    /// Reads what the mutation needs, and decides it. Writes nothing.
    fn decide(&mut self, mutation: &Mutation) -> Result<Result<Decided, Error>, Fault> {
        let repeated = match self.prior_request(mutation)? {
            Some(Ok(prior)) => Some(prior),
            Some(Err(rejection)) => return Ok(Err(rejection)),
            None => None,
        };
        self.heads.clear();
        let mut read_set = ReadSet::default();
        let mut needs = if repeated.is_some() { ReadRequest::default() } else { mutation.needs() };
        loop {
            self.read(mutation, needs, &mut read_set)?;
            let rules = || match repeated {
                Some(prior) => mutation.decide_again(prior, &read_set),
                None => mutation.decide(&read_set),
            };
            match decide(rules) {
                Ok(Decision::Ready(write_set)) => return Ok(Ok(Decided { read_set, write_set })),
                Ok(Decision::NeedsReads(more)) => needs = more,
                Err(rejection) => return Ok(Err(rejection)),
            }
        }
    }

    /// This request, if it took effect before.
    fn prior_request(
        &self,
        mutation: &Mutation,
    ) -> Result<Option<Result<PriorRequest, Error>>, Fault> {
        let Some(request) = &mutation.request else { return Ok(None) };
        let is_void = |time, tenant_since| mutation.request_is_void(time, tenant_since);
        self.requests.prior(request, is_void)
    }

    /// The names of the attributes of the users to be stored, including new ones, which it adds.
    fn names_of(
        &mut self,
        mutation: &Mutation,
        write_set: &WriteSet,
    ) -> Result<Result<Arc<KnownNames>, Error>, Fault> {
        let users = write_set.writes.iter().filter_map(|write| match write {
            Write::PutUser(record) => Some(&**record),
            _ => None,
        });
        self.attributes.names.with_names_of(&mutation.tenant, mutation.tenant_since, users)
    }

    /// Reads what the decision needs into the read set.
    fn read(
        &mut self,
        mutation: &Mutation,
        needs: ReadRequest,
        read_set: &mut ReadSet,
    ) -> Result<(), Fault> {
        for id in needs.users {
            read_set.add_user(id, self.read_user(id)?);
        }

        for key in needs.claims {
            let claim = self
                .identities
                .get(key.as_str().as_bytes())?
                .map(|claim| decode_claim(claim.value()));
            read_set.add_claim(key, claim.transpose()?);
        }

        for part in needs.histories {
            let head = self.heads.get(&part.user).copied().unwrap_or_default();
            read_set.add_history(part, self.journal.part(head, part)?);
        }

        if needs.tenant {
            let tenant = self
                .tenants
                .get(mutation.tenant.as_str())?
                .map(|tenant| TenantRecord::decode(tenant.value()));
            read_set.set_tenant(tenant.transpose().map_err(Fault::damaged)?);
        }

        if needs.members {
            read_set.set_members(self.has_members(mutation.tenant.as_str())?);
        }
        if let Some(id) = needs.bulk_change {
            let found = BulkTables::open(self.transaction)?.get(&mutation.tenant, &id)?;
            read_set.bulk.change = Some(found);
        }
        if let Some(id) = needs.undone_bulk_change {
            let found = BulkTables::open(self.transaction)?.get(&mutation.tenant, &id)?;
            read_set.bulk.undone = Some(found);
        }
        if needs.running_bulk_changes {
            let tables = BulkTables::open(self.transaction)?;
            read_set.bulk.running = Some(tables.count_running(&mutation.tenant)?);
        }
        if let Some(id) = needs.delivery {
            let found = DeliveryTables::open(self.transaction)?.get(&mutation.tenant, &id)?;
            read_set.deliveries.delivery = Some(found);
        }
        if needs.count_deliveries {
            let count = DeliveryTables::open(self.transaction)?.count(&mutation.tenant)?;
            read_set.deliveries.count = Some(count);
        }
        Ok(())
    }

    fn read_user(&mut self, id: LocalityId) -> Result<Option<Record>, Fault> {
        let Some(bytes) = self.users.get(id.as_bytes())? else { return Ok(None) };
        let stored = StoredUser::read(bytes.value())?;
        self.heads.insert(id, stored.head());
        let names = match stored.has_attributes() {
            true => self.attributes.names_for(&stored)?,
            false => Arc::default(),
        };
        stored.decode(&names).map(Some)
    }

    /// Whether a tenant has users.
    fn has_members(&self, name: &str) -> Result<bool, Fault> {
        let mut members = self.tenant_users.range((name, &[0; 16])..=(name, &[0xff; 16]))?;
        Ok(members.next().transpose()?.is_some())
    }

    fn write(
        &mut self,
        mutation: &Mutation,
        read_set: &ReadSet,
        write_set: &WriteSet,
        names: &KnownNames,
    ) -> Result<(), Fault> {
        let tenant = mutation.tenant.as_str();
        for write in &write_set.writes {
            match write {
                Write::PutUser(record) => {
                    let before = read_set.user(record.id());
                    let event = write_set.event(record.id());
                    let head = self.add_event(mutation, record.id(), before, event)?;
                    self.write_user(record, names, head)?;
                    self.index_user(record, before, &mutation.policies)?;
                }
                Write::RemoveUser(id) => self.remove_user(mutation, *id, read_set)?,
                Write::Claim(key, write) => {
                    self.hints.learn_write(key, write);
                    self.write_claim(key, write)?;
                }
                Write::EndOwnership(..)
                | Write::ForgetOwnership(..)
                | Write::ReplaceEvents(..)
                | Write::RemoveEvents(..)
                | Write::AddTenantEvent(..) => self.write_journal(mutation, write)?,
                Write::Notify(user, notice) => {
                    let content = Content::copied(&notice.content);
                    let limits = InboxLimits::from_policies(&mutation.policies);
                    self.inboxes.deliver(*user, notice, &content, limits)?;
                }
                Write::PutTenant(record) => {
                    self.tenants.insert(tenant, record.encode().as_slice())?;
                }
                Write::RemoveTenant => {
                    self.tenants.remove(tenant)?;
                    self.attributes.names.remove(tenant)?;
                }
                Write::PutBulkChange(_)
                | Write::PutBulkUsers(..)
                | Write::RemoveBulkChange(_)
                | Write::PutDelivery(_)
                | Write::RemoveDelivery(_) => self.write_job(tenant, write)?,
                #[cfg(feature = "test-entity")]
                Write::Count(name) => {
                    let count = self.counters.get(name.as_str())?.map_or(0, |count| count.value());
                    self.counters.insert(name.as_str(), count + 1)?;
                }
            }
        }

        Ok(())
    }

    /// Writes a bulk change or a delivery of a tenant.
    fn write_job(&self, tenant: &str, write: &Write) -> Result<(), Fault> {
        match write {
            Write::PutBulkChange(change) => BulkTables::open(self.transaction)?.put(change),
            Write::PutBulkUsers(id, users) => {
                BulkTables::open(self.transaction)?.put_users((tenant, id), users)
            }
            Write::RemoveBulkChange(id) => BulkTables::open(self.transaction)?.remove((tenant, id)),
            Write::PutDelivery(delivery) => DeliveryTables::open(self.transaction)?.put(delivery),
            Write::RemoveDelivery(id) => {
                DeliveryTables::open(self.transaction)?.remove((tenant, id))
            }
            _ => Ok(()),
        }
    }

    fn write_claim(&mut self, key: &IdentityKey, write: &ClaimWrite) -> Result<(), Fault> {
        let key = key.as_str().as_bytes();
        match write {
            ClaimWrite::Insert(claim) | ClaimWrite::Update(claim) => self.put_claim(key, claim)?,
            ClaimWrite::Delete => {
                let hold = self.identities.remove(key)?.and_then(|before| held_until(&before));
                self.remove_hold_time(key, hold)?;
            }
        }
        Ok(())
    }

    /// Removes the time of a hold that ends early: its key has a name of the former owner.
    fn remove_hold_time(&mut self, key: &[u8], hold: Option<Timestamp>) -> Result<(), Fault> {
        if let Some(until) = hold {
            self.hold_times.remove((until.as_millis(), key))?;
        }
        Ok(())
    }

    /// Replaces the claim, keeping unknown fields.
    fn put_claim(&mut self, key: &[u8], claim: &Claim) -> Result<(), Fault> {
        let before = self.identities.insert(key, encode_claim(claim).as_slice())?;
        let hold = before.as_ref().and_then(held_until);
        let extended = before.and_then(|before| encode_claim_over(claim, before.value()));
        if let Some(bytes) = extended {
            self.identities.insert(key, bytes.as_slice())?;
        }
        self.remove_hold_time(key, hold.filter(|until| claim.hold != Some(*until)))?;
        if let Some(until) = claim.hold {
            self.hold_times.insert((until.as_millis(), key), ())?;
        }
        Ok(())
    }

    /// Writes the number of the next event. Returns the names of attributes that may be cached once
    /// the transaction is committed, and the changes of events.
    pub fn finish(self) -> Result<(HashMap<String, Arc<KnownNames>>, EventChanges), Fault> {
        let changes = self.journal.finish()?;
        Ok((self.attributes.names.into_own(), changes))
    }
}

/// The end of a stored hold; none if the claim is no hold, or damaged.
fn held_until(claim: &AccessGuard<'_, &'static [u8]>) -> Option<Timestamp> {
    decode_claim(claim.value()).ok()?.hold
}

/// Applies the rules. Nothing is written yet if they panic, so that only this mutation fails.
fn decide(rules: impl FnOnce() -> Result<Decision, Error>) -> Result<Decision, Error> {
    catch_unwind(AssertUnwindSafe(rules))
        .unwrap_or_else(|_| Err(Error::Internal("the rules panicked".into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_panic_fail_their_own_mutation() {
        assert!(matches!(decide(|| panic!("as asked")), Err(Error::Internal(_))));
        assert!(matches!(decide(|| Err(Error::NotOwned)), Err(Error::NotOwned)));
    }
}
