//! The contract of a store, as traits. Each method is one operation in one transaction: an
//! acknowledged mutation survives any crash, a failed one leaves nothing behind, and a call whose
//! future is dropped either finishes or leaves nothing behind. The conformance suite tests this
//! contract.

mod bulk_changes;
mod clock;
mod deliveries;
mod export_snapshot;
mod feed;
mod file;
mod histories;
mod inboxes;
mod lookups;
mod mutations;
mod page_limit;
mod reads;
mod rules;
mod scanned;
mod search;
mod stored_rules;
mod tenants;
mod usage;

use std::sync::Arc;

pub use crate::model::notice::InboxEntry;
use crate::tokens::key::TokenKey;
pub use crate::view::View;
pub use bulk_changes::{BulkChangeKey, BulkChanges, DueBulkChange};
pub use clock::StoreClock;
pub use deliveries::{Deliveries, DeliveryKey};
pub use export_snapshot::ExportSnapshot;
pub use feed::{EventFeed, FeedPage, ResumeToken, foreign_token};
pub use file::StoreFile;
pub use histories::{EventPosition, EventsPart, ExpiredUser, Histories, History};
pub use inboxes::{BegunNotice, Delivery, InboxChange, InboxLimits, Inboxes, OLDEST_ENTRIES};
pub use lookups::{ANSWER_BYTES, Consistency, ItemResult, LIST_BYTES, LookUps, Resolved};
pub use mutations::Mutations;
pub use page_limit::{MAX_FRAME_BYTES, PageLimit};
pub use reads::{OrderedReads, Reads};
pub use rules::CurrentRules;
pub use scanned::Scanned;
pub use search::Search;
pub use stored_rules::StoredRules;
pub use tenants::Tenants;
pub use usage::{Resolution, Usage, UsageBatch, UsageCount, UsagePoint, UsageQuery};

/// The capabilities of one store.
#[derive(Clone)]
pub struct Backend {
    /// Look-ups, which layers may share and cache.
    pub lookups: Arc<dyn LookUps>,
    /// Reads that are neither shared nor cached.
    pub reads: Arc<dyn Reads>,
    /// The rules of normalisation.
    pub rules: Arc<dyn CurrentRules>,
    /// The clock.
    pub clock: Arc<dyn StoreClock>,
    /// The key of tokens.
    pub token_key: TokenKey,
    /// Mutations.
    pub mutations: Arc<dyn Mutations>,
    /// Tenants.
    pub tenants: Arc<dyn Tenants>,
    /// Searches and scans.
    pub search: Arc<dyn Search>,
    /// Histories.
    pub histories: Arc<dyn Histories>,
    /// Inboxes.
    pub inboxes: Arc<dyn Inboxes>,
    /// Counters of calls and look-ups.
    pub usage: Arc<dyn Usage>,
    /// Bulk changes.
    pub bulk_changes: Arc<dyn BulkChanges>,
    /// Deliveries of events.
    pub deliveries: Arc<dyn Deliveries>,
    /// The event feed.
    pub feed: Arc<dyn EventFeed>,
    /// The file of a store that is one file.
    pub file: Option<Arc<dyn StoreFile>>,
}

impl Backend {
    /// The capabilities of `store`, with `feed` and without a file.
    pub fn new<S>(store: Arc<S>, feed: Arc<dyn EventFeed>, token_key: TokenKey) -> Self
    where
        S: LookUps
            + Reads
            + CurrentRules
            + StoreClock
            + Mutations
            + Tenants
            + Search
            + Histories
            + Inboxes
            + Usage
            + BulkChanges
            + Deliveries,
    {
        Self {
            lookups: store.clone(),
            reads: store.clone(),
            rules: store.clone(),
            clock: store.clone(),
            token_key,
            mutations: store.clone(),
            tenants: store.clone(),
            search: store.clone(),
            histories: store.clone(),
            inboxes: store.clone(),
            usage: store.clone(),
            bulk_changes: store.clone(),
            deliveries: store,
            feed,
            file: None,
        }
    }

    /// The same store, with `layer` over its look-ups.
    #[must_use]
    pub fn layered<L: LookUps>(self, layer: impl FnOnce(Arc<dyn LookUps>) -> L) -> Self {
        Self { lookups: Arc::new(layer(self.lookups)), ..self }
    }
}
