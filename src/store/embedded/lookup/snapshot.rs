//! Point reads on a snapshot: the state after the last group of mutations that is safe on disk.

use std::ops::Bound;
use std::sync::Arc;

use locality_uuid::LocalityId;
use redb::{Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, TableError};

use super::error::Fault;
use super::history::JournalSnapshot;
use super::names::read_all;
use super::open::Caches;
use super::schema::{
    ATTRIBUTE_NAMES, ATTRIBUTES, EXPIRES_AT, IDENTITIES, StoredUser, TENANT_USERS, TENANTS, USERS,
    decode_claim, resolves_to,
};
use super::search::AttributesTable;
use crate::directory::error::ItemError;
use crate::directory::model::claim::Claim;
use crate::directory::model::record::{Hold, Record};
use crate::directory::model::tenant::Tenant;
use crate::directory::model::tenant_record::TenantRecord;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::store::{ExpiredUser, View};
use crate::identifier::IdentityKey;
use crate::store::attribute_names::{KnownNames, Token};
use crate::wire::encoded_user::{EncodedUser, Found};
use crate::wire::exported_user::ExportedUser;

/// The users and claims at one moment. Opening the tables once a commit instead of once a look-up
/// saves a look-up most of its time.
pub struct Snapshot {
    /// For copies of all tables.
    pub(super) transaction: ReadTransaction,
    pub(super) users: ReadOnlyTable<&'static [u8; 16], &'static [u8]>,
    pub(super) identities: ReadOnlyTable<&'static [u8], &'static [u8]>,
    tenants: ReadOnlyTable<&'static str, &'static [u8]>,
    /// None in a store of a schema that does not have it.
    tenant_users: Option<ReadOnlyTable<(&'static str, &'static [u8; 16]), ()>>,
    /// See [`Snapshot::tenant_users`].
    attribute_names: Option<NamesSnapshot>,
    /// See [`Snapshot::tenant_users`].
    pub(super) attributes: Option<AttributesTable>,
    expiries: ReadOnlyTable<(i64, &'static [u8; 16]), ()>,
    /// See [`Snapshot::tenant_users`].
    pub(super) journal: Option<JournalSnapshot>,
    caches: Caches,
    #[cfg(feature = "test-entity")]
    counters: ReadOnlyTable<&'static str, u64>,
}

/// The table [`ATTRIBUTE_NAMES`] on a snapshot.
type NamesSnapshot = ReadOnlyTable<(&'static str, Token), (i64, &'static str)>;

/// A part of all users.
pub struct Scanned<T> {
    /// Those of one tenant.
    pub users: Vec<T>,
    /// The last user, from which the next scan goes on; none at the end.
    pub last: Option<LocalityId>,
}

/// Separates the fault of one record from a fault of the whole file.
pub fn own<T>(outcome: Result<T, Fault>) -> Result<Result<T, ItemError>, Fault> {
    match outcome {
        Err(fault @ Fault::Damaged(_)) => Ok(Err(fault.into())),
        outcome => outcome.map(Ok),
    }
}

impl Snapshot {
    /// The present state.
    pub fn new(database: &Database, caches: &Caches) -> Result<Self, Fault> {
        let transaction = database.begin_read()?;
        let users = transaction.open_table(USERS)?;
        let identities = transaction.open_table(IDENTITIES)?;
        let (tenants, expiries) =
            (transaction.open_table(TENANTS)?, transaction.open_table(EXPIRES_AT)?);
        let tenant_users = optional(transaction.open_table(TENANT_USERS))?;
        let attribute_names = optional(transaction.open_table(ATTRIBUTE_NAMES))?;
        let attributes = optional(transaction.open_table(ATTRIBUTES))?;
        let journal = JournalSnapshot::open(&transaction)?;

        Ok(Self {
            users,
            identities,
            tenants,
            tenant_users,
            attribute_names,
            attributes,
            expiries,
            journal,
            caches: caches.clone(),
            #[cfg(feature = "test-entity")]
            counters: transaction.open_table(super::schema::META)?,
            transaction,
        })
    }

    /// The user who owns `key`.
    pub fn resolve(&self, key: &IdentityKey, view: View) -> Result<Option<Found>, Fault> {
        if let Some(guess) = self.caches.hints.guess(key)
            // An unreadable owner fails again below.
            && let Ok(Some(user)) = self.user(guess, view)
            && let Some(found) = Found::new(user, key)
        {
            return Ok(Some(found));
        }
        let claim = self.identities.get(key.as_str().as_bytes())?;
        let owner = claim.map(|claim| resolves_to(claim.value())).transpose()?.flatten();
        let Some(owner) = owner else {
            return Ok(None);
        };

        match self.user(owner, view)?.and_then(|user| Found::new(user, key)) {
            None => Err(Fault::damaged("a claim of a user who does not list it")),
            found => {
                self.caches.hints.learn(key, owner);
                Ok(found)
            }
        }
    }

