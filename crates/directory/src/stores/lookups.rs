//! Look-ups of users by their identities and ids.

use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;

use crate::encoded::encoded_user::{EncodedUser, Found};
use crate::error::{Error, ItemError};
use crate::model::tenant::Tenant;
use crate::model::view::View;
use polynym_identifier::IdentityKey;

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

/// The bytes of users that a look-up may find: more is too much for one answer.
pub const ANSWER_BYTES: usize = 4 << 20;

/// The result for one of several keys or ids. An error concerns this one alone: its record cannot
/// be read, or its part of the store does not answer.
pub type ItemResult<T> = Result<Option<T>, ItemError>;

/// The answer to [`LookUps::resolve`].
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

/// Look-ups of users by their identities and ids: what layers share and cache.
#[async_trait]
pub trait LookUps: Send + Sync + 'static {
    /// The owners of `keys`, in their order. An owner always lists the key: a store never answers
    /// with a user who does not own it, and never answers "nobody" for a key that somebody owned
    /// throughout the call. Once the users have [`ANSWER_BYTES`], it may stop, and leave out the
    /// answers to the rest of the keys; there is one to the first of them in any case. Answers from
    /// a cache are at most `max_staleness` old; no cache answers a [`Consistency::Linearizable`]
    /// look-up.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer. A fault of one key is the answer to
    /// that key.
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error>;

    /// The users of `tenant` with these ids, in their order. It may stop early, as
    /// [`LookUps::resolve`] may.
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
}
