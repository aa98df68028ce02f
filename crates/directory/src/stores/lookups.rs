//! Look-ups of users by their identities and ids.

use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;

use crate::encoded::encoded_user::{EncodedUser, Found};
use crate::error::{Error, ItemError};
use crate::model::tenant::Tenant;
use crate::view::View;
use polynym_identifier::IdentityKey;

/// The freshness of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// The majority-acknowledged state, from the primary. May be stale during a failover.
    #[default]
    Latest,
    /// Never stale, and never shared with another look-up.
    Linearizable,
    /// From the nearest member, which may lag.
    Eventual,
}

/// The bytes of users in one answer: what a stock gRPC client accepts, 4 MiB, less room for other
/// fields.
pub const ANSWER_BYTES: usize = (4 << 20) - (64 << 10);
/// The bytes of other items in one page. They are larger in memory than in a message.
pub const LIST_BYTES: usize = 1 << 20;

/// The result for one of several keys or ids. An error concerns only this item: its record cannot
/// be read, or its part of the store does not answer.
pub type ItemResult<T> = Result<Option<T>, ItemError>;

/// The answer to [`LookUps::resolve`].
#[derive(Debug)]
pub struct Resolved {
    /// The owner of each key, in order; fewer only if these users have [`ANSWER_BYTES`].
    pub found: Vec<ItemResult<Found>>,
    /// The number of reads: one for each claim and one for each user. A store that sends reads to
    /// servers counts those; a shared read counts once, an answer from a cache not at all.
    pub reads: u32,
}

/// Look-ups of users by their identities and ids, which layers may share and cache.
#[async_trait]
pub trait LookUps: Send + Sync + 'static {
    /// The owners of `keys`, in order. An owner always lists the key: a store never returns a user
    /// who does not own it, and never returns none for a key that had an owner throughout the call.
    /// Once the users have [`ANSWER_BYTES`], the store may omit the rest, but never the first.
    /// Answers from a cache are at most `max_staleness` old; no cache answers a
    /// [`Consistency::Linearizable`] look-up.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer. An error of one key is the answer
    /// to that key.
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error>;

    /// The users of `tenant` with these ids, in order. May stop early, as [`LookUps::resolve`] may.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer. An error of one user is the answer to
    /// its id.
    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error>;
}
