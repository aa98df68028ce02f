//! Ended ownerships: a document for each identity key, with the last of them.

use std::collections::{BTreeMap, HashMap};

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};

use super::collections::Collections;
use super::error::Fault;
use super::find::documents;
use super::schema::{
    ENDED, EXPIRES_AT, ID, OWNERSHIP, OWNERSHIPS, USER, by_id, bytes, date, fields, id_value,
    key_of, needed,
};
use super::transaction::{Transaction, all_there};
use crate::directory::encoded::event::{decode_ownership, encode_ownership};
use crate::directory::model::ownership::{EndedOwnerships, Ownership};
use crate::directory::mutation::Mutation;
use crate::directory::stores::Consistency;
use crate::identifier::IdentityKey;

/// The most documents of one statement: a command has at most 48 MB.
const STATEMENT: usize = 1_000;

impl Collections {
    /// The ended ownerships of keys, in their order.
    pub async fn ended_ownerships(
        &self,
        keys: &[IdentityKey],
    ) -> Result<Vec<EndedOwnerships>, Fault> {
        if keys.is_empty() || !self.fence.versions()?.has_journal() {
            return Ok(keys.iter().map(|_| EndedOwnerships::default()).collect());
        }
        let mut found: HashMap<&str, EndedOwnerships> =
            keys.iter().map(|key| (key.as_str(), EndedOwnerships::default())).collect();
        let ids = found.keys().map(|key| Bson::String((*key).to_owned())).collect();
        let collection = self.database.collection(ENDED);
        let reply = self.plain(Consistency::Latest).find(&collection, ids, None).await?;
        if !reply.is_whole {
            return Err(Fault::damaged("more ended ownerships than a reply can hold"));
        }
        for batch in &reply.batches {
            for document in documents(batch)? {
                let document = document?;
                if let Some(ended) = found.get_mut(key_of(document)?) {
                    *ended = read_ended(document)?;
                }
            }
        }
        Ok(keys.iter().map(|key| found.get(key.as_str()).cloned().unwrap_or_default()).collect())
    }
}

impl Transaction<'_> {
    /// Adds to the ended ownerships of keys, in one statement.
    pub async fn end_ownerships(
        &mut self,
        mutation: &Mutation,
        ended: &[(&IdentityKey, &Ownership)],
    ) -> Result<(), Fault> {
        let update = |(key, ownership): &(&IdentityKey, &Ownership)| {
            let expiry = ownership.end.plus(mutation.policies.history_retention);
            let most = -(EndedOwnerships::MOST as i32);
            let push = doc! { "$each": [ownership_document(ownership)], "$slice": most };
            let change = doc! {
                "$push": { OWNERSHIPS: push }, "$max": { EXPIRES_AT: date(expiry) },
            };
            doc! { "q": { ID: key.as_str() }, "u": change, "upsert": true }
        };
        self.update_many(ENDED, ended.iter().map(update).collect()).await
    }

    /// Takes a user out of all ended ownerships.
    pub async fn forget_ownerships(&mut self, user: LocalityId) -> Result<(), Fault> {
        self.forget(doc! { format!("{OWNERSHIPS}.{USER}"): id_value(user) }, user).await
    }

    /// Takes users out of the ended ownerships of keys.
    pub async fn forget_those(
        &mut self,
        those: &[(&IdentityKey, LocalityId)],
    ) -> Result<(), Fault> {
        let mut keys: BTreeMap<LocalityId, Vec<Bson>> = BTreeMap::new();
        for (key, user) in those {
            keys.entry(*user).or_default().push(key.as_str().into());
        }
        for (user, keys) in keys {
            for keys in keys.chunks(STATEMENT) {
                self.forget(by_id(keys.to_vec()), user).await?;
            }
        }
        Ok(())
    }

    /// Takes a user out of the ended ownerships that a filter finds.
    async fn forget(&mut self, filter: Document, user: LocalityId) -> Result<(), Fault> {
        let collection = self.collections.database.collection::<RawDocumentBuf>(ENDED);
        let find = collection.find(filter).max_time(self.collections.timeout);
        let mut cursor = find.session(&mut self.session).await?;
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        while cursor.advance(&mut self.session).await? {
            let document = cursor.current();
            let key = Bson::String(key_of(document)?.to_owned());
            let mut ended = read_ended(document)?;
            if ended.forget(user) {
                let left: Vec<_> = ended.0.iter().map(ownership_document).collect();
                changed.push(doc! { "q": { ID: key }, "u": { "$set": { OWNERSHIPS: left } } });
            } else {
                gone.push(key);
            }
        }
        for gone in gone.chunks(STATEMENT) {
            collection.delete_many(by_id(gone.to_vec())).session(&mut self.session).await?;
        }
        self.update_many(ENDED, changed).await
    }

    /// Sends updates of documents that are all there.
    pub(super) async fn update_many(
        &mut self,
        collection: &str,
        updates: Vec<Document>,
    ) -> Result<(), Fault> {
        let database = &self.collections.database;
        for updates in updates.chunks(STATEMENT) {
            let command = doc! { "update": collection, "updates": updates.to_vec() };
            let reply = database.run_command(command).session(&mut self.session).await?;
            let found = reply.get_i32("n").unwrap_or_default();
            all_there(found.try_into().unwrap_or_default(), updates.len())?;
        }
        Ok(())
    }
}

/// An ended ownership inside its document. The user stands outside of the rest, to be found by.
fn ownership_document(ownership: &Ownership) -> Document {
    let mut document = doc! { OWNERSHIP: bytes(encode_ownership(ownership)) };
    if let Some(user) = ownership.user {
        document.insert(USER, id_value(user));
    }
    document
}

/// The ended ownerships of a document, and their key.
pub fn read_row(document: &RawDocument) -> Result<(IdentityKey, EndedOwnerships), Fault> {
    let key = IdentityKey::from_stored(key_of(document)?.to_owned());
    let key = key.ok_or_else(|| Fault::damaged("ended ownerships without a key"))?;
    Ok((key, read_ended(document)?))
}

fn read_ended(document: &RawDocument) -> Result<EndedOwnerships, Fault> {
    let [ownerships] = fields(document, [OWNERSHIPS])?;
    let mut ended = EndedOwnerships::default();
    for element in needed(OWNERSHIPS, ownerships, RawBsonRef::as_array)? {
        let element = element.map_err(Fault::damaged)?;
        let element = needed(OWNERSHIPS, Some(element), RawBsonRef::as_document)?;
        let [ownership] = fields(element, [OWNERSHIP])?;
        let ownership = needed(OWNERSHIP, ownership, RawBsonRef::as_binary)?;
        ended.0.push(decode_ownership(ownership.bytes).map_err(Fault::damaged)?);
    }
    Ok(ended)
}