    /// The user of `tenant` with this id.
    pub fn get(
        &self,
        tenant: &Tenant,
        id: LocalityId,
        view: View,
    ) -> Result<Option<EncodedUser>, Fault> {
        Ok(self.user(id, view)?.filter(|user| user.tenant() == tenant.as_str().as_bytes()))
    }

    /// The claim under `key`.
    pub fn claim(&self, key: &IdentityKey) -> Result<Option<Claim>, Fault> {
        self.identities
            .get(key.as_str().as_bytes())?
            .map(|claim| decode_claim(claim.value()))
            .transpose()
    }

    /// The tenant with this name.
    pub fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Fault> {
        let tenant =
            self.tenants.get(name.as_str())?.map(|tenant| TenantRecord::decode(tenant.value()));
        tenant.transpose().map_err(Fault::damaged)
    }

    #[cfg(feature = "test-entity")]
    pub fn counter(&self, name: &str) -> Result<u64, Fault> {
        Ok(self.counters.get(name)?.map_or(0, |count| count.value()))
    }

    /// The tenants whose names start with `prefix` and come after `after`.
    pub fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Fault> {
        let mut found = Vec::new();
        for entry in self.tenants.range(prefix.max(after)..)? {
            let (name, tenant) = entry?;
            if found.len() == limit || !name.value().starts_with(prefix) {
                break;
            }
            if name.value() > after {
                found.push(TenantRecord::decode(tenant.value()).map_err(Fault::damaged)?);
            }
        }
        Ok(found)
    }

    /// Keys of a tenant under which something stands.
    pub fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Fault> {
        let [first, end] = IdentityKey::range(tenant.as_str());
        let mut keys = Vec::new();
        for entry in self.identities.range(first.as_bytes()..end.as_bytes())?.take(limit) {
            let key = String::from_utf8(entry?.0.value().to_vec()).map_err(Fault::damaged)?;
            keys.extend(IdentityKey::from_stored(key));
        }
        Ok(keys)
    }

    /// Holds of a tenant on keys whose owner was purged, in the order of their keys. Goes through
    /// all claims of the tenant.
    pub fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Vec<Hold>, Fault> {
        let [first, end] = IdentityKey::range(tenant.as_str());
        let start = match after {
            Some(after) => Bound::Excluded(after.as_str().as_bytes()),
            None => Bound::Included(first.as_bytes()),
        };
        let mut holds = Vec::new();
        for entry in self.identities.range::<&[u8]>((start, Bound::Excluded(end.as_bytes())))? {
            let (key, claim) = entry?;
            let claim = decode_claim(claim.value())?;
            if claim.owner.is_none() {
                let key = String::from_utf8(key.value().to_vec()).map_err(Fault::damaged)?;
                let key = IdentityKey::from_stored(key);
                holds.extend(key.and_then(|key| Hold::of(&key, &claim)));
            }
            if holds.len() >= limit {
                break;
            }
        }
        Ok(holds)
    }

