//! The shard keys, validators and indexes of a store's collections.

use mongodb::bson::{Document, doc};

use crate::inbox::row::{CONTENT, NOTICE, SENT};
use crate::schema::attributes::{ATTRIBUTES, ATTRIBUTES_INDEX, KEY, VALUE};
use crate::schema::fields::{
    BULK, CALLER, CLAIM_RULES_VERSION, COUNTS, ENDED, EPOCH, EVENTS, EXPIRES_AT, FLUSHES, GUARD,
    HOLD, ID, IDENTITIES, JOURNAL, LISTED, METRIC, NAMES, NOTICES, OWNERSHIPS, PERIOD, POLICIES,
    PRIVATE, REQUEST_HASH, REQUESTS, RESOLUTION, REVISION, RUNNING, SERVERS, SESSIONS, TENANT,
    TENANTS, TIME, USAGE, USER, USERS, WIRE,
};
use crate::schema::tail::{TIMES, TIMES_INDEX};
use crate::search::names::{FIRST, NAMES_FIELD, SINCE};
use polynym_directory::IdempotencyKey;

/// The collections of a store, in the order of their creation.
pub const COLLECTIONS: [&str; 11] =
    [USERS, IDENTITIES, REQUESTS, TENANTS, NAMES, JOURNAL, ENDED, USAGE, NOTICES, BULK, SERVERS];

/// The shard key of a collection. Ids of users and requests are evenly distributed, and sharded in
/// their order. Identity keys of one tenant and kind have a common prefix, so they are sharded by
/// their hashes.
pub fn shard_key(collection: &str) -> Document {
    if matches!(collection, IDENTITIES | ENDED) {
        doc! { ID: "hashed" }
    } else {
        by_order()
    }
}

/// Whether a store may have this shard key. Older programs sharded identities in the order of their
/// keys.
pub fn is_shard_key(collection: &str, key: &Document) -> bool {
    *key == shard_key(collection) || (collection == IDENTITIES && *key == by_order())
}

/// The key of the index of ids.
pub fn by_order() -> Document {
    doc! { ID: 1 }
}

/// The option of a collection that MongoDB keeps in the order of its ids.
pub const CLUSTERED_INDEX: &str = "clusteredIndex";

/// Whether MongoDB keeps a collection in the order of its ids, without an index of them, so that a
/// range of ids is read at once.
pub fn is_clustered(collection: &str) -> bool {
    collection == NOTICES
}

/// Whether a store can be served without this collection.
pub fn is_optional(collection: &str) -> bool {
    matches!(collection, SERVERS | USAGE | BULK)
}

/// The seconds for which requests and holds are retained after their expiry: clocks may differ.
const GRACE_SECONDS: i64 = 60 * 60;

/// Whether documents of a collection have an epoch. Nearly every mutation writes one of them.
fn has_epoch(collection: &str) -> bool {
    matches!(collection, USERS | TENANTS)
}

/// The required validation level of a collection, if any. A document of an earlier epoch must not
/// pass because it was written in that one.
pub fn level(collection: &str) -> Option<&'static str> {
    has_epoch(collection).then_some("strict")
}

/// The validator of a collection in this epoch. It rejects writes of programs of other versions,
/// and errors of other programs. It allows unknown fields.
pub fn validator(collection: &str, epoch: i32) -> Document {
    let (mut required, mut properties) = fields(collection);
    let current = doc! { "bsonType": "int", "minimum": epoch };
    if has_epoch(collection) {
        required.push(EPOCH);
        properties.insert(EPOCH, current);
    } else if collection == IDENTITIES {
        // Only transactions that write no other document with an epoch add one to a claim.
        properties.insert(EPOCH, current);
    }
    doc! { "$jsonSchema": { "bsonType": "object", "required": required, "properties": properties } }
}

/// The required fields of a collection, and the types of all fields.
fn fields(collection: &str) -> (Vec<&'static str>, Document) {
    match collection {
        USERS => (
            vec![ID, REVISION, TENANT, WIRE],
            doc! {
                ID: { "bsonType": "binData" },
                REVISION: { "bsonType": "long" },
                TENANT: { "bsonType": "string" },
                WIRE: { "bsonType": "binData" },
                PRIVATE: { "bsonType": "binData" },
                EXPIRES_AT: { "bsonType": "date" },
                TIMES: { "bsonType": "array", "items": { "bsonType": "date" } },
            },
        ),
        IDENTITIES => (
            vec![ID, CLAIM_RULES_VERSION],
            doc! {
                ID: { "bsonType": "string" },
                USER: { "bsonType": "binData" },
                CLAIM_RULES_VERSION: { "bsonType": "int" },
                GUARD: { "bsonType": "bool" },
                HOLD: { "bsonType": "date" },
            },
        ),
        TENANTS => (
            vec![ID, REVISION, POLICIES],
            doc! {
                ID: { "bsonType": "string" },
                REVISION: { "bsonType": "long" },
                POLICIES: { "bsonType": "binData" },
            },
        ),
        NAMES => name_fields(),
        JOURNAL | ENDED => history_fields(collection),
        USAGE => usage_fields(),
        NOTICES => notice_fields(),
        BULK => bulk_fields(),
        SERVERS => server_fields(),
        _ => (
            vec![ID, USER, REQUEST_HASH, TIME],
            doc! {
                ID: { "bsonType": "binData" },
                USER: { "bsonType": "binData" },
                REQUEST_HASH: { "bsonType": "long" },
                TIME: { "bsonType": "date" },
            },
        ),
    }
}

