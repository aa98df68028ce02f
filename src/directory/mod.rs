//! Users, their identities, and the rules by which both change. The [`Store`] trait says what a
//! store must do. No RPC and no database here, but for the wire form of a user: `grpc` translates
//! to this module, `store` keeps what it decides.

pub(crate) mod claim_diff;
pub(crate) mod clock;
pub(crate) mod error;
pub(crate) mod model;
pub(crate) mod mutation;
pub(crate) mod read_set;
pub(crate) mod service;
pub(crate) mod store;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use crate::wire::{
    EncodedUser, Found, Unknown, WireError, identifier_message, identity_message, tenant_message,
    user_message, value_message,
};
pub use clock::{CLOCK_AHEAD, Clock, Now};
pub use error::{Error, Invalid, ItemError};
pub use model::attribute::Value;
pub use model::claim::{Claim, ClaimWrite};
pub use model::new_user::{NewIdentity, NewUser};
pub use model::policies::{Policies, PolicyUpdate};
pub use model::record::Record;
pub use model::reserved::{DEFAULT as RESERVED_HANDLES, parse as reserved_handles};
pub use model::tenant::Tenant;
pub use model::timestamp::Timestamp;
pub use model::user::{Identity, State, User, Verification};
pub use mutation::merge::{Conflict, ConflictPolicy, NotRestored, Preview};
pub use mutation::tenancy::{Deletion, DeletionStep, TenantRecord};
pub use mutation::update::Update;
pub use mutation::{IdempotencyKey, Mutation, MutationKind};
pub use read_set::{
    Decision, MutationReport, Outcome, ReadRequest, ReadSet, TenantWrite, WriteSet,
};
pub use service::admin::{Problem, Progress, Renormalization};
pub use service::moving::{StoredRules, move_all};
pub use service::read::Got;
pub use service::write::{DISPLACED, RawIdentity, RequestContext};
pub use store::{ANSWER_BYTES, Consistency, ExpiredUser, ItemResult, Resolved, Store};

use crate::identifier::Rules;
use clock::ClockLog;
use locality_uuid::Generator;
use service::deletion::Deletions;
use service::runs::Runs;
use service::tenant_cache::Tenants;

/// How much a caller may ask for at once, and how much a user may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Items in one batch request.
    pub batch: usize,
    /// Identities of one user.
    pub identities: usize,
    /// Attributes of one user.
    pub attributes: usize,
    /// Identifiers that are held for one user.
    pub holds: usize,
    /// Users that were merged into one.
    pub merged: usize,
    /// Bytes of one user, all in all.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch: 1_000,
            identities: 100,
            attributes: 200,
            holds: 100,
            merged: 100,
            bytes: 512 << 10,
        }
    }
}

/// The user directory: takes what callers typed, applies the rules, and has a [`Store`] keep the
/// result.
pub struct Directory {
    store: Arc<dyn Store>,
    ids: Generator,
    limits: Limits,
    tenants: Tenants,
    deletions: Deletions,
    /// Whether only admins make tenants other than the default one.
    closed: bool,
    /// The latest rules of normalisation. It knows those of this build, too.
    rules: Rules,
    clock: Clock,
    clock_log: ClockLog,
    renormalizations: Runs,
}

impl Directory {
    /// A directory over `store` that gives new users ids from `ids`.
    pub fn new(store: Arc<dyn Store>, ids: Generator, limits: Limits) -> Self {
        let (tenants, clock, clock_log) =
            (Tenants::default(), Clock::default(), ClockLog::default());
        Self {
            store,
            ids,
            limits,
            tenants,
            deletions: Deletions::default(),
            closed: false,
            rules: Rules::PRESENT,
            clock,
            clock_log,
            renormalizations: Runs::default(),
        }
    }

    /// The same directory, in which only admins make tenants other than the default one.
    #[must_use]
    pub fn closed(self) -> Self {
        Self { closed: true, ..self }
    }

    /// The same directory, which knows later rules of normalisation than those of this build.
    #[must_use]
    pub fn under(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// The same directory, with another wall clock than the machine's.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// How much a caller may ask for at once.
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether the first change in this tenant makes it.
    fn makes(&self, tenant: &Tenant) -> bool {
        !self.closed || *tenant == Tenant::DEFAULT
    }

    /// The rules by which the store's identifiers are normalised, and those to which it is moved
    /// now, if it is.
    async fn stored_rules(
        &self,
        consistency: Consistency,
    ) -> Result<(Rules, Option<Rules>), Error> {
        let StoredRules { version, next } = self.store.rules(consistency).await?;
        Ok((self.rules_of(version)?, next.map(|next| self.rules_of(next)).transpose()?))
    }

    /// The rules by which a mutation may name identifiers.
    async fn rules_to_change(&self) -> Result<Rules, Error> {
        match self.stored_rules(Consistency::Latest).await? {
            (rules, None) => Ok(rules),
            (_, Some(_)) => Err(Error::RulesChanging),
        }
    }

    fn rules_of(&self, version: u32) -> Result<Rules, Error> {
        let latest = Some(self.rules).filter(|rules| rules.version() == version);
        latest
            .or_else(|| Rules::known(version))
            .ok_or_else(|| Error::Outdated(format!("it has rules version {version}")))
    }

    /// Whether the store answers.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where it does not.
    pub async fn check(&self) -> Result<(), Error> {
        self.store.check().await
    }
}
