//! The contract that every store keeps.

use std::fs::File;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use locality_uuid::LocalityId;

use super::error::{Error, ItemError};
use super::mutation::Mutation;
use super::read_set::Outcome;
use super::scanned;
use super::search::{Lead, Position, SearchedUser};
use super::stored_rules::StoredRules;
use super::user_scan::UserScan;
use crate::directory::model::claim::Claim;
use crate::directory::model::event::Event;
use crate::directory::model::ownership::EndedOwnerships;
use crate::directory::model::record::{Hold, Record};
use crate::directory::model::shortening::{Shortened, Shortening};
use crate::directory::model::tenant::Tenant;
use crate::directory::model::tenant_event::TenantEvent;
use crate::directory::model::tenant_record::TenantRecord;
use crate::directory::model::timestamp::Timestamp;
use crate::identifier::IdentityKey;
use crate::wire::encoded_user::{EncodedUser, Found};

/// The freshness of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// The state that a majority has acknowledged, from the primary; it may be stale for the length
    /// of a failover.
    #[default]
    Latest,
    /// Never stale, and never shared with another look-up.
    Linearizable,
    /// From the nearest member, which may lag behind.
    Eventual,
}

/// The part of users that a look-up returns (AIP-157).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum View {
    /// All of them.
    #[default]
    Full,
    /// All but their attributes.
    Basic,
}

/// The bytes of users that a look-up may find: more is too much for one answer.
pub const ANSWER_BYTES: usize = 4 << 20;

/// The result for one of several keys or ids. An error concerns this one alone: its record cannot
/// be read, or its part of the store does not answer.
pub type ItemResult<T> = Result<Option<T>, ItemError>;

/// The answer to [`Store::resolve`].
#[derive(Debug)]
pub struct Resolved {
    /// For each key, in order, the user who owns it; fewer only where these users have
    /// [`ANSWER_BYTES`] already.
    pub found: Vec<ItemResult<Found>>,
    /// The number of reads: one for each claim that was looked up, one for each user that was
    /// found. A store that sends reads to servers counts those, a shared one as one. An answer from
    /// a cache takes none.
    pub reads: u32,
}

/// A part of a user's history.
#[derive(Clone, Debug)]
pub struct History {
    /// The user, without its attributes.
    pub user: EncodedUser,
    /// The events, the newest first.
    pub events: Vec<Event>,
    /// The place at which the next read goes on; none at the end.
    pub next: Option<u64>,
}

/// A user that is [due](Record::expires_at).
#[derive(Clone, Debug)]
pub struct ExpiredUser {
    /// Since when.
    pub time: Timestamp,
    /// The user.
    pub id: LocalityId,
    /// Its tenant; an error where what is stored of the user cannot be read.
    pub tenant: Result<Tenant, ItemError>,
}

impl ExpiredUser {
    /// The position among expired users.
    pub const fn place(&self) -> (Timestamp, LocalityId) {
        (self.time, self.id)
    }
}

