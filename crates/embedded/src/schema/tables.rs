//! The tables of the store. Records are protocol buffers: a field that a later version adds reads
//! as absent in what an earlier one wrote.

use std::io;

use redb::{Database, ReadableDatabase, TableDefinition};

use crate::schema::token_key;
use crate::version::VERSION;
use polynym_directory::TokenKey;
use polynym_identifier::RULES_VERSION;
use polynym_store_common::attribute_names::AttributeId;

/// The store's versions: of the schema under [`META_SCHEMA`], of the rules of normalisation under
/// [`META_RULES`]; and the last time seen under [`LAST_SEEN`].
pub const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// In [`META`]: the version of the schema.
pub const META_SCHEMA: &str = "schema";
/// In [`META`]: the version of the rules of normalisation.
pub const META_RULES: &str = "rules";
/// In [`META`]: the last time seen, in milliseconds.
pub const LAST_SEEN: &str = "last_seen";
/// In [`META`]: the version of the rules to which identities are being moved, while they are.
pub const META_MOVING: &str = "moving";
/// In [`META`]: the four parts of the key of tokens.
pub const TOKEN_KEY: [&str; 4] = ["token_key_0", "token_key_1", "token_key_2", "token_key_3"];
/// User id to `UserRecord`.
pub const USERS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("users");
/// Identity key to claim. The key is bytes, which order like text without UTF-8 checks.
pub const IDENTITIES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("identities");
/// The key of a request to its `RequestRecord`.
pub const REQUESTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("requests");
/// Time of a request, in milliseconds, and its key: the oldest expires first.
pub const REQUEST_TIMES: TableDefinition<'_, (i64, &str), ()> =
    TableDefinition::new("request_times");
/// Name of a tenant to its [`TenantRecord`](polynym_directory::model::tenant_record::TenantRecord).
pub const TENANTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("tenants");
/// A tenant and the id of one of its users.
pub const TENANT_USERS: TableDefinition<'_, (&str, &[u8; 16]), ()> =
    TableDefinition::new("tenant_users");
/// A tenant and an attribute id to the tenant's time of creation, in milliseconds, and the name. An
/// empty name marks the ids up to it as those of a deleted tenant: ids are never reused.
pub const ATTRIBUTE_NAMES: TableDefinition<'_, (&str, AttributeId), (i64, &str)> =
    TableDefinition::new("attribute_names");
/// The values by which users are searched: see [`index_key`](super::index_key).
pub const ATTRIBUTES: TableDefinition<'_, &[u8], ()> = TableDefinition::new("attributes");
/// The time when a user's state expires, in milliseconds, and the user's id.
pub const EXPIRES_AT: TableDefinition<'_, (i64, &[u8; 16]), ()> = TableDefinition::new("due");
/// The time when a hold ends, in milliseconds, and its key.
pub const HOLD_TIMES: TableDefinition<'_, (i64, &[u8]), ()> = TableDefinition::new("hold_times");

/// The number of an event to its row: see [`StoredEvent`](super::event::StoredEvent).
pub const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
/// When an event expires, in milliseconds, and its number. Entries of events that were removed with
/// their users remain.
pub const EVENT_TIMES: TableDefinition<'_, (i64, u64), ()> = TableDefinition::new("event_times");
/// A tenant, the time of an event of one of its users, in milliseconds, and the event's number.
pub const EVENT_ORDER: TableDefinition<'_, (&str, i64, u64), ()> =
    TableDefinition::new("event_order");
/// The number of the next event; 1 where it is absent.
pub const NEXT_EVENT: TableDefinition<'_, (), u64> = TableDefinition::new("next_event");
/// A tenant and the number of one of its own events to the event.
pub const TENANT_EVENTS: TableDefinition<'_, (&str, u64), &[u8]> =
    TableDefinition::new("tenant_events");
/// The time when an event of a tenant expires, in milliseconds, and its key in [`TENANT_EVENTS`].
pub const TENANT_EVENT_TIMES: TableDefinition<'_, (i64, &str, u64), ()> =
    TableDefinition::new("tenant_event_times");
/// Identity key to its ended ownerships.
pub const ENDED: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("ended");

/// A user and the position of a notice in its inbox to an `EntryRecord`.
pub const INBOX: TableDefinition<'_, (&[u8; 16], u64), &[u8]> = TableDefinition::new("inbox");
/// A user and the id of a notice that it has, or has deleted, to the notice's position.
pub const INBOX_NOTICES: TableDefinition<'_, (&[u8; 16], &[u8; 16]), u64> =
    TableDefinition::new("inbox_notices");
