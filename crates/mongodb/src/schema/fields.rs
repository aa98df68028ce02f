//! The names of collections and of the fields of their documents. They are short, since MongoDB
//! stores a field's name with each document.

/// Users by their ids: [`REVISION`], [`TENANT`], [`WIRE`], [`PRIVATE`], [`EXPIRES_AT`], [`EPOCH`],
/// and the array of attributes.
pub const USERS: &str = "users";
/// Claims by their identity keys: [`USER`], [`CLAIM_RULES_VERSION`], [`GUARD`], [`HOLD`], and
/// [`EPOCH`] within a transaction.
pub const IDENTITIES: &str = "identities";
/// Requests that were carried out, by a hash of their keys: [`USER`], [`REQUEST_HASH`], [`TIME`],
/// [`TENANT_SINCE`].
pub const REQUESTS: &str = "requests";
/// Tenants by their names: [`REVISION`], [`POLICIES`], [`EPOCH`].
pub const TENANTS: &str = "tenants";
/// The names of attributes, by tenant and number of the document.
pub const NAMES: &str = "names";
/// Parts of histories: [`EVENTS`], [`EXPIRES_AT`]; of users also [`TENANT`] and their times.
pub const JOURNAL: &str = "journal";
/// Ended ownerships by their identity keys: [`OWNERSHIPS`], [`EXPIRES_AT`].
pub const ENDED: &str = "ended";
/// Counters of calls.
pub const USAGE: &str = "usage";
/// Notices in users' inboxes: [`EXPIRES_AT`] and those of the inbox.
pub const NOTICES: &str = "notices";
/// Bulk changes, by tenant and id: [`TENANT`], [`REVISION`], [`EXPIRES_AT`], [`RUNNING`],
/// [`WIRE`]; for each tenant a document with [`TENANT`] and [`REVISION`]; and for each batch of the
/// users of a bulk change by a list a document with these two and [`LISTED`].
/// Deliveries, by a mark, tenant and id, with the same fields.
pub const BULK: &str = "bulk";
/// The running servers, by random ids: [`TIME`], [`SESSIONS`], [`AHEAD`],
/// [`EXPIRES`].
pub const SERVERS: &str = "servers";
/// The store's versions, in the document [`SCHEMA`]: [`META_SCHEMA_VERSION`],
/// [`META_RULES_VERSION`], [`META_NEXT_RULES_VERSION`], [`META_TOKEN_KEY`], and [`EPOCH`].
pub const META: &str = "meta";
/// The id of the document of [`META`] that marks the database as a store.
pub const SCHEMA: &str = "schema";

/// The key of every collection, and its shard key.
pub const ID: &str = "_id";
/// Of a user, a tenant or a bulk change: a number that every write raises by a random step, so that
/// two transactions that change the document conflict.
pub const REVISION: &str = "r";
/// Of a user or a tenant: the store's epoch when it was written. Of the schema: the current epoch.
/// Of a claim: the epoch of a transaction that has written no user and no tenant, until the next
/// statement of that transaction.
pub const EPOCH: &str = "e";
/// Of the schema: its version.
pub const META_SCHEMA_VERSION: &str = "v";
/// Of the schema: the version of the rules of normalisation.
pub const META_RULES_VERSION: &str = "n";
/// Of the schema: the version of the rules to which identities are being moved, if any.
pub const META_NEXT_RULES_VERSION: &str = "m";
/// Of the schema: the key of tokens.
pub const META_TOKEN_KEY: &str = "k";
/// Of a user, a part of its history, or a bulk change: the name of its tenant.
pub const TENANT: &str = "t";
/// Of a batch of the list of a bulk change: the ids of the users.
pub const LISTED: &str = "l";
/// Of a bulk change: whether it is running; absent otherwise. Of a delivery: false.
pub const RUNNING: &str = "a";
/// Of a bulk change: its encoded form. Of a user: its visible part, in the form in which answers
/// carry it, without attributes.
pub const WIRE: &str = "w";
/// Of a user: its internal part, if any.
pub const PRIVATE: &str = "x";
/// Of a user: the end of its history, if any.
pub const TAIL: &str = "j";
/// Of a part of a history: its events.
pub const EVENTS: &str = "e";
/// Of ended ownerships: a list, each with [`USER`] and [`OWNERSHIP`].
pub const OWNERSHIPS: &str = "o";
/// Of an ended ownership: its encoded form.
pub const OWNERSHIP: &str = "o";
/// Of a user: when its next expiry is due, if any. Of a bulk change: when a server runs or removes
/// it. Of a delivery that is not paused: when a server may take it. Of other documents: when
/// MongoDB removes them.
pub const EXPIRES_AT: &str = "d";
/// Of a tenant: its policies and times.
pub const POLICIES: &str = "p";
/// Of a claim: the version of the rules that made its key.
pub const CLAIM_RULES_VERSION: &str = "v";
/// Of a claim or a request: the user's id. A claim without an owner has none.
pub const USER: &str = "u";
/// Of a claim: whether it is a guard.
pub const GUARD: &str = "g";
/// Of a claim: until when it is held for its former owner.
pub const HOLD: &str = "h";
/// Of a request: a hash of its content.
pub const REQUEST_HASH: &str = "f";
/// The time when the tenant of a request was created.
pub const TENANT_SINCE: &str = "a";
/// Of a request: when it was carried out. Of a server: when it last wrote its document, by the
/// database's clock.
pub const TIME: &str = "t";
/// Of a server: the ids of the sessions in which it runs transactions.
pub const SESSIONS: &str = "s";
/// Of a server: the seconds by which its clock is ahead of the database's, if the two differ.
pub const AHEAD: &str = "c";
/// Of a server: whether it is connected through routers.
pub const ROUTED: &str = "r";
/// Of a server: whether it may lead the search for expired users.
pub const EXPIRES: &str = "x";
/// Of counters: the name of the caller.
pub const CALLER: &str = "c";
/// Of counters: the name of the metric.
pub const METRIC: &str = "m";
/// Of counters: 0 for minutes, 1 for hours, 2 for days.
pub const RESOLUTION: &str = "r";
/// Of counters: the time of the first one.
pub const PERIOD: &str = "p";
/// Of counters: the numbers, in a tree of two levels.
pub const COUNTS: &str = "n";
/// Of counters: of each server the number of the last batch that was added.
pub const FLUSHES: &str = "f";