/// The fields of [`NAMES`].
fn name_fields() -> (Vec<&'static str>, Document) {
    let types = doc! {
        ID: { "bsonType": "string" },
        SINCE: { "bsonType": "date" },
        FIRST: { "bsonType": "int" },
        NAMES_FIELD: { "bsonType": "array", "items": { "bsonType": "string" } },
    };
    (vec![ID, FIRST, NAMES_FIELD], types)
}

/// The fields of [`SERVERS`].
fn server_fields() -> (Vec<&'static str>, Document) {
    let types = doc! {
        ID: { "bsonType": "binData" },
        TIME: { "bsonType": "date" },
        SESSIONS: { "bsonType": "array", "items": { "bsonType": "binData" } },
    };
    (vec![ID, TIME], types)
}

/// The fields of [`JOURNAL`] and [`ENDED`].
fn history_fields(collection: &str) -> (Vec<&'static str>, Document) {
    let date = doc! { "bsonType": "date" };
    let times = doc! { "bsonType": "array", "items": date.clone() };
    if collection == JOURNAL {
        let bytes = doc! { "bsonType": "binData" };
        let mut types = doc! { ID: bytes.clone(), EVENTS: bytes, EXPIRES_AT: date.clone() };
        types.extend(doc! { TENANT: { "bsonType": "string" }, TIMES: times });
        return (vec![ID, EVENTS, EXPIRES_AT], types);
    }
    let list = doc! { "bsonType": "array", "items": { "bsonType": "object" } };
    let types = doc! { ID: { "bsonType": "string" }, OWNERSHIPS: list, EXPIRES_AT: date };
    (vec![ID, OWNERSHIPS, EXPIRES_AT], types)
}

/// The fields of [`USAGE`].
fn usage_fields() -> (Vec<&'static str>, Document) {
    let types = doc! {
        ID: { "bsonType": "binData" },
        TENANT: { "bsonType": "string" },
        CALLER: { "bsonType": "string" },
        METRIC: { "bsonType": "string" },
        RESOLUTION: { "bsonType": "int" },
        PERIOD: { "bsonType": "date" },
        COUNTS: { "bsonType": "object" },
        FLUSHES: { "bsonType": "object" },
        EXPIRES_AT: { "bsonType": "date" },
    };
    (vec![ID, TENANT, CALLER, METRIC, RESOLUTION, PERIOD, COUNTS, FLUSHES], types)
}

/// The fields of [`NOTICES`].
fn notice_fields() -> (Vec<&'static str>, Document) {
    let types = doc! {
        ID: { "bsonType": "binData" },
        NOTICE: { "bsonType": "binData" },
        SENT: { "bsonType": "date" },
        CONTENT: { "bsonType": "binData" },
        EXPIRES_AT: { "bsonType": "date" },
    };
    (vec![ID, NOTICE, EXPIRES_AT], types)
}

/// The fields of [`BULK`].
fn bulk_fields() -> (Vec<&'static str>, Document) {
    let types = doc! {
        ID: { "bsonType": "string" },
        TENANT: { "bsonType": "string" },
        REVISION: { "bsonType": "long" },
        EXPIRES_AT: { "bsonType": "date" },
        RUNNING: { "bsonType": "bool" },
        WIRE: { "bsonType": "binData" },
        LISTED: { "bsonType": "binData" },
    };
    (vec![ID, TENANT, REVISION], types)
}

/// The index of all attributes: multikey over one array, so that its entries for a token are in the
/// order of values.
fn by_attributes() -> Document {
    let (key, value) = (format!("{ATTRIBUTES}.{KEY}"), format!("{ATTRIBUTES}.{VALUE}"));
    doc! { "key": { TENANT: 1, key: 1, value: 1, ID: 1 }, "name": ATTRIBUTES_INDEX }
}

/// The index of the times of events, from the newest on.
fn by_times() -> Document {
    doc! { "key": { TENANT: 1, TIMES: -1, ID: 1 }, "name": TIMES_INDEX }
}

/// The index by which the server deletes expired documents.
fn expiring() -> Document {
    doc! { "key": { EXPIRES_AT: 1 }, "name": "d_1", "expireAfterSeconds": GRACE_SECONDS }
}

/// The indexes of a collection, without that of `_id`. Those of expiries and holds are sparse, and
/// cost other documents nothing.
pub fn indexes(collection: &str) -> Vec<Document> {
    let seconds = IdempotencyKey::LIFETIME.as_secs() as i64 + GRACE_SECONDS;
    match collection {
        USERS => {
            let expiry = doc! { "key": { EXPIRES_AT: 1 }, "name": "d_1", "sparse": true };
            let of_tenant = doc! { "key": { TENANT: 1, ID: 1 }, "name": "t_1__id_1" };
            vec![expiry, of_tenant, by_attributes(), by_times()]
        }
        IDENTITIES => vec![doc! {
            "key": { HOLD: 1 },
            "name": "h_1",
            "sparse": true,
            "expireAfterSeconds": GRACE_SECONDS,
        }],
        JOURNAL => vec![expiring(), by_times()],
        NOTICES => vec![expiring()],
        BULK => vec![doc! { "key": { EXPIRES_AT: 1 }, "name": "d_1", "sparse": true }],
        USAGE => {
            let of_tenant = doc! { TENANT: 1, RESOLUTION: 1, PERIOD: 1 };
            vec![expiring(), doc! { "key": of_tenant, "name": "t_1_r_1_p_1" }]
        }
        ENDED => {
            let users = format!("{OWNERSHIPS}.{USER}");
            vec![expiring(), doc! { "key": { users: 1 }, "name": "o.u_1", "sparse": true }]
        }
        REQUESTS => vec![doc! { "key": { TIME: 1 }, "name": "t_1", "expireAfterSeconds": seconds }],
        _ => Vec::new(),
    }
}