/// The time when a row of [`INBOX`] expires, in milliseconds, and its key.
pub const INBOX_TIMES: TableDefinition<'_, (i64, &[u8; 16], u64), ()> =
    TableDefinition::new("inbox_times");
/// The id of a notice to the content that the notices of several users share.
pub const INBOX_CONTENTS: TableDefinition<'_, &[u8; 16], &[u8]> =
    TableDefinition::new("inbox_contents");
/// The id of a notice in [`INBOX_CONTENTS`], and a user who has it and has not deleted it.
pub const INBOX_CONTENT_USERS: TableDefinition<'_, (&[u8; 16], &[u8; 16]), ()> =
    TableDefinition::new("inbox_content_users");

/// A tenant, a caller and a metric to the number of their series: 0, 1, 2 and so on.
pub const USAGE_SERIES: TableDefinition<'_, (&str, &str, &str), u32> =
    TableDefinition::new("usage_series");
/// The number of a series, the resolution and the number of the interval since the Unix epoch to
/// the count in it.
pub const USAGE: TableDefinition<'_, (u32, u8, u32), u64> = TableDefinition::new("usage");
/// The server whose batch was added last, and the number of that batch.
pub const USAGE_BATCH: TableDefinition<'_, (), (&[u8; 16], u64)> =
    TableDefinition::new("usage_batch");

/// A tenant and the id of one of its bulk changes to when it is due, in milliseconds, whether it is
/// running, and its encoded form. The first bulk change of a store makes this table and the next.
pub const BULK_CHANGES: TableDefinition<'_, (&str, &str), (i64, bool, &[u8])> =
    TableDefinition::new("bulk_changes");
/// The time when a bulk change is due, in milliseconds, its tenant and its id.
pub const BULK_TIMES: TableDefinition<'_, (i64, &str, &str), ()> =
    TableDefinition::new("bulk_times");
/// A tenant, the id of one of its bulk changes by a list, and the number of a batch, to the ids of
/// the users. The first such bulk change of a store makes this table.
pub const BULK_USERS: TableDefinition<'_, (&str, &str, u32), &[u8]> =
    TableDefinition::new("bulk_users");
/// A tenant and the id of one of its deliveries to its encoded form. The first delivery of a store
/// makes this table and the next.
pub const DELIVERIES: TableDefinition<'_, (&str, &str), &[u8]> = TableDefinition::new("deliveries");
/// A tenant and the id of one of its deliveries that is not paused to the time when a server may
/// take it, in milliseconds.
pub const DELIVERY_TIMES: TableDefinition<'_, (&str, &str), i64> =
    TableDefinition::new("delivery_times");

/// Opens each table that a store always has.
macro_rules! open_each {
    ($transaction:ident) => {
        $transaction.open_table(USERS)?;
        $transaction.open_table(IDENTITIES)?;
        $transaction.open_table(REQUESTS)?;
        $transaction.open_table(REQUEST_TIMES)?;
        $transaction.open_table(TENANTS)?;
        $transaction.open_table(EXPIRES_AT)?;
        $transaction.open_table(HOLD_TIMES)?;
        $transaction.open_table(TENANT_USERS)?;
        $transaction.open_table(ATTRIBUTE_NAMES)?;
        $transaction.open_table(ATTRIBUTES)?;
        $transaction.open_table(EVENTS)?;
        $transaction.open_table(EVENT_TIMES)?;
        $transaction.open_table(EVENT_ORDER)?;
        $transaction.open_table(NEXT_EVENT)?;
        $transaction.open_table(ENDED)?;
        $transaction.open_table(INBOX)?;
        $transaction.open_table(INBOX_NOTICES)?;
        $transaction.open_table(INBOX_TIMES)?;
        $transaction.open_table(INBOX_CONTENTS)?;
        $transaction.open_table(INBOX_CONTENT_USERS)?;
    };
}

/// Creates all tables of a new store.
pub fn create_tables(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert(META_SCHEMA, VERSION)?;
        meta.insert(META_RULES, u64::from(RULES_VERSION))?;
        let key = TokenKey::random().map_err(|error| redb::Error::Io(io::Error::other(error)))?;
        token_key::insert(&mut meta, &key)?;
    }
    open_each!(transaction);
    Ok(transaction.commit()?)
}

/// Fails if a table is missing or has another type.
pub fn check_tables(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_read()?;
    open_each!(transaction);
    Ok(())
}
