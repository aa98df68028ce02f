//! The statements of a transaction for many mutations: many documents in one statement each.

use std::collections::HashMap;

use locality_uuid::LocalityId;
use mongodb::Collection;
use mongodb::bson::{Bson, RawDocumentBuf};

use super::error::Fault;
use super::preserved::stamped;
use super::schema::{
    StoredRequest, StoredUser, by_id, id_of, id_value, request_document, request_id, user_document,
};
use super::tail::Tail;
use super::transaction::{Transaction, raw};
use crate::directory::model::event::Event;
use crate::directory::model::record::Record;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::mutation::IdempotencyKey;
use crate::directory::mutation::read_set::{ReadRequest, ReadSet};
use crate::store::searched::IndexedAttributes;

impl Transaction<'_> {
    /// Adds to the read sets what the decisions need of users and claims. The needs are taken out.
    pub async fn read_all(
        &mut self,
        needs: &mut [ReadRequest],
        read_sets: &mut [ReadSet],
    ) -> Result<(), Fault> {
        let claims = needs.iter().flat_map(|needs| &needs.claims).cloned();
        let claims = self.find_claims(claims.collect()).await?;
        let users = needs.iter().flat_map(|needs| &needs.users).map(|id| id_value(*id));
        let users = self.find_all(&self.collections.users.clone(), users.collect()).await?;
        let mut found = HashMap::with_capacity(users.len());
        for document in users {
            let stored = StoredUser::read(&document)?;
            found.insert(stored.id, self.collections.record(stored).await?);
        }

        for (needs, read_set) in needs.iter_mut().zip(read_sets) {
            let needs = std::mem::take(needs);
            for key in needs.claims {
                let claim = claims.get(key.as_str()).cloned();
                read_set.add_claim(key, claim);
            }
            for id in needs.users {
                read_set.add_user(id, found.get(&id).cloned());
            }
        }
        Ok(())
    }

    /// The records of those of the requests that are remembered, by their documents' ids.
    pub async fn requests<'m>(
        &mut self,
        requests: impl Iterator<Item = &'m IdempotencyKey>,
    ) -> Result<HashMap<LocalityId, StoredRequest>, Fault> {
        let ids = requests.map(request_id).collect();
        let found = self.find_all(&self.collections.requests.clone(), ids).await?;
        let read =
            |document: &RawDocumentBuf| Ok((id_of(document)?, StoredRequest::read(document)?));
        found.iter().map(read).collect()
    }

    /// Remembers that requests, which were not remembered before, were carried out.
    pub async fn remember_all(
        &mut self,
        requests: Vec<(&IdempotencyKey, Option<LocalityId>, Timestamp)>,
    ) -> Result<(), Fault> {
        let document = |(request, subject, time): &(&IdempotencyKey, _, _)| {
            raw(&request_document(request, IdempotencyKey::stored_subject(*subject), *time))
        };
        let documents = requests.iter().map(document).collect::<Result<Vec<_>, _>>()?;
        self.insert_all(&self.collections.requests.clone(), documents).await
    }

    /// Stores new users with their first events. `tokens` has the names of all of their attributes,
    /// where they are stored by tokens.
    pub async fn insert_users(
        &mut self,
        users: &[&Record],
        events: &HashMap<LocalityId, &Event>,
        tokens: Option<IndexedAttributes<'_>>,
    ) -> Result<(), Fault> {
        let document = |record: &&Record| {
            let (mut tail, id) = (Tail::default(), record.id());
            if let Some(event) = events.get(&id).filter(|_| self.has_journal) {
                tail.add(None, event);
            }
            let document = user_document(record, tokens, &tail, self.written_revision(id));
            raw(&stamped(document, self.epoch, None))
        };
        let documents = users.iter().map(document).collect::<Result<Vec<_>, _>>()?;
        self.is_in_epoch |= !documents.is_empty();
        self.insert_all(&self.collections.users.clone(), documents).await
    }

    async fn insert_all(
        &mut self,
        into: &Collection<RawDocumentBuf>,
        documents: Vec<RawDocumentBuf>,
    ) -> Result<(), Fault> {
        if !documents.is_empty() {
            into.insert_many(documents).session(&mut self.session).await?;
        }
        Ok(())
    }

    /// The documents with these ids.
    async fn find_all(
        &mut self,
        from: &Collection<RawDocumentBuf>,
        ids: Vec<Bson>,
    ) -> Result<Vec<RawDocumentBuf>, Fault> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let size = ids.len() as u32 + 1;
        let find = from.find(by_id(ids)).batch_size(size).max_time(self.collections.timeout);
        let mut cursor = find.session(&mut self.session).await?;
        let mut found = Vec::new();
        while cursor.advance(&mut self.session).await? {
            found.push(cursor.current().to_owned());
        }
        Ok(found)
    }
}
