//! The names of collections and of the fields of their documents. They are short, since MongoDB
//! stores a field's name with each document.

/// Users by their ids: [`REVISION`], [`TENANT`], [`WIRE`], [`PRIVATE`], [`EXPIRES_AT`], [`EPOCH`],
/// [`ATTRIBUTES`].
pub const USERS: &str = "users";
/// Claims by their identity keys: [`USER`], [`RULES`], [`GUARD`], [`HOLD`].
pub const IDENTITIES: &str = "identities";
/// Requests that were carried out, by a hash of their keys: [`USER`], [`FINGERPRINT`], [`TIME`].
pub const REQUESTS: &str = "requests";
/// Tenants by their names: [`REVISION`], [`POLICIES`], [`EPOCH`].
pub const TENANTS: &str = "tenants";
/// The names of attributes by their tenants and numbers: see [`names`](crate::store::mongo::search::names). Stores of
/// older programs have no such collection.
pub const NAMES: &str = "names";
/// Parts of users' histories: see [`tail`](crate::store::mongo::schema::tail). [`EVENTS`], [`EXPIRES_AT`]. Stores of
/// older programs have no such collection.
pub const JOURNAL: &str = "journal";
/// Ended ownerships by their identity keys: [`OWNERSHIPS`], [`EXPIRES_AT`]. Stores of older
/// programs have no such collection.
pub const ENDED: &str = "ended";
/// Counters: see [`usage`](crate::store::mongo::usage). Stores of older programs have no such collection.
pub const USAGE: &str = "usage";
/// Parts of users' inboxes: see [`bucket`](crate::store::mongo::inbox::bucket). Stores of older programs
/// have no such collection.
pub const INBOX: &str = "inbox";
/// The servers that are up, by random ids: [`TIME`], [`SESSIONS`], [`AHEAD`]. Stores of older
/// programs have no such collection.
pub const SERVERS: &str = "servers";
/// The store's versions, in the document [`SCHEMA`]: [`RULES`], [`NORMALISATION`], [`EPOCH`],
/// [`CONFIRMED`].
pub const META: &str = "meta";
/// The document of [`META`] without which there is no store.
pub const SCHEMA: &str = "schema";

/// The key of every collection, and what it is sharded on.
pub const ID: &str = "_id";
/// Of a user or a tenant: a number that every write raises, so that two transactions that change it
/// conflict. Each raises it by a random number of its own.
pub const REVISION: &str = "r";
/// Of a user or a tenant: the epoch of the store under which it was written. Of the schema: the
/// present epoch. A store of schema version 2 has none.
pub const EPOCH: &str = "e";
/// Of the schema: the version of the rules of normalisation; 1 where it is absent.
pub const NORMALISATION: &str = "n";
/// Of the schema: the version of the rules to which identities are being moved; absent while they
/// are not.
pub const MOVING: &str = "m";
/// Of the schema: how often a transaction has confirmed the epoch here that writes it nowhere else.
pub const CONFIRMED: &str = "c";
/// Of a user: the name of its tenant.
pub const TENANT: &str = "t";
/// Of a user: all that is visible of it, in the form in which answers carry it; without its
/// attributes where the document has [`ATTRIBUTES`].
pub const WIRE: &str = "w";
/// Of a user: what answers do not show; absent where there is nothing of that.
pub const PRIVATE: &str = "x";
/// Of a user: the end of its history; absent where it has none.
pub const TAIL: &str = "j";
/// Of a part of a history: its events.
pub const EVENTS: &str = "e";
/// Of ended ownerships: a list, each with [`USER`] and [`OWNERSHIP`].
pub const OWNERSHIPS: &str = "o";
/// Of one of them: all of it.
pub const OWNERSHIP: &str = "o";
/// Of a user: when something is to be done about it; absent where nothing is. Of others: when they
/// are removed.
pub const EXPIRES_AT: &str = "d";
/// Of a tenant: its policies and times.
pub const POLICIES: &str = "p";
/// Of a claim: the version of the rules that made its key. Of the schema: its version.
pub const RULES: &str = "v";
/// Of a claim or a request: the user's id. Absent from a claim without an owner.
pub const USER: &str = "u";
/// Of a claim: that it is a guard.
pub const GUARD: &str = "g";
/// Of a claim: until when it is held for its former owner.
pub const HOLD: &str = "h";
/// Of a request: a hash of what was asked for.
pub const FINGERPRINT: &str = "f";
/// Of a request: when it was carried out. Of a server: when it last wrote its document, by the
/// database's clock.
pub const TIME: &str = "t";
/// Of a server: the ids of the sessions in which it runs transactions.
pub const SESSIONS: &str = "s";
/// Of a server: by how many seconds its clock is ahead of the database's, where the two do not
/// agree.
pub const AHEAD: &str = "c";
