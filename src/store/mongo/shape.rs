//! The shape that the server holds a store's collections to: validators, and the index by which it forgets requests.

use mongodb::bson::{Document, doc};

use super::schema::{
    FINGERPRINT, GUARD, HOLD, ID, IDENTITIES, PRIVATE, REQUESTS, REVISION, RULES, TENANT, TIME, USER, USERS, WIRE,
};
use crate::directory::Request;

/// The collections of a store, all sharded on `_id`, in the order in which they are made.
pub const COLLECTIONS: [&str; 3] = [USERS, IDENTITIES, REQUESTS];

/// How much longer requests are kept than was promised, in seconds: the servers' clocks differ from those that dated them.
const GRACE: i64 = 60 * 60;

/// What the server lets into a collection. It is there to stop other programs' mistakes: fields that a later version adds
/// pass.
pub fn validator(collection: &str) -> Document {
    let (required, properties) = match collection {
        USERS => (
            vec![ID, REVISION, TENANT, WIRE],
            doc! {
                ID: { "bsonType": "binData" },
                REVISION: { "bsonType": "long" },
                TENANT: { "bsonType": "string" },
                WIRE: { "bsonType": "binData" },
                PRIVATE: { "bsonType": "binData" },
            },
        ),
        IDENTITIES => (
            vec![ID, RULES],
            doc! {
                ID: { "bsonType": "string" },
                USER: { "bsonType": "binData" },
                RULES: { "bsonType": "int" },
                GUARD: { "bsonType": "bool" },
                HOLD: { "bsonType": "date" },
            },
        ),
        _ => (
            vec![ID, USER, FINGERPRINT, TIME],
            doc! {
                ID: { "bsonType": "binData" },
                USER: { "bsonType": "binData" },
                FINGERPRINT: { "bsonType": "long" },
                TIME: { "bsonType": "date" },
            },
        ),
    };
    doc! { "$jsonSchema": { "bsonType": "object", "required": required, "properties": properties } }
}

/// The index of a collection beside that of `_id`: the one by which the server forgets requests.
pub fn index(collection: &str) -> Option<Document> {
    let seconds = Request::LIFETIME_MILLIS / 1_000 + GRACE;
    (collection == REQUESTS).then(|| doc! { "key": { TIME: 1 }, "name": "t_1", "expireAfterSeconds": seconds })
}
