//! The calls of a store, each as an operation that continues if its caller leaves.

use std::future::ready;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use tokio::task::JoinError;
use tokio::time::{timeout, timeout_at};

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::commit::MIN_COMMIT_WAIT;
use crate::database::operations::{Mongo, PROBE_TIMEOUT};
use crate::history::newest::NewestEvents;
use crate::lookup::export::Snapshot;
use crate::lookup::read_sequence::ReadSequence;
use crate::mutation::commit_gate::CommitGate;
use polynym_directory::{
    AccessPath, Claim, Consistency, CurrentRules, EncodedUser, EndedOwnerships, Error,
    EventPosition, EventsPart, ExpiredUser, ExportSnapshot, Histories, History, Hold, ItemResult,
    LookUps, Mutation, Mutations, OrderedReads, Outcome, PageLimit, Position, Reads, Record,
    Resolved, Scanned, Search, SearchedUser, Shortened, Shortening, StoreClock, StoredRules,
    Tenant, TenantEvent, TenantRecord, Tenants, Timestamp, View,
};
use polynym_identifier::IdentityKey;
use polynym_store_common::operations::{Operation, measure, measure_items};

#[async_trait]
impl LookUps for Mongo {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        _: Duration,
    ) -> Result<Resolved, Error> {
        let keys = keys.to_vec();
        let look_up = self.run_here(|collections| async move {
            collections.resolve(&keys, consistency, view).await
        });
        measure_items(Operation::Resolve, look_up, |resolved| &resolved.found).await
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        let (tenant, ids, collections) = (tenant.clone(), ids.to_vec(), self.collections());
        let look_up = self.run(async move { collections.get(&tenant, &ids, view).await });
        measure_items(Operation::Get, look_up, |users| users).await
    }
}

#[async_trait]
impl Reads for Mongo {
    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        let (tenant, ids) = (tenant.clone(), ids.to_vec());
        let read = |collections: Arc<Collections>| async move {
            collections.get_snapshot(&tenant, &ids, view).await
        };
        self.read(Operation::Get, read).await
    }

    async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        self.in_order().await?.claims(keys).await
    }

    async fn in_order(&self) -> Result<Box<dyn OrderedReads + '_>, Error> {
        Ok(Box::new(ReadSequence::begin(self).await?))
    }

    async fn check(&self) -> Result<(), Error> {
        let probes = self.probes.collections();
        let check = async {
            let check =
                self.spawn(self.abandoned(), Fault::TimedOut, async move { probes.check().await })?;
            match timeout(PROBE_TIMEOUT, check).await {
                Ok(ended) => Ok(ended.unwrap_or(Err(Fault::Panicked))?),
                Err(_) => Err(Fault::TimedOut.into()),
            }
        };
        measure(Operation::Check, check).await
    }
}

#[async_trait]
impl CurrentRules for Mongo {
    async fn rules(&self, consistency: Consistency) -> Result<StoredRules, Error> {
        let collections = self.collections();
        Ok(collections.version_guard.rules(&collections.database, consistency).await?)
    }
}

impl StoreClock for Mongo {
    fn time(&self, wall: Timestamp) -> Option<Timestamp> {
        self.heartbeat.time(wall)
    }
}

#[async_trait]
impl Mutations for Mongo {
    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        measure(Operation::Mutate, self.mutate_alone(mutation)).await
    }

    async fn mutate_all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>> {
        self.all(mutations).await
    }

    #[cfg(feature = "test-entity")]
    async fn counter(&self, name: &str) -> Result<u64, Error> {
        let name = name.to_owned();
        self.read(Operation::Get, |collections| async move { collections.counter(&name).await })
            .await
    }
}

impl Mongo {
    /// Executes a mutation in a transaction of its own.
    pub(crate) async fn mutate_alone(&self, mutation: Mutation) -> Result<Outcome, Error> {
        let deadline = self.deadline();
        let gate = Arc::new(CommitGate::new(deadline));
        let permit = self.shares.writes.take(1, deadline).await?;
        let (collections, entry) = (self.collections(), gate.clone());
        let work = async move { collections.mutate(&mutation, &entry).await };
        let work = self.clone().then_clean_up(permit, work);
        let mut task = self.spawn(self.abandoned(), Fault::CommitUnanswered, work)?;
        let ended = match timeout_at(deadline, &mut task).await {
            Ok(ended) => ended,
            Err(_) if gate.close() => return Err(Fault::TimedOut.into()),
            Err(_) => {
                let settled = timeout(MIN_COMMIT_WAIT + self.timeout, task).await;
                settled.map_err(|_| Error::from(Fault::CommitUnanswered))?
            }
        };

        ended.unwrap_or_else(|_: JoinError| Err(Error::OutcomeUnknown(Fault::Panicked.into())))
    }
}