/// Keeps users, and the claims that give each identity key to one of them.
///
/// Each method is one whole operation and happens in one transaction of the store. What a caller
/// was told has happened survives any crash; what failed left nothing behind. A method whose future
/// is dropped half-way still finishes or leaves nothing behind. The conformance suite is this
/// contract as code.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The rules of normalisation that the store has, as they were not long ago: before identities
    /// are moved, each server has read that they will be. Only where look-ups may be
    /// [`Consistency::Eventual`] can that be older.
    ///
    /// # Errors
    /// [`Error::Outdated`] where this program does not support them; [`Error::Unavailable`].
    async fn rules(&self, consistency: Consistency) -> Result<StoredRules, Error>;

    /// The owners of `keys`, in their order. An owner always lists the key: a store never answers
    /// with a user who does not own it, and never answers "nobody" for a key that somebody owned
    /// throughout the call. Once the users have [`ANSWER_BYTES`], it may stop, and leave out the
    /// answers to the rest of the keys; there is one to the first of them in any case.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer. A fault of one key is the answer to
    /// that key.
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
    ) -> Result<Resolved, Error>;

    /// The same, with answers that may be as old as `max_staleness`, if a cache has them. A
    /// [`Consistency::Linearizable`] answer is never from a cache. The default has none.
    ///
    /// # Errors
    /// Those of [`Store::resolve`].
    async fn resolve_within(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        _max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        self.resolve(keys, consistency, view).await
    }

    /// The users of `tenant` with these ids, in their order. It may stop early, as
    /// [`Store::resolve`] may.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer. A fault of one user is the answer to
    /// that id.
    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error>;

    /// The same users as they all are at one moment. A user that shows to an earlier [`Store::get`]
    /// a part of a mutation shows all of it here, also where users are on several servers. It may
    /// stop early, as [`Store::resolve`] may.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer. A fault of one user is the answer to
    /// that id.
    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error>;

    /// The claims under `keys`, in their order, also those that do not resolve or whose hold has
    /// expired.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error>;

    /// The tenant with this name.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Error>;

    /// Tenants in the order of their names: those after `after` whose names start with `prefix`, at
    /// most `limit`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Error>;

    /// Keys of `tenant` under which something stands, in any order, at most `limit`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Error>;

    /// Holds of `tenant` on keys whose owner was purged, in the order of their keys: those after
    /// `after`, at most `limit`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Vec<Hold>, Error>;

    /// The events of a user, the newest first, at most `limit`: from the newest on, or from the
    /// [place](History::next) at which an earlier read stopped. None where there is no such user.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn history(
        &self,
        tenant: &Tenant,
        user: LocalityId,
        place: Option<u64>,
        limit: usize,
    ) -> Result<Option<History>, Error>;

    /// The events of a tenant itself, the newest first, at most `limit`: those whose numbers are
    /// below `before`, if that is given.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn tenant_history(
        &self,
        tenant: &Tenant,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TenantEvent>, Error>;

    /// The ended ownerships of keys, in their order.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn ended_ownerships(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error>;

    /// Has what is kept of the past of `tenant` removed as early as a shorter retention says: a
    /// part of it, from the [place](Shortened::next) on at which an earlier call stopped.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn shorten_history(
        &self,
        tenant: &Tenant,
        by: Shortening,
        place: Option<Vec<u8>>,
    ) -> Result<Shortened, Error>;

    /// Users of `tenant` in the order of their ids: those after `after`, at most `limit`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Vec<Record>, Error>;

    /// The store as it is now, for reads that go on for a while; none where the store has no such
    /// views.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn view(&self) -> Result<Option<Box<dyn UserScan>>, Error> {
        Ok(None)
    }

    /// The users of `tenant` that `lead` finds, each once and in the order of the lead: those whose
    /// [position](Lead::position) is after `after`, at most `limit`; fewer only where there are no
    /// more. A user that does not change between two calls is never missed or met twice. In
    /// [`View::Basic`] they come without attributes, unless [the order needs them](Lead::view).
    ///
    /// The default reads all users of the tenant. A store with an index answers the same.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn search(
        &self,
        tenant: &Tenant,
        lead: &Lead,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Vec<SearchedUser>, Error> {
        scanned::search(self, tenant, lead, after, limit, view).await
    }

    /// The index entries that a search by `lead` reads, at most `limit`. A user may have several
    /// entries; there are none only where the lead finds nobody.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn probe(&self, tenant: &Tenant, lead: &Lead, limit: usize) -> Result<usize, Error> {
        scanned::probe(self, tenant, lead, limit).await
    }

    /// Names of the attributes of a tenant's users, in the order of their bytes: those after
    /// `after`, at most `limit`. A name stays when no user has it any more.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn attribute_names(
        &self,
        tenant: &Tenant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, Error>;

    /// Users that are [due](Record::expires_at) at `now`, those that have waited longest first, and
    /// by id where they have waited equally long: those whose [place](ExpiredUser::place) is after
    /// `after`, at most `limit`. None only where there are no more.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Error>;

    /// Carries out a mutation: reads what [`Mutation::decide`] asks for until it has decided, and
    /// writes the write set. What was read and what is written belong to one transaction. Where the
    /// mutation carries a request that was answered within its lifetime, answers as
    /// [`Mutation::decide_again`] says and writes nothing.
    ///
    /// # Errors
    /// Those of [`Mutation::decide`]; [`Error::RequestIdReused`]; [`Error::Unavailable`] where
    /// nothing was written; [`Error::OutcomeUnknown`] where that cannot be told.
    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error>;

    /// Carries out mutations, each as [`Store::mutate`] does, and answers in their order. The
    /// default carries them out one by one, at once. A store in which transactions are dear has
    /// many mutations share one.
    async fn mutate_all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>> {
        join_all(mutations.into_iter().map(|mutation| self.mutate(mutation))).await
    }

    /// The present time by another clock than this machine's wall clock, whose time is `wall`; none
    /// while it is not known. A store that has no such clock of its own learns the time from
    /// `wall`, and goes on from there by the monotonic clock.
    fn time(&self, wall: Timestamp) -> Option<Timestamp>;

    /// Whether the store can answer reads and accept mutations now.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where it cannot.
    async fn check(&self) -> Result<(), Error>;

    /// The value of a counter.
    #[cfg(feature = "test-entity")]
    async fn counter(&self, _name: &str) -> Result<u64, Error> {
        Err(Error::Internal("the store has no counters".into()))
    }
}

/// The abilities of a store that is one file.
pub trait FileStore: Send + Sync + 'static {
    /// Copies the store as it is now to a file that opens as a store, and that is removed with its
    /// last handle. Blocks on the disk.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store cannot be read, or the copy not be written.
    fn copy(&self) -> Result<File, Error>;
}
