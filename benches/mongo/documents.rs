//! A person as documents: as the store keeps it, and in the forms that it is compared with.

use locality_uuid::LocalityId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, Uuid, doc, oid::ObjectId};
use polynym::directory::{EncodedUser, Identity, Timestamp, User, Value};
use polynym::identifier::RULES_VERSION;

/// Makes the documents of a user in one collection.
pub type Form = fn(&User) -> Vec<Document>;

/// In `identities`: the key is the `_id`.
pub fn claims(user: &User) -> Vec<Document> {
    keys(user).map(|key| claim(&key, user.id)).collect()
}

pub fn claim(key: &str, owner: LocalityId) -> Document {
    doc! { "_id": key, "u": uuid(owner), "v": RULES_VERSION as i32 }
}

/// The same with an `_id` of the database's own.
pub fn claims_with_own_id(user: &User) -> Vec<Document> {
    let claim = |key: String| {
        doc! { "_id": ObjectId::new(), "k": key, "u": uuid(user.id), "v": RULES_VERSION as i32 }
    };
    keys(user).map(claim).collect()
}

/// The same with fields that tell what they are.
pub fn claims_with_long_names(user: &User) -> Vec<Document> {
    let claim = |key: String| {
        doc! { "_id": key, "user_id": uuid(user.id), "rules_version": RULES_VERSION as i32 }
    };
    keys(user).map(claim).collect()
}

/// In `users`: the wire form, and what a write needs.
pub fn users(user: &User) -> Vec<Document> {
    vec![doc! { "_id": uuid(user.id), "r": 0i64, "t": user.tenant.as_str(), "w": wire(user) }]
}

/// The same with fields that tell what they are.
pub fn users_with_long_names(user: &User) -> Vec<Document> {
    vec![doc! {
        "_id": uuid(user.id),
        "revision": 0i64,
        "tenant": user.tenant.as_str(),
        "user": wire(user),
    }]
}

/// A user document that lists its keys, for an index on them: no second collection.
pub fn users_with_keys(user: &User) -> Vec<Document> {
    vec![doc! { "_id": uuid(user.id), "i": keys(user).collect::<Vec<_>>(), "w": wire(user) }]
}

/// A user of which everything is a field.
pub fn spelled_out(user: &User) -> Vec<Document> {
    let attributes: Document =
        user.attributes.iter().map(|(name, value)| (name.clone(), bson(value))).collect();
    vec![doc! {
        "_id": uuid(user.id),
        "revision": 0i64,
        "etag": user.etag(),
        "tenant": user.tenant.as_str(),
        "state": "ACTIVE",
        "display_name": &user.display_name,
        "identities": user.identities.iter().map(spelled_identity).collect::<Vec<_>>(),
        "attributes": attributes,
        "create_time": time(user.create_time),
        "update_time": time(user.update_time),
    }]
}

fn spelled_identity(identity: &Identity) -> Document {
    let mut document = doc! {
        "kind": identity.identifier.kind().as_str(),
        "value": identity.identifier.canonical(),
        "display": &identity.display,
        "link_time": time(identity.link_time),
        "primary": identity.primary,
    };
    if let Some(verification) = &identity.verification {
        document.insert("verify_time", time(verification.time));
        document.insert("verified_by", &verification.by);
    }
    document
}

fn bson(value: &Value) -> Bson {
    match value {
        Value::String(text) => text.into(),
        Value::Int(number) => (*number).into(),
        Value::Double(number) => (*number).into(),
        Value::Bool(yes) => (*yes).into(),
        Value::Time(at) => time(*at).into(),
        Value::List(items) => items.clone().into(),
    }
}

fn time(at: Timestamp) -> DateTime {
    DateTime::from_millis(at.as_millis())
}

fn keys(user: &User) -> impl Iterator<Item = String> + '_ {
    user.identities.iter().map(|identity| user.key(&identity.identifier).into_string())
}

pub fn uuid(id: LocalityId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

pub fn wire(user: &User) -> Binary {
    Binary { subtype: BinarySubtype::Generic, bytes: EncodedUser::of(user).into_bytes().into() }
}
