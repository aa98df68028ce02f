//! Point reads on a snapshot: the state after the last durable group of mutations.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use locality_uuid::LocalityId;
use redb::{Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, TableError};

use crate::error::Fault;
use crate::schema::claim::{decode_claim, resolves_to};
#[cfg(feature = "test-entity")]
use crate::schema::tables::META;
use crate::schema::tables::{
    ATTRIBUTE_NAMES, ATTRIBUTES, ENDED, EVENT_ORDER, EVENTS, EXPIRES_AT, IDENTITIES, NEXT_EVENT,
    TENANT_EVENTS, TENANT_USERS, TENANTS, USERS,
};
use crate::schema::user::StoredUser;
use polynym_directory::{
    Claim, EncodedUser, ExportedUser, Found, ItemError, Record, Tenant, TenantRecord, Timestamp,
    View,
};
use polynym_identifier::IdentityKey;
use polynym_store_common::attribute_names::{AttributeId, AttributeNames, KnownNames};
use polynym_store_common::owner_hints::OwnerHints;
use polynym_store_common::unreadable::{self, Kind};

/// Owner hints and attribute names, for as long as the store is open.
#[derive(Clone)]
pub struct Caches {
    /// The owner hints.
    pub hints: Arc<OwnerHints>,
    /// The names of attributes.
    pub names: Arc<AttributeNames>,
}

impl Caches {
    /// Empty caches, with `hint_bytes` bytes for owner hints.
    pub fn new(hint_bytes: usize) -> Self {
        Self { hints: OwnerHints::new(hint_bytes), names: Arc::default() }
    }
}