#[async_trait]
impl Tenants for Mongo {
    async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Error> {
        let name = name.clone();
        self.read(Operation::Tenant, |collections| async move { collections.tenant(&name).await })
            .await
    }

    async fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Error> {
        let (prefix, after) = (prefix.to_owned(), after.to_owned());
        let read = |collections: Arc<Collections>| async move {
            collections.tenants(&prefix, &after, limit).await
        };
        self.read(Operation::Tenant, read).await
    }

    async fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Error> {
        let tenant = tenant.clone();
        self.read(
            Operation::Scan,
            |collections| async move { collections.keys(&tenant, limit).await },
        )
        .await
    }

    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Vec<Hold>, Error> {
        let (tenant, after) = (tenant.clone(), after.cloned());
        let read = |collections: Arc<Collections>| async move {
            collections.ownerless_holds(&tenant, after, limit).await
        };
        self.walk(Operation::Scan, read).await
    }

    async fn attribute_names(
        &self,
        tenant: &Tenant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        let (tenant, after) = (tenant.clone(), after.to_owned());
        let read = |collections: Arc<Collections>| async move {
            collections.all_names(tenant.as_str()).await
        };
        Ok(self.read(Operation::Search, read).await?.page(&after, limit))
    }
}

#[async_trait]
impl Search for Mongo {
    async fn search(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Scanned<SearchedUser, Position>, Error> {
        let (tenant, path, after) = (tenant.clone(), path.clone(), after.cloned());
        self.read(Operation::Search, |collections| async move {
            collections.check_versions()?;
            collections.search(&tenant, &path, after.as_ref(), limit, view).await
        })
        .await
    }

    async fn probe(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        limit: usize,
    ) -> Result<usize, Error> {
        let (tenant, path) = (tenant.clone(), path.clone());
        self.read(Operation::Search, |collections| async move {
            collections.check_versions()?;
            collections.probe(&tenant, &path, limit).await
        })
        .await
    }

    async fn known_words(&self, tenant: &Tenant, words: &[String]) -> Result<Vec<String>, Error> {
        let (tenant, words) = (tenant.clone(), words.to_owned());
        self.read(Operation::Search, |collections| async move {
            collections.check_versions()?;
            collections.known_words(&tenant, &words).await
        })
        .await
    }

    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Scanned<Record>, Error> {
        let tenant = tenant.clone();
        let read = |collections: Arc<Collections>| async move {
            collections.scan(&tenant, after, limit).await
        };
        self.walk(Operation::Scan, read).await
    }

    async fn snapshot(&self) -> Result<Option<Box<dyn ExportSnapshot>>, Error> {
        Ok(Snapshot::take(self).await?.map(|snapshot| Box::new(snapshot) as _))
    }
}

#[async_trait]
impl Histories for Mongo {
    async fn history(
        &self,
        tenant: &Tenant,
        user: LocalityId,
        cursor: Option<u64>,
        limit: PageLimit,
    ) -> Result<Option<History>, Error> {
        self.in_order().await?.history(tenant, user, cursor, limit).await
    }

    async fn newest_events(
        &self,
        tenant: &Tenant,
        times: Range<Timestamp>,
        before: Option<EventPosition>,
        limit: PageLimit,
    ) -> Result<EventsPart, Error> {
        let tenant = tenant.clone();
        let read = |collections: Arc<Collections>| async move {
            let (mut finds, tenant) = (collections.in_order().await?, &tenant);
            let mut newest = NewestEvents { collections: &collections, finds: &mut finds, tenant };
            newest.part(times, before, limit).await
        };
        self.read(Operation::Scan, read).await
    }

    async fn tenant_history(
        &self,
        tenant: &Tenant,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TenantEvent>, Error> {
        let tenant = tenant.clone();
        let read = |collections: Arc<Collections>| async move {
            collections.tenant_history(&tenant, before, limit).await
        };
        self.read(Operation::Scan, read).await
    }

    async fn ended_ownerships(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error> {
        self.in_order().await?.ended_ownerships(keys).await
    }

    async fn shorten_history(
        &self,
        tenant: &Tenant,
        by: Shortening,
        cursor: Option<Vec<u8>>,
    ) -> Result<Shortened, Error> {
        let tenant = tenant.clone();
        let shorten = |collections: Arc<Collections>| async move {
            collections.shorten_history(&tenant, by, cursor).await
        };
        self.walk(Operation::Scan, shorten).await
    }

    /// A purge deletes all documents of a user, by its id.
    async fn remove_strays(&self, _: Option<u64>) -> Result<Option<u64>, Error> {
        measure(Operation::Scan, ready(Ok(None))).await
    }

    fn has_expiry_turn(&self) -> bool {
        self.heartbeat.has_expiry_turn()
    }

    async fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Error> {
        let read = |collections: Arc<Collections>| async move {
            collections.expired_users(now, after, limit).await
        };
        self.read(Operation::ExpiredUsers, read).await
    }
}
