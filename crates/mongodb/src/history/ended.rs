//! Ended ownerships: one document for each identity key, with the latest ones.

use std::collections::{BTreeMap, HashMap};

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, RawBsonRef, RawDocument, doc};

use crate::client::error::Fault;
use crate::command::write::{MAX_STATEMENT_DOCUMENTS, WriteCommand};
use crate::database::collections::Collections;
use crate::database::ordered::OrderedFinds;
use crate::database::transaction::Transaction;
use crate::lookup::find::ReadMode;
use crate::lookup::plain_find::Query;
use crate::lookup::reply::documents;
use crate::schema::bson::{by_id, bytes, date, id_value, key_of, read_fields, required};
use crate::schema::fields::{ENDED, EXPIRES_AT, ID, OWNERSHIP, OWNERSHIPS, USER};
use polynym_directory::{
    EndedOwnerships, Mutation, Ownership, encoded::event::decode_ownership,
    encoded::event::encode_ownership,
};
use polynym_identifier::IdentityKey;

impl Collections {
    /// The ended ownerships of keys, in their order.
    pub async fn ended_ownerships(
        &self,
        finds: &mut OrderedFinds,
        keys: &[IdentityKey],
    ) -> Result<Vec<EndedOwnerships>, Fault> {
        self.version_guard.versions()?;
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut found: HashMap<&str, EndedOwnerships> =
            keys.iter().map(|key| (key.as_str(), EndedOwnerships::default())).collect();
        let collection = self.collection(ENDED);
        let mut mode = ReadMode::Ordered { finds, time: self.timeout };
        let ids = || found.keys().map(|key| Bson::String((*key).to_owned())).collect();
        let reply = mode.find(Query { from: &collection, ids: &ids, fields: &[] }).await?;
        if reply.is_cut {
            return Err(Fault::damaged("more ended ownerships than a reply can hold"));
        }
        for document in documents(&reply) {
            let document = document?;
            if let Some(ended) = found.get_mut(key_of(document)?) {
                *ended = read_ended(document)?;
            }
        }
        Ok(keys.iter().map(|key| found.get(key.as_str()).cloned().unwrap_or_default()).collect())
    }
}

impl Transaction<'_> {
    /// Adds ended ownerships of keys.
    pub async fn end_ownerships(
        &mut self,
        mutation: &Mutation,
        ended: &[(&IdentityKey, &Ownership)],
    ) -> Result<(), Fault> {
        let update = |(key, ownership): &(&IdentityKey, &Ownership)| {
            let expiry = ownership.end.plus(mutation.policies.history_retention);
            let slice = -(EndedOwnerships::MAX as i32);
            let push = doc! { "$each": [ownership_document(ownership)], "$slice": slice };
            let change = doc! {
                "$push": { OWNERSHIPS: push }, "$max": { EXPIRES_AT: date(expiry) },
            };
            doc! { "q": { ID: key.as_str() }, "u": change, "upsert": true }
        };
        self.update_many(ENDED, ended.iter().map(update).collect()).await
    }

    /// Removes a user, which this transaction deletes, from all ended ownerships.
    ///
    /// A plain read of all shards finds their keys: the transaction then reads and writes by keys,
    /// and only the shards that own them take part in it. What is added after that read is a change
    /// of the user, and conflicts with its deletion.
    pub async fn forget_ownerships(&mut self, user: LocalityId) -> Result<(), Fault> {
        let by_user = doc! { format!("{OWNERSHIPS}.{USER}"): id_value(user) };
        let ended = self.collections.collection(ENDED);
        let keys = self.find_ids_outside(&ended, by_user, None).await?;
        for keys in keys.chunks(MAX_STATEMENT_DOCUMENTS) {
            self.forget(keys.to_vec(), user).await?;
        }
        Ok(())
    }

    /// Removes users from the ended ownerships of keys.
    pub async fn forget_listed_ownerships(
        &mut self,
        owners: &[(&IdentityKey, LocalityId)],
    ) -> Result<(), Fault> {
        let mut keys: BTreeMap<LocalityId, Vec<Bson>> = BTreeMap::new();
        for (key, user) in owners {
            keys.entry(*user).or_default().push(key.as_str().into());
        }
        for (user, keys) in keys {
            for keys in keys.chunks(MAX_STATEMENT_DOCUMENTS) {
                self.forget(keys.to_vec(), user).await?;
            }
        }
        Ok(())
    }

    /// Removes a user from the ended ownerships of keys.
    async fn forget(&mut self, keys: Vec<Bson>, user: LocalityId) -> Result<(), Fault> {
        let collection = self.collections.collection(ENDED);
        let (mut changed, mut emptied) = (Vec::new(), Vec::new());
        let batch_size = keys.len() + 1;
        for document in self.find_documents(&collection, by_id(keys), Some(batch_size)).await? {
            let key = Bson::String(key_of(&document)?.to_owned());
            // A damaged document may name the user elsewhere, too.
            let mut ended = read_ended(&document).unwrap_or_else(|fault| {
                tracing::error!(cause = fault.to_string(), "removed damaged ended ownerships");
                EndedOwnerships::default()
            });
            ended.forget(user);
            if ended.has_users() {
                let remaining: Vec<_> = ended.0.iter().map(ownership_document).collect();
                changed.push(doc! { "q": { ID: key }, "u": { "$set": { OWNERSHIPS: remaining } } });
            } else {
                emptied.push(key);
            }
        }
        for keys in emptied.chunks(MAX_STATEMENT_DOCUMENTS) {
            self.execute(WriteCommand::delete(ENDED, &by_id(keys.to_vec()))?).await?;
        }
        self.update_many(ENDED, changed).await
    }
}

/// The element of an ended ownership. The user is a field of its own, which an index covers.
fn ownership_document(ownership: &Ownership) -> Document {
    let mut document = doc! { OWNERSHIP: bytes(encode_ownership(ownership)) };
    if let Some(user) = ownership.user {
        document.insert(USER, id_value(user));
    }
    document
}

/// The key and the ended ownerships of a document.
pub fn read_row(document: &RawDocument) -> Result<(IdentityKey, EndedOwnerships), Fault> {
    let key = IdentityKey::from_stored(key_of(document)?.to_owned());
    let key = key.ok_or_else(|| Fault::damaged("ended ownerships have no key"))?;
    Ok((key, read_ended(document)?))
}

fn read_ended(document: &RawDocument) -> Result<EndedOwnerships, Fault> {
    let [ownerships] = read_fields(document, [OWNERSHIPS])?;
    let mut ended = EndedOwnerships::default();
    for element in required(OWNERSHIPS, ownerships, RawBsonRef::as_array)? {
        let element = element.map_err(Fault::damaged)?;
        let element = required(OWNERSHIPS, Some(element), RawBsonRef::as_document)?;
        let [ownership] = read_fields(element, [OWNERSHIP])?;
        let ownership = required(OWNERSHIP, ownership, RawBsonRef::as_binary)?;
        ended.0.push(decode_ownership(ownership.bytes).map_err(Fault::damaged)?);
    }
    Ok(ended)
}