/// The store at one commit. Its tables are opened once for each commit, which would take most of
/// the time of a look-up.
pub struct Snapshot {
    /// For copies of all tables.
    pub transaction: ReadTransaction,
    pub users: ReadOnlyTable<&'static [u8; 16], &'static [u8]>,
    pub identities: ReadOnlyTable<&'static [u8], &'static [u8]>,
    pub tenants: ReadOnlyTable<&'static str, &'static [u8]>,
    pub tenant_users: ReadOnlyTable<(&'static str, &'static [u8; 16]), ()>,
    attribute_names: NamesSnapshot,
    pub attributes: AttributesTable,
    pub expiries: ReadOnlyTable<(i64, &'static [u8; 16]), ()>,
    pub journal: JournalSnapshot,
    caches: Caches,
    #[cfg(feature = "test-entity")]
    counters: ReadOnlyTable<&'static str, u64>,
}

/// The snapshot that reads use, while the database is open.
pub type Published = ArcSwapOption<Snapshot>;

/// The table [`ATTRIBUTES`] on a snapshot.
pub type AttributesTable = ReadOnlyTable<&'static [u8], ()>;

/// The table [`ATTRIBUTE_NAMES`] on a snapshot.
type NamesSnapshot = ReadOnlyTable<(&'static str, AttributeId), (i64, &'static str)>;

/// The tables of the journal.
pub struct JournalSnapshot {
    pub events: ReadOnlyTable<u64, &'static [u8]>,
    pub order: ReadOnlyTable<(&'static str, i64, u64), ()>,
    pub next_event: ReadOnlyTable<(), u64>,
    pub ended: ReadOnlyTable<&'static [u8], &'static [u8]>,
    /// None until a tenant has an event of its own.
    pub tenant_events: Option<ReadOnlyTable<(&'static str, u64), &'static [u8]>>,
}

impl JournalSnapshot {
    pub fn open(transaction: &ReadTransaction) -> Result<Self, Fault> {
        Ok(Self {
            events: transaction.open_table(EVENTS)?,
            order: transaction.open_table(EVENT_ORDER)?,
            next_event: transaction.open_table(NEXT_EVENT)?,
            ended: transaction.open_table(ENDED)?,
            tenant_events: optional(transaction.open_table(TENANT_EVENTS))?,
        })
    }
}

/// Separates an error of one record from an error of the whole file.
pub fn item_result<T>(outcome: Result<T, Fault>) -> Result<Result<T, ItemError>, Fault> {
    match outcome {
        Err(fault @ Fault::Damaged(_)) => Ok(Err(fault.into())),
        outcome => outcome.map(Ok),
    }
}

/// A record among many; `None` if it cannot be read.
pub fn readable<T>(kind: Kind, outcome: Result<T, Fault>) -> Result<Option<T>, Fault> {
    Ok(unreadable::readable(kind, item_result(outcome)?))
}

impl Snapshot {
    /// The last commit.
    pub fn new(database: &Database, caches: &Caches) -> Result<Self, Fault> {
        let transaction = database.begin_read()?;
        let users = transaction.open_table(USERS)?;
        let identities = transaction.open_table(IDENTITIES)?;
        let (tenants, expiries) =
            (transaction.open_table(TENANTS)?, transaction.open_table(EXPIRES_AT)?);
        let tenant_users = transaction.open_table(TENANT_USERS)?;
        let attribute_names = transaction.open_table(ATTRIBUTE_NAMES)?;
        let attributes = transaction.open_table(ATTRIBUTES)?;
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
            counters: transaction.open_table(META)?,
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
            None => Err(Fault::damaged("a claim of a user who does not list its identity")),
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

    /// The claim on `key`.
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

    fn user(&self, id: LocalityId, view: View) -> Result<Option<EncodedUser>, Fault> {
        let Some(bytes) = self.users.get(id.as_bytes())? else { return Ok(None) };
        let stored = StoredUser::read(bytes.value())?;
        Ok(Some(match view {
            View::Basic => stored.basic(),
            View::Full if stored.has_attributes() => stored.full(&*self.names_for(&stored)?),
            View::Full => stored.full(&KnownNames::default()),
        }))
    }

    pub fn decode(&self, stored: &StoredUser<'_>) -> Result<Record, Fault> {
        stored.decode(&*self.names_for(stored)?)
    }

    /// The user as exported.
    pub fn export(&self, stored: &StoredUser<'_>) -> Result<ExportedUser, Fault> {
        stored.export(&*self.names_for(stored)?)
    }

    /// The names of a stored user's attributes.
    pub fn names_for(&self, stored: &StoredUser<'_>) -> Result<Arc<KnownNames>, Fault> {
        let tenant = stored.tenant()?;
        stored.names(self.caches.names.known(tenant), || {
            let all = Arc::new(self.all_names(tenant)?);
            self.caches.names.learn(tenant, all.clone());
            Ok(all)
        })
    }

    /// The number of a tenant's users, at most `limit`.
    pub fn count_users(&self, tenant: &Tenant, limit: usize) -> Result<usize, Fault> {
        let all = (tenant.as_str(), &[0; 16])..=(tenant.as_str(), &[0xff; 16]);
        Ok(self.tenant_users.range(all)?.take(limit).count())
    }

    /// The id of an attribute's name. None if the tenant has no such name.
    pub fn attribute_id(&self, tenant: &str, name: &str) -> Result<Option<AttributeId>, Fault> {
        match self.caches.names.known(tenant).id(name) {
            Some(id) => Ok(Some(id)),
            None => Ok(self.all_names(tenant)?.id(name)),
        }
    }

    /// All names of a tenant's attributes.
    pub fn all_names(&self, tenant: &str) -> Result<KnownNames, Fault> {
        read_names(&self.attribute_names, tenant)
    }
}

/// A table that exists once something was written to it.
pub fn optional<T>(table: Result<T, TableError>) -> Result<Option<T>, Fault> {
    match table {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// All names of a tenant.
pub fn read_names(
    table: &impl ReadableTable<(&'static str, AttributeId), (i64, &'static str)>,
    tenant: &str,
) -> Result<KnownNames, Fault> {
    let mut names = KnownNames::default();
    for row in table.range((tenant, 0)..=(tenant, AttributeId::MAX))? {
        let (key, row) = row?;
        let (id, (since, name)) = (key.value().1, row.value());
        // The ids up to this one belonged to a deleted tenant of this name.
        if name.is_empty() {
            names = KnownNames::new(Timestamp::from_millis(since), id + 1);
            continue;
        }
        if names.is_empty() {
            names = KnownNames::new(Timestamp::from_millis(since), id);
        }
        names.skip_to(id);
        names.push(name);
    }
    Ok(names)
}
