//! Users, their identities, and the rules by which both change. The traits in [`stores`] are the
//! contract of a store. This crate knows no RPC and no database: the program's `grpc` translates
//! requests to it, and a store writes its decisions.

pub mod clock;
pub mod duplicates;
pub mod encoded;
pub mod error;
mod history_check;
mod history_part;
mod limits;
pub mod model;
pub mod mutation;
mod purge_progress;
pub mod search;
pub mod service;
mod size;
pub mod stores;
mod tenant_cache;
mod tenant_queue;
mod text;
pub mod timestamp;
pub mod tokens;
mod trial;
mod update_mask;
mod view;

#[cfg(test)]
mod tests;

pub use crate::encoded::encode::{
    identifier_message, identity_message, user_message, value_message,
};
pub use crate::encoded::encoded_user::{EncodedUser, Found};
pub use crate::encoded::error::WireError;
pub use crate::encoded::exported_user::ExportedUser;
pub use crate::encoded::tenant::tenant_message;
pub use crate::model::unknown::Unknown;
pub use clock::{CLOCK_AHEAD, Clock, Now};
pub use duplicates::evidence::{
    Evidence as DuplicateEvidence, Match as DuplicateMatch, Reason as DuplicateReason,
};
pub use duplicates::pairs::DuplicatePair;
pub use error::{
    Blocker, BulkError, Category, DeliveryError, Error, Invalid, ItemError, NotUndone,
};
pub use history_check::check_history;
pub use history_part::{HistoryEvents, HistoryPart};
pub use limits::Limits;
pub use model::attribute::Value;
pub use model::attribute_definition::{AttributeDefinition, DefinitionUpdate, ValueType};
pub use model::bulk::change::{BulkAction, BulkChange, BulkList, BulkState};
pub use model::bulk::lease::Lease;
pub use model::bulk::progress::{
    BulkBatch, BulkBlocker, BulkCounts, BulkEffect, BulkFailure, BulkResults,
};
pub use model::claim::{Claim, ClaimWrite};
pub use model::delivery::held::{Held, HeldUsers};
pub use model::delivery::log::{Attempt, DeadLetter, DeliveryLog};
pub use model::delivery::record::{
    DeliveryPause, DeliveryProgress, DeliveryTarget, EventDelivery, Stall,
};
pub use model::delivery::step::{
    DeliveryChanges, DeliveryRunStep, DeliveryStep, DeliveryUpdate, EVENTS_EXPIRED,
};
pub use model::event::{
    ChangeSet, Event, EventKind, FieldChange, HoldChange, IdentityChange, Origin, RecordedValue,
};
pub use model::imported_user::reimport::{LineField, OnExisting, Reimport};
pub use model::imported_user::{
    Effect, Imported, ImportedIdentity, ImportedUser, OnConflict, SkipReason, SkippedIdentity,
};
pub use model::merge_report::{Conflict, ConflictPolicy, NotRestored, Preview};
pub use model::new_user::{NewIdentity, NewUser};
pub use model::notice::{Notice, NoticeContent};
pub use model::ownership::{EndedOwnerships, OwnerAt, Ownership, Takeover};
pub use model::policies::{Policies, PolicyUpdate};
pub use model::record::{Hold, MergeSnapshot, Record, UserInternals};
pub use model::reserved::{DEFAULT as RESERVED_HANDLES, parse as reserved_handles};
pub use model::shortening::{Shortened, Shortening};
pub use model::tenant::Tenant;
pub use model::tenant_event::{TenantEvent, TenantEventKind};
pub use model::tenant_record::{Deletion, DeletionStep, ImportedTenant, TenantRecord};
pub use model::user::{Identity, State, User, Verification};
pub use mutation::bulk::{BulkPart, BulkProgress, BulkStep, FoundUsers, RunStep};
pub use mutation::merge_links::{MergeLinks, MergeWalk};
pub use mutation::read_set::{
    Decision, MutationReport, Outcome, ReadRequest, ReadSet, Write, WriteSet,
};
pub use mutation::{
    IdempotencyKey, Mutation, MutationKind, PriorRequest, TenantChange, UserChange,
};
pub use search::{AccessPath, Class, Filter, Position, Range, Scalar, ScalarRef, SearchedUser};
pub use service::Directory;
pub use service::bulk::calls::{BulkUsers, StartBulkChange};
pub use service::context::{MutationCall, RequestContext};
pub use service::delivery::replay::Replay;
pub use service::duplicates::{
    DuplicateEvent, DuplicateOptions, DuplicateProgress, DuplicateSearch,
};
pub use service::find::exact::FoundUser;
pub use service::find::read::FindPage;
pub use service::find::request::FindRequest;
pub use service::find::way::{Reading as FindReading, Way as FindWay};
pub use service::history::tenant_events::{EventsPage, EventsRequest};
pub use service::history::tenant_history::{TenantHistoryPage, TenantHistoryRequest};
pub use service::history::user_history::{HistoryPage, HistoryRequest};
pub use service::inbox::list::{NoticePage, NoticesRequest};
pub use service::inbox::send::{SendRequest, SentNotice};
pub use service::log_pause::LogPause;
pub use service::lookup::as_of::owners_at;
pub use service::lookup::owners::{OwnerPeriod, Owners};
pub use service::lookup::read::{ResolveOptions, UserById, UserRef};
pub use service::mutate::mutation_log::MUTATION_LOG;
pub use service::mutate::write::{DISPLACED, RawIdentity};
pub use service::purpose::Purpose;
pub use service::renormalization::move_all::move_all;
pub use service::scan_pace::Pace;
pub use service::search::{Page, Plan, SearchRequest, UserCount};
pub use service::tenants::renormalization::{Problem, Progress, Renormalization};
pub use service::transfer::export::Export;
pub use service::transfer::import::{Import, ImportOptions, Line, LineOutcome, MergedLine};
pub use service::transfer::undo::{Undo, UndoStep};
pub use service::usage::flush::UsageFlusher;
pub use service::usage::{UsageReport, UsageRequest};
pub use service::watch::{Watch, WatchRequest};
pub use stores::{
    ANSWER_BYTES, Backend, BegunNotice, BulkChangeKey, BulkChanges, Consistency, CurrentRules,
    Deliveries, Delivery, DeliveryKey, DueBulkChange, EventFeed, EventPosition, EventsPart,
    ExpiredUser, ExportSnapshot, FeedPage, Histories, History, InboxChange, InboxLimits, Inboxes,
    ItemResult, LIST_BYTES, LookUps, Mutations, OrderedReads, PageLimit, Reads, Resolution,
    Resolved, ResumeToken, Scanned, Search, StoreClock, StoreFile, StoredRules, Tenants, Usage,
    UsageBatch, UsageCount, UsagePoint, UsageQuery, View,
};
pub use timestamp::Timestamp;
pub use tokens::key::TokenKey;
pub use trial::Trial;
pub use update_mask::Update;
