//! The position in an export, and its token.

use locality_uuid::LocalityId;
use prost::Message;
use xxhash_rust::xxh3::Xxh3;

use crate::error::Error;
use crate::model::tenant::Tenant;
use crate::timestamp::Timestamp;
use crate::tokens::key::TokenKey;
use crate::tokens::sealed::{SealedToken, TokenPayload, foreign_page_token};
use polynym_identifier::IdentityKey;

/// The number of this kind of token, and the seed of the hash of an export.
const KIND: u64 = 0x706f_6c79_6e79_6d09;

/// A position in an export: the holds follow the users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportPosition {
    /// After this user; none before the first one.
    Users(Option<LocalityId>),
    /// After this hold; none before the first one.
    Holds(Option<IdentityKey>),
}

impl ExportPosition {
    /// The token of the position, issued at `now`.
    pub fn seal(&self, key: &TokenKey, tenant: &Tenant, now: Timestamp) -> String {
        let payload = match self {
            Self::Users(after) => PositionRecord {
                user: after.map(|id| id.as_bytes().to_vec()).unwrap_or_default(),
                ..PositionRecord::default()
            },
            Self::Holds(after) => PositionRecord {
                has_holds: true,
                hold: after.as_ref().map(|key| key.as_str().to_owned()).unwrap_or_default(),
                ..PositionRecord::default()
            },
        };
        SealedToken { query: query_hash(tenant), issued: now, payload }.seal(key)
    }

    /// Reads a token of this tenant; the empty one is that of the beginning.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the token is of another store, kind or tenant, or older than a day.
    pub fn open(
        key: &TokenKey,
        token: &str,
        tenant: &Tenant,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let opened = SealedToken::open_page(key, token, query_hash(tenant), now)?;
        let Some(PositionRecord { user, has_holds, hold }) = opened else {
            return Ok(Self::Users(None));
        };
        if has_holds {
            return Ok(Self::Holds(IdentityKey::from_stored(hold)));
        }
        let id: [u8; 16] = user.try_into().map_err(|_| foreign_page_token())?;
        Ok(Self::Users(Some(LocalityId::from(id))))
    }
}

fn query_hash(tenant: &Tenant) -> u64 {
    let mut hash = Xxh3::with_seed(KIND);
    hash.update(tenant.as_str().as_bytes());
    hash.digest()
}

#[derive(Clone, PartialEq, Message)]
struct PositionRecord {
    #[prost(bytes = "vec", tag = "3")]
    user: Vec<u8>,
    /// Whether all users come before the position.
    #[prost(bool, tag = "4")]
    has_holds: bool,
    #[prost(string, tag = "5")]
    hold: String,
}

impl TokenPayload for PositionRecord {
    const KIND: u64 = KIND;
    const OTHER_QUERY: &'static str = "belongs to another export: tenant must be the same";
}
