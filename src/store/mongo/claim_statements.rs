//! The statements of a transaction on claims: many claims in one statement each.

use std::collections::HashMap;

use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{Error as DriverError, ErrorKind};

use super::error::Fault;
use super::freshness::Key;
use super::schema::{ID, IDENTITIES, by_id, claim_change, claim_document, key_value, read_claim};
use super::transaction::{Transaction, all_there, raw};
use crate::directory::model::claim::{Claim, ClaimWrite};
use crate::directory::mutation::read_set::ReadSet;
use crate::identifier::IdentityKey;

impl Transaction<'_> {
    pub(super) async fn read_claims(
        &mut self,
        keys: Vec<IdentityKey>,
        read_set: &mut ReadSet,
    ) -> Result<(), Fault> {
        let mut claims = self.find_claims(keys.clone()).await?;
        for key in keys {
            let claim = claims.remove(key.as_str());
            read_set.add_claim(key, claim);
        }
        Ok(())
    }

    /// Those of the keys under which there is a claim, with it.
    pub(super) async fn find_claims(
        &mut self,
        keys: Vec<IdentityKey>,
    ) -> Result<HashMap<String, Claim>, Fault> {
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let find = self.collections.identities.find(by_id(keys.iter().map(key_value).collect()));
        let find = find.batch_size(keys.len() as u32 + 1).max_time(self.collections.timeout);
        let mut cursor = find.session(&mut self.session).await?;
        let mut claims = HashMap::with_capacity(keys.len());
        while cursor.advance(&mut self.session).await? {
            let (key, claim) = read_claim(cursor.current())?;
            claims.insert(key.to_owned(), claim);
        }

        self.note(keys.into_iter().map(Key::Claim));
        Ok(claims)
    }

    /// Writes claims, all deletions before all insertions.
    pub async fn write_claims(
        &mut self,
        claims: &[(&IdentityKey, &ClaimWrite)],
    ) -> Result<(), Fault> {
        self.needs_epoch |= !claims.is_empty();
        let (mut deleted, mut updated, mut inserted) = (Vec::new(), Vec::new(), Vec::new());
        for (key, write) in claims {
            match *write {
                ClaimWrite::Delete => deleted.push(key_value(key)),
                ClaimWrite::Update(claim) => {
                    updated.push((key_value(key), claim_change(key, claim)))
                }
                ClaimWrite::Insert(claim) => inserted.push(raw(&claim_document(key, claim))?),
            }
        }

        self.delete_claims(deleted).await?;
        self.update_claims(updated).await?;
        if inserted.is_empty() {
            return Ok(());
        }

        let outcome =
            self.collections.identities.insert_many(inserted).session(&mut self.session).await;
        if self.collections.is_routed {
            let keys = claims.iter().filter(|(_, write)| matches!(write, ClaimWrite::Insert(_)));
            let answered = outcome.as_ref().map_or_else(inserted_before, |_| claims.len());
            self.inserted.extend(keys.take(answered).map(|(key, _)| Key::Claim((*key).clone())));
        }

        Ok(outcome.map(drop)?)
    }

    async fn delete_claims(&mut self, keys: Vec<Bson>) -> Result<(), Fault> {
        if keys.is_empty() {
            return Ok(());
        }
        let count = keys.len();
        let deleted =
            self.collections.identities.delete_many(by_id(keys)).session(&mut self.session).await?;
        all_there(deleted.deleted_count, count)
    }

    /// Many claims in one statement, each with what it becomes: the driver has no call for that.
    async fn update_claims(&mut self, claims: Vec<(Bson, Document)>) -> Result<(), Fault> {
        if claims.is_empty() {
            return Ok(());
        }
        let count = claims.len();
        let update = |(key, change): (Bson, Document)| doc! { "q": { ID: key }, "u": change };
        let updates: Vec<Document> = claims.into_iter().map(update).collect();
        let command = doc! { "update": IDENTITIES, "updates": updates };
        let reply =
            self.collections.database.run_command(command).session(&mut self.session).await?;
        all_there(reply.get_i32("n").unwrap_or_default().try_into().unwrap_or_default(), count)
    }
}

/// The number of documents of an ordered insert that were inserted before one was refused.
fn inserted_before(error: &DriverError) -> usize {
    match &*error.kind {
        ErrorKind::InsertMany(error) => {
            error.write_errors.iter().flatten().next().map_or(0, |error| error.index + 1)
        }
        _ => 0,
    }
}
