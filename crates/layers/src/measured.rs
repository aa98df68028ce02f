//! The count and the time of a store's operations.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use locality_uuid::LocalityId;
use metrics::{Counter, Histogram, counter, histogram};

use polynym_directory::{
    AccessPath, Backend, Claim, Consistency, EncodedUser, EndedOwnerships, Error, ExpiredUser,
    ExportSnapshot, Histories, History, Hold, ItemError, ItemResult, LookUps, Mutation, Mutations,
    OrderedReads, Outcome, PageLimit, Position, Reads, Record, Resolved, Scanned, Search,
    SearchedUser, Shortened, Shortening, Tenant, TenantEvent, TenantRecord, Tenants, Timestamp,
    View,
};
use polynym_identifier::IdentityKey;

/// The counter of operations: its name, and what it counts.
pub const OPERATIONS: (&str, &str) = (
    "polynym_store_operations_total",
    "Operations of the store, by kind and outcome: ok, refused, unavailable or unknown",
);
/// The histogram of their time.
pub const SECONDS: (&str, &str) =
    ("polynym_store_operation_seconds", "Time of the store's operations, by kind");

/// A capability of a store whose operations are counted and timed.
pub struct Measured<T: ?Sized>(pub Arc<T>);

/// Measures the operations of a store. Its rules and its clock are answered from memory.
pub fn measured(backend: Backend) -> Backend {
    Backend {
        lookups: Arc::new(Measured(backend.lookups)),
        reads: Arc::new(Measured(backend.reads)),
        mutations: Arc::new(Measured(backend.mutations)),
        tenants: Arc::new(Measured(backend.tenants)),
        search: Arc::new(Measured(backend.search)),
        histories: Arc::new(Measured(backend.histories)),
        ..backend
    }
}

/// The metrics of one kind of operation.
struct Kind {
    name: &'static str,
    seconds: OnceLock<Histogram>,
    outcomes: [OnceLock<Counter>; 4],
}

const OUTCOMES: [&str; 4] = ["ok", "refused", "unavailable", "unknown"];
/// The index of the outcome of an operation that the store does not answer.
const UNAVAILABLE: usize = 2;

impl Kind {
    const fn new(name: &'static str) -> Self {
        Self { name, seconds: OnceLock::new(), outcomes: [const { OnceLock::new() }; 4] }
    }

    async fn measure<T>(
        &self,
        operation: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let begun = Instant::now();
        let outcome = operation.await;
        self.count(begun, &outcome);
        outcome
    }

    /// Measures a look-up of several items: it is unavailable if one of them is.
    async fn measure_items<T, F>(
        &self,
        look_up: impl Future<Output = Result<T, Error>>,
        items: impl FnOnce(&T) -> &[ItemResult<F>],
    ) -> Result<T, Error> {
        let begun = Instant::now();
        let outcome = look_up.await;
        let is_away = |item: &ItemResult<F>| matches!(item, Err(ItemError::Unavailable(_)));
        match &outcome {
            Ok(found) if items(found).iter().any(is_away) => self.record(begun, UNAVAILABLE),
            _ => self.count(begun, &outcome),
        }
        outcome
    }

    /// Counts one operation that began then.
    fn count<T>(&self, begun: Instant, outcome: &Result<T, Error>) {
        let outcome = match outcome {
            Ok(_) => 0,
            Err(Error::OutcomeUnknown(_)) => 3,
            Err(Error::Unavailable(_) | Error::Internal(_) | Error::Overloaded) => UNAVAILABLE,
            Err(_) => 1,
        };
        self.record(begun, outcome);
    }

    /// Counts one operation that began then, with the index of its outcome.
    fn record(&self, begun: Instant, n: usize) {
        let seconds = || histogram!(SECONDS.0, "operation" => self.name);
        self.seconds.get_or_init(seconds).record(begun.elapsed().as_secs_f64());
        let count = || counter!(OPERATIONS.0, "operation" => self.name, "outcome" => OUTCOMES[n]);
        self.outcomes[n].get_or_init(count).increment(1);
    }
}

static RESOLVE: Kind = Kind::new("resolve");
static GET: Kind = Kind::new("get");
static CLAIMS: Kind = Kind::new("claims");
static TENANT: Kind = Kind::new("tenant");
static SCAN: Kind = Kind::new("scan");
static SEARCH: Kind = Kind::new("search");
static EXPIRED: Kind = Kind::new("expired_users");
static MUTATE: Kind = Kind::new("mutate");
static CHECK: Kind = Kind::new("check");

#[async_trait]
impl LookUps for Measured<dyn LookUps> {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        let look_up = self.0.resolve(keys, consistency, view, max_staleness);
        RESOLVE.measure_items(look_up, |resolved| &resolved.found).await
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        GET.measure_items(self.0.get(tenant, ids, view), |users| users).await
    }
}