    /// The next `count` users of `tenant` after `after` as `read` reads them, and the last one
    /// looked at, if there are more.
    pub fn scan<T>(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        count: usize,
        read: impl Fn(&Self, &StoredUser<'_>) -> Result<T, Fault>,
    ) -> Result<Scanned<T>, Fault> {
        let Some(listed) = &self.tenant_users else {
            return self.scan_all(tenant, after, count, read);
        };
        let (name, last) = (tenant.as_str(), [0xff; 16]);
        let after = after.map(|id| *id.as_bytes());
        let start = after
            .as_ref()
            .map_or(Bound::Included((name, &[0; 16])), |id| Bound::Excluded((name, id)));
        let mut scanned = Scanned { users: Vec::new(), last: None };

        for (n, entry) in
            listed.range((start, Bound::Included((name, &last))))?.take(count).enumerate()
        {
            let entry = entry?.0;
            let id = entry.value().1;
            let record = self
                .users
                .get(id)?
                .ok_or_else(|| Fault::damaged("a tenant's user who is not there"))?;
            scanned.users.push(read(self, &StoredUser::read(record.value())?)?);
            scanned.last = (n + 1 == count).then(|| LocalityId::from(*id));
        }

        Ok(scanned)
    }

    /// The same where there is no list of a tenant's users: looks at `count` users of all tenants.
    fn scan_all<T>(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        count: usize,
        read: impl Fn(&Self, &StoredUser<'_>) -> Result<T, Fault>,
    ) -> Result<Scanned<T>, Fault> {
        let start = after.map_or(Bound::Unbounded, |id| Bound::Excluded(*id.as_bytes()));
        let range = (start.as_ref(), Bound::<&[u8; 16]>::Unbounded);
        let mut scanned = Scanned { users: Vec::new(), last: None };
        for (n, entry) in self.users.range::<&[u8; 16]>(range)?.take(count).enumerate() {
            let (id, record) = entry?;
            let stored = StoredUser::read(record.value())?;
            if stored.tenant()? == tenant.as_str() {
                scanned.users.push(read(self, &stored)?);
            }
            scanned.last = (n + 1 == count).then(|| LocalityId::from(*id.value()));
        }
        Ok(scanned)
    }

    /// Users whose expiry is due at `now`, in the order of their places.
    pub fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Fault> {
        let mut found = Vec::new();
        let after = after.map(|(time, id)| (time.as_millis(), *id.as_bytes()));
        let start =
            after.as_ref().map_or(Bound::Unbounded, |(time, id)| Bound::Excluded((*time, id)));
        let end = (now.as_millis(), &[0xff; 16]);
        if after.is_some_and(|(time, _)| time > now.as_millis()) {
            return Ok(found);
        }

        for entry in
            self.expiries.range::<(i64, &[u8; 16])>((start, Bound::Included(end)))?.take(limit)
        {
            let entry = entry?;
            let (time, id) = entry.0.value();
            let (time, id) = (Timestamp::from_millis(time), LocalityId::from(*id));
            found.push(ExpiredUser { time, id, tenant: own(self.tenant_of(id))? });
        }

        Ok(found)
    }

    fn tenant_of(&self, id: LocalityId) -> Result<Tenant, Fault> {
        let user = self
            .users
            .get(id.as_bytes())?
            .ok_or_else(|| Fault::damaged("a user who is due and not there"))?;
        Tenant::parse(StoredUser::read(user.value())?.tenant()?).map_err(Fault::damaged)
    }

    fn user(&self, id: LocalityId, view: View) -> Result<Option<EncodedUser>, Fault> {
        let Some(bytes) = self.users.get(id.as_bytes())? else { return Ok(None) };
        let stored = StoredUser::read(bytes.value())?;
        Ok(Some(match view {
            View::Basic => stored.basic(),
            View::Full if stored.has_attributes() => stored.full(&*self.names_for(&stored)?),
            View::Full => stored.full(&KnownNames::default()),
        }))
    }

    pub(super) fn decode(&self, stored: &StoredUser<'_>) -> Result<Record, Fault> {
        stored.decode(&*self.names_for(stored)?)
    }

    /// The user as an export has it.
    pub fn export(&self, stored: &StoredUser<'_>) -> Result<ExportedUser, Fault> {
        stored.export(&*self.names_for(stored)?)
    }

    /// The names of a stored user's attributes.
    pub(super) fn names_for(&self, stored: &StoredUser<'_>) -> Result<Arc<KnownNames>, Fault> {
        let tenant = stored.tenant()?;
        stored.names(self.caches.names.known(tenant), || {
            let all = Arc::new(self.all_names(tenant)?);
            self.caches.names.learn(tenant, all.clone());
            Ok(all)
        })
    }

    /// Whether there is an index of attributes.
    pub const fn has_attributes(&self) -> bool {
        self.attributes.is_some()
    }

    /// The number of a tenant's users, at most `limit`.
    pub fn count_users(&self, tenant: &Tenant, limit: usize) -> Result<usize, Fault> {
        let Some(listed) = &self.tenant_users else { return Ok(limit) };
        let all = (tenant.as_str(), &[0; 16])..=(tenant.as_str(), &[0xff; 16]);
        Ok(listed.range(all)?.take(limit).count())
    }

    /// The token of an attribute's name; none where the tenant has no such name.
    pub fn token(&self, tenant: &str, name: &str) -> Result<Option<Token>, Fault> {
        match self.caches.names.known(tenant).token(name) {
            Some(token) => Ok(Some(token)),
            None => Ok(self.all_names(tenant)?.token(name)),
        }
    }

    /// All names of a tenant's attributes.
    pub fn all_names(&self, tenant: &str) -> Result<KnownNames, Fault> {
        match &self.attribute_names {
            Some(table) => read_all(table, tenant),
            None => Ok(KnownNames::default()),
        }
    }
}

/// A table that stores of older schemas do not have.
pub fn optional<T>(table: Result<T, TableError>) -> Result<Option<T>, Fault> {
    match table {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
