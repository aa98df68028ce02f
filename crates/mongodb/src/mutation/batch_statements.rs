//! The statements of a transaction for many mutations, each for many documents.

use std::collections::HashMap;

use locality_uuid::LocalityId;
use mongodb::Collection;
use mongodb::bson::{Bson, RawDocumentBuf};

use crate::client::error::Fault;
use crate::database::transaction::Transaction;
use crate::schema::bson::{by_id, id_of, id_value, raw};
use crate::schema::fields::{JOURNAL, REQUESTS, USERS};
use crate::schema::preserved::with_epoch;
use crate::schema::request::{StoredRequest, document_of, request_id};
use crate::schema::tail::{Bucket, Tail};
use crate::schema::user::{StoredUser, user_document};
use polynym_directory::{Event, IdempotencyKey, Mutation, ReadRequest, ReadSet, Record, WriteSet};
use polynym_store_common::searched::IndexedAttributes;

impl Transaction<'_> {
    /// Reads the users and claims that the decisions need into the read sets. Clears the needs.
    pub async fn read_all(
        &mut self,
        needs: &mut [ReadRequest],
        read_sets: &mut [ReadSet],
    ) -> Result<(), Fault> {
        let keys = needs.iter().flat_map(|needs| &needs.claims).cloned();
        let claims = self.find_claims(keys.collect()).await?;
        let ids = needs.iter().flat_map(|needs| &needs.users).map(|id| id_value(*id));
        let documents = self.find_all(&self.collections.users, ids.collect()).await?;
        let users: Vec<_> = documents
            .iter()
            .map(|document| StoredUser::read(document))
            .collect::<Result<_, _>>()?;
        let names = self.collections.names_of(&users).await?;
        let record = |user: &StoredUser| Ok((user.id, names.record(user)?));
        let found: HashMap<_, _> = users.iter().map(record).collect::<Result<_, Fault>>()?;

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

    /// The records of requests that were carried out, by the ids of their documents.
    pub async fn requests<'m>(
        &mut self,
        requests: impl Iterator<Item = &'m IdempotencyKey>,
    ) -> Result<HashMap<LocalityId, StoredRequest>, Fault> {
        let ids = requests.map(request_id).collect();
        let found = self.find_all(&self.collections.requests, ids).await?;
        let read =
            |document: &RawDocumentBuf| Ok((id_of(document)?, StoredRequest::read(document)?));
        found.iter().map(read).collect()
    }

    /// Records new requests.
    pub async fn record_requests(
        &mut self,
        requests: Vec<(&IdempotencyKey, &WriteSet, &Mutation)>,
    ) -> Result<(), Fault> {
        let document =
            |(request, write_set, mutation): &(&IdempotencyKey, &WriteSet, &Mutation)| {
                raw(&document_of(request, write_set, mutation))
            };
        let documents = requests.iter().map(document).collect::<Result<Vec<_>, _>>()?;
        self.insert_many(REQUESTS, documents).await
    }

    /// Inserts the new users of mutations of one tenant, of which `mutation` is the first, with
    /// their first events. `tokens` has the names of all of their attributes.
    pub async fn insert_users(
        &mut self,
        mutation: &Mutation,
        users: &[&Record],
        events: &HashMap<LocalityId, &Event>,
        tokens: IndexedAttributes<'_>,
    ) -> Result<(), Fault> {
        let (names, mut buckets) = (self.event_names(mutation), Vec::new());
        let document = |record: &&Record| {
            let (mut tail, id) = (Tail::default(), record.id());
            if let Some(event) = events.get(&id) {
                let expiry = event.time.plus(mutation.policies.history_retention);
                let large = tail.add(None, event, &names);
                let statement = |bucket: Bucket| bucket.statement(&mutation.tenant, id, expiry);
                buckets.extend(large.into_iter().map(statement));
            }
            let document = user_document(record, tokens, &tail, self.written_revision(id));
            raw(&with_epoch(document, self.epoch, None))
        };
        let documents = users.iter().map(document).collect::<Result<Vec<_>, _>>()?;
        self.is_in_epoch |= !documents.is_empty();
        self.insert_many(USERS, documents).await?;
        self.update_many(JOURNAL, buckets).await
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
        let batch_size = ids.len() + 1;
        self.find_documents(from, by_id(ids), Some(batch_size)).await
    }
}