#[async_trait]
impl Reads for Measured<dyn Reads> {
    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        GET.measure(self.0.get_snapshot(tenant, ids, view)).await
    }

    async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        CLAIMS.measure(self.0.claims(keys)).await
    }

    async fn in_order(&self) -> Result<Box<dyn OrderedReads + '_>, Error> {
        Ok(Box::new(MeasuredReads(self.0.in_order().await?)))
    }

    async fn check(&self) -> Result<(), Error> {
        CHECK.measure(self.0.check()).await
    }
}

struct MeasuredReads<'r>(Box<dyn OrderedReads + 'r>);

#[async_trait]
impl OrderedReads for MeasuredReads<'_> {
    async fn claims(&mut self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        CLAIMS.measure(self.0.claims(keys)).await
    }

    async fn ended_ownerships(
        &mut self,
        keys: &[IdentityKey],
    ) -> Result<Vec<EndedOwnerships>, Error> {
        SCAN.measure(self.0.ended_ownerships(keys)).await
    }

    async fn get(
        &mut self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        GET.measure(self.0.get(tenant, ids, view)).await
    }

    async fn history(
        &mut self,
        tenant: &Tenant,
        user: LocalityId,
        cursor: Option<u64>,
        limit: PageLimit,
    ) -> Result<Option<History>, Error> {
        SCAN.measure(self.0.history(tenant, user, cursor, limit)).await
    }
}

#[async_trait]
impl Mutations for Measured<dyn Mutations> {
    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        MUTATE.measure(self.0.mutate(mutation)).await
    }

    async fn mutate_all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>> {
        let begun = Instant::now();
        let outcomes = self.0.mutate_all(mutations).await;
        outcomes.iter().for_each(|outcome| MUTATE.count(begun, outcome));
        outcomes
    }

    #[cfg(feature = "test-entity")]
    async fn counter(&self, name: &str) -> Result<u64, Error> {
        GET.measure(self.0.counter(name)).await
    }
}

#[async_trait]
impl Tenants for Measured<dyn Tenants> {
    async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Error> {
        TENANT.measure(self.0.tenant(name)).await
    }

    async fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Error> {
        TENANT.measure(self.0.tenants(prefix, after, limit)).await
    }

    async fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Error> {
        SCAN.measure(self.0.keys(tenant, limit)).await
    }

    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Vec<Hold>, Error> {
        SCAN.measure(self.0.ownerless_holds(tenant, after, limit)).await
    }

    async fn attribute_names(
        &self,
        tenant: &Tenant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        SEARCH.measure(self.0.attribute_names(tenant, after, limit)).await
    }
}

#[async_trait]
impl Search for Measured<dyn Search> {
    async fn search(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Scanned<SearchedUser, Position>, Error> {
        SEARCH.measure(self.0.search(tenant, path, after, limit, view)).await
    }

    async fn probe(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        limit: usize,
    ) -> Result<usize, Error> {
        SEARCH.measure(self.0.probe(tenant, path, limit)).await
    }

    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Scanned<Record>, Error> {
        SCAN.measure(self.0.scan(tenant, after, limit)).await
    }

    async fn snapshot(&self) -> Result<Option<Box<dyn ExportSnapshot>>, Error> {
        SCAN.measure(self.0.snapshot()).await
    }
}

#[async_trait]
impl Histories for Measured<dyn Histories> {
    async fn history(
        &self,
        tenant: &Tenant,
        user: LocalityId,
        cursor: Option<u64>,
        limit: PageLimit,
    ) -> Result<Option<History>, Error> {
        SCAN.measure(self.0.history(tenant, user, cursor, limit)).await
    }

    async fn tenant_history(
        &self,
        tenant: &Tenant,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TenantEvent>, Error> {
        SCAN.measure(self.0.tenant_history(tenant, before, limit)).await
    }

    async fn ended_ownerships(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error> {
        SCAN.measure(self.0.ended_ownerships(keys)).await
    }

    async fn shorten_history(
        &self,
        tenant: &Tenant,
        by: Shortening,
        cursor: Option<Vec<u8>>,
    ) -> Result<Shortened, Error> {
        SCAN.measure(self.0.shorten_history(tenant, by, cursor)).await
    }

    fn has_expiry_turn(&self) -> bool {
        self.0.has_expiry_turn()
    }

    async fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Error> {
        EXPIRED.measure(self.0.expired_users(now, after, limit)).await
    }

    async fn remove_strays(&self, after: Option<u64>) -> Result<Option<u64>, Error> {
        SCAN.measure(self.0.remove_strays(after)).await
    }
}
