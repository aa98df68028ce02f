//! The statements of a transaction on claims, each for many claims.

use std::collections::HashMap;

use mongodb::bson::{Bson, doc};

use crate::client::error::Fault;
use crate::command::write::{WriteCommand, parts};
use crate::database::freshness::Key;
use crate::database::transaction::{Transaction, expect_matched};
use crate::schema::bson::{by_id, key_value, raw};
use crate::schema::claim::{claim_change, claim_document, read_claim};
use crate::schema::fields::{EPOCH, ID, IDENTITIES};
use polynym_directory::{Claim, ClaimWrite, ReadSet};
use polynym_identifier::IdentityKey;

impl Transaction<'_> {
    pub async fn read_claims(
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

    /// The claims of the keys that have one.
    pub async fn find_claims(
        &mut self,
        keys: Vec<IdentityKey>,
    ) -> Result<HashMap<String, Claim>, Fault> {
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let (from, filter) =
            (&self.collections.identities, by_id(keys.iter().map(key_value).collect()));
        let mut claims = HashMap::with_capacity(keys.len());
        for document in self.find_documents(from, filter, Some(keys.len() + 1)).await? {
            let (key, claim) = read_claim(&document)?;
            claims.insert(key.to_owned(), claim);
        }

        self.record_reads(keys.into_iter().map(Key::Claim));
        Ok(claims)
    }

    /// Writes claims, all deletions before all insertions.
    pub async fn write_claims(
        &mut self,
        claims: &[(&IdentityKey, &ClaimWrite)],
    ) -> Result<(), Fault> {
        let (mut deleted, mut updated, mut inserted) = (Vec::new(), Vec::new(), Vec::new());
        let (new, present): (Vec<_>, Vec<_>) =
            claims.iter().partition(|(_, write)| matches!(write, ClaimWrite::Insert(_)));
        let first =
            |claims: &[&(&IdentityKey, &ClaimWrite)]| claims.first().map(|(key, _)| key_value(key));
        for (key, write) in claims {
            match *write {
                ClaimWrite::Delete => deleted.push(key_value(key)),
                ClaimWrite::Update(claim) => updated
                    .push(doc! { "q": { ID: key_value(key) }, "u": claim_change(key, claim) }),
                ClaimWrite::Insert(claim) => inserted.push(raw(&claim_document(key, claim))?),
            }
        }

        self.confirm_by_claim(first(&present)).await?;
        self.delete_claims(deleted).await?;
        self.update_many(IDENTITIES, updated).await?;
        let mut keys = new.iter().map(|(key, _)| *key);
        for claims in parts(inserted) {
            let keys: Vec<_> = keys.by_ref().take(claims.len()).collect();
            let reply = self.send(WriteCommand::insert(IDENTITIES, claims)).await?;
            if self.collections.is_routed {
                let answered = keys.iter().take(reply.attempted(keys.len()));
                self.inserted.extend(answered.map(|key| Key::Claim((*key).clone())));
            }
            reply.into_count()?;
        }
        self.confirm_by_claim(first(&new)).await
    }

    /// Ensures that the writes succeed only in the current epoch, unless a user or a tenant has
    /// done so: the claim of this key gets the epoch, which the validator checks, and loses it
    /// again.
    async fn confirm_by_claim(&mut self, key: Option<Bson>) -> Result<(), Fault> {
        let Some(key) = key.filter(|_| !self.is_in_epoch) else { return Ok(()) };
        let updates = [doc! { "$set": { EPOCH: self.epoch } }, doc! { "$unset": { EPOCH: true } }]
            .map(|change| doc! { "q": { ID: key.clone() }, "u": change });
        self.update_many(IDENTITIES, updates.into()).await?;
        self.is_in_epoch = true;
        Ok(())
    }

    async fn delete_claims(&mut self, keys: Vec<Bson>) -> Result<(), Fault> {
        if keys.is_empty() {
            return Ok(());
        }
        let count = keys.len();
        let deleted = self.execute(WriteCommand::delete(IDENTITIES, &by_id(keys))?).await?;
        expect_matched(deleted, count)
    }
}
