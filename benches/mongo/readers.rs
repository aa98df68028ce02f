//! The ways from an identity key to its user's wire form that are compared.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;
use mongodb::Collection;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};
use polynym::directory::{Backend, Consistency, View};
use polynym::identifier::IdentityKey;

use crate::Result;
use crate::calls::Work;
use crate::people::{KINDS, People, key, mixed};

#[async_trait]
pub trait Reader: Send + Sync + 'static {
    async fn resolve(&self, key: IdentityKey) -> Result<Bytes>;
}

/// A plain program: a find for the claim, then one for its user.
pub struct TwoFinds {
    pub identities: Collection<Document>,
    pub users: Collection<Document>,
}

/// One aggregate that joins the claim with its user.
pub struct Lookup {
    pub identities: Collection<Document>,
    /// The name of the other collection.
    pub users: &'static str,
}

/// Users that list their keys, with an index on these.
pub struct Inside {
    pub users: Collection<Document>,
}

/// The store, as the server asks it.
pub struct OfStore(pub Backend);

#[async_trait]
impl Reader for TwoFinds {
    async fn resolve(&self, key: IdentityKey) -> Result<Bytes> {
        let claim =
            self.identities.find_one(doc! { "_id": key.into_string() }).await?.ok_or("no claim")?;
        let id = claim.get("u").ok_or("a claim without a user")?;
        let user = self.users.find_one(doc! { "_id": id }).await?.ok_or("no user")?;
        wire(user)
    }
}

#[async_trait]
impl Reader for Lookup {
    async fn resolve(&self, key: IdentityKey) -> Result<Bytes> {
        let join =
            doc! { "from": self.users, "localField": "u", "foreignField": "_id", "as": "user" };
        let steps = [doc! { "$match": { "_id": key.into_string() } }, doc! { "$lookup": join }];
        let mut found =
            self.identities.aggregate(steps).await?.try_next().await?.ok_or("no claim")?;
        let users = found.get_array_mut("user")?;
        wire(users.pop().and_then(|user| user.as_document().cloned()).ok_or("no user")?)
    }
}

#[async_trait]
impl Reader for Inside {
    async fn resolve(&self, key: IdentityKey) -> Result<Bytes> {
        wire(self.users.find_one(doc! { "i": key.into_string() }).await?.ok_or("no user")?)
    }
}

#[async_trait]
impl Reader for OfStore {
    async fn resolve(&self, key: IdentityKey) -> Result<Bytes> {
        let resolved =
            self.0.lookups.resolve(&[key], Consistency::Latest, View::Full, Duration::ZERO).await?;
        let found = resolved.found.into_iter().next().ok_or("nothing")??.ok_or("nobody")?;
        Ok(found.user.into_bytes())
    }
}

fn wire(mut user: Document) -> Result<Bytes> {
    match user.remove("w") {
        Some(mongodb::bson::Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })) => {
            Ok(bytes.into())
        }
        _ => Err("a user without its wire form".into()),
    }
}

/// Looks up anybody by any of their identities, and checks that the answer is the very bytes that
/// were loaded.
pub struct Resolves<R> {
    pub reader: R,
    pub people: Arc<People>,
}

#[async_trait]
impl<R: Reader> Work for Resolves<R> {
    async fn call(&self, number: u64) -> Result<()> {
        let pick = mixed(number) % (self.people.len() * KINDS);
        let (n, kind) = (pick / KINDS, pick % KINDS);
        let wire = self.reader.resolve(key(n, kind)?).await?;
        if self.people.is_right(n, &wire) {
            Ok(())
        } else {
            Err(format!("a wrong answer for person {n}").into())
        }
    }
}
