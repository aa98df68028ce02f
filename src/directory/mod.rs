//! Users, their identities, and the rules by which both change. The [`Store`] trait says what a store must do.
//! No RPC and no database here, but for the wire form of a user: `grpc` translates to this module, `store` keeps what it decides.

mod attribute;
mod change;
mod claim;
mod draft;
mod error;
mod fingerprint;
mod mutation;
mod read;
mod record;
mod settle;
mod size;
mod store;
mod tenant;
mod timestamp;
mod update;
mod user;
mod view;
mod wire;
pub(crate) mod wire_fields;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use attribute::Value;
pub use claim::{Claim, ClaimWrite};
pub use draft::{Draft, DraftIdentity};
pub use error::{Error, Invalid};
pub use mutation::{Change, Mutation, Request};
pub use record::Record;
pub use store::{ANSWER_BYTES, Consistency, Resolved, Store};
pub use tenant::Tenant;
pub use timestamp::Timestamp;
pub use update::Update;
pub use user::{Identity, User, Verification};
pub use view::{Decision, Effects, Needs, Outcome, View};
pub use wire::{Found, WireError, WireUser, identifier_message, user_message};
pub use write::{Call, RawIdentity};

use crate::locality::Generator;

/// How much a caller may ask for at once, and how much a user may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Items in one batch request.
    pub batch: usize,
    /// Identities of one user.
    pub identities: usize,
    /// Attributes of one user.
    pub attributes: usize,
    /// Bytes of one user, all in all.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { batch: 1_000, identities: 100, attributes: 200, bytes: 512 << 10 }
    }
}

/// The user directory: takes what callers typed, applies the rules, and has a [`Store`] keep the result.
pub struct Directory {
    store: Arc<dyn Store>,
    ids: Generator,
    limits: Limits,
}

impl Directory {
    /// A directory over `store` that gives new users ids from `ids`.
    pub fn new(store: Arc<dyn Store>, ids: Generator, limits: Limits) -> Self {
        Self { store, ids, limits }
    }

    /// Whether the store answers.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where it does not.
    pub async fn check(&self) -> Result<(), Error> {
        self.store.check().await
    }
}
