//! Look-ups: the claims by their keys, then the users by their ids, each one find that goes to the shards that own what
//! is looked for. Documents are read where they lie in the server's reply.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use mongodb::bson::{Bson, RawDocument, RawDocumentBuf};
use mongodb::options::{ReadConcern, ReadPreference, SelectionCriteria};
use mongodb::raw_batch_cursor::RawBatch;
use mongodb::{ClientSession, Collection};
use tokio::time::Instant;

use super::Collections;
use super::commit::confirm;
use super::error::Fault;
use super::pauses::while_transient;
use super::schema::{StoredUser, by_id, id_value, read_claim};
use super::transaction::Transaction;
use crate::directory::{Consistency, Found, Resolved, Tenant, WireUser};
use crate::identifier::IdentityKey;
use crate::locality::LocalityId;

/// How many linearizable look-ups of one batch are under way at once: each is alone in its find.
const LINEARIZABLE_AT_ONCE: usize = 16;

/// What a claim and its user say of a key.
#[derive(Clone)]
enum Pair {
    /// Nobody owns it.
    Free,
    /// Its owner lists it.
    Owned(Found),
    /// The user to whom the claim points does not list it: one of the two was read before a commit, the other after.
    Torn,
}

/// Reads of one kind: how fresh, and from where.
enum Reads<'s> {
    Plain { concern: ReadConcern, criteria: SelectionCriteria, time: Duration },
    Snapshot(&'s mut ClientSession),
}

impl Collections {
    /// The owners of `keys`, in their order.
    pub async fn resolve(&self, keys: &[IdentityKey], consistency: Consistency) -> Result<Resolved, Fault> {
        if consistency != Consistency::Linearizable {
            return self.resolve_together(keys, consistency).await;
        }
        let one = |n: usize| self.resolve_together(&keys[n..=n], consistency);
        let each = stream::iter(0..keys.len()).map(one).buffered(LINEARIZABLE_AT_ONCE);
        let each: Vec<Resolved> = each.try_collect().await?;
        let reads = each.iter().map(|resolved| resolved.reads).sum();
        Ok(Resolved { found: each.into_iter().flat_map(|resolved| resolved.found).collect(), reads })
    }

    /// Claim and user are not one snapshot: where they disagree, both are read again, and then in one transaction, which
    /// sees one moment on all shards.
    async fn resolve_together(&self, keys: &[IdentityKey], consistency: Consistency) -> Result<Resolved, Fault> {
        let mut plain = self.plain(consistency);
        let (mut pairs, mut reads) = self.pairs(keys, &mut plain).await?;
        for exact in [false, true] {
            let torn: Vec<usize> = (0..keys.len()).filter(|n| matches!(pairs[*n], Pair::Torn)).collect();
            if torn.is_empty() {
                break;
            }
            let keys: Vec<IdentityKey> = torn.iter().map(|n| keys[*n].clone()).collect();
            let (again, more) =
                if exact { self.one_moment(&keys).await? } else { self.pairs(&keys, &mut plain).await? };
            reads += more;
            torn.into_iter().zip(again).for_each(|(n, pair)| pairs[n] = pair);
        }
        let found = pairs.into_iter().map(|pair| match pair {
            Pair::Free => Ok(None),
            Pair::Owned(found) => Ok(Some(found)),
            Pair::Torn => Err(Fault::damaged("a claim of a user who does not list it")),
        });
        Ok(Resolved { found: found.collect::<Result<_, _>>()?, reads })
    }

    /// The users of `tenant` with these ids, in their order.
    pub async fn get(&self, tenant: &Tenant, ids: &[LocalityId]) -> Result<Vec<Option<WireUser>>, Fault> {
        let mut plain = self.plain(Consistency::Latest);
        let users = self.users(ids.iter().copied(), &mut plain).await?;
        let user = |id| users.get(id).filter(|user| user.tenant() == tenant.as_str().as_bytes());
        Ok(ids.iter().map(|id| user(id).cloned()).collect())
    }

    fn plain(&self, consistency: Consistency) -> Reads<'static> {
        let (concern, preference) = match consistency {
            Consistency::Latest => (ReadConcern::majority(), ReadPreference::Primary),
            Consistency::Linearizable => (ReadConcern::linearizable(), ReadPreference::Primary),
            Consistency::Eventual => (ReadConcern::majority(), ReadPreference::Nearest { options: None }),
        };
        Reads::Plain { concern, criteria: SelectionCriteria::ReadPreference(preference), time: self.timeout }
    }

    /// What claims and users say of `keys` at one moment on all shards.
    async fn one_moment(&self, keys: &[IdentityKey]) -> Result<(Vec<Pair>, u32), Fault> {
        let deadline = Instant::now() + self.timeout;
        let look = || async {
            let mut transaction = Transaction::begin(self).await?;
            match self.pairs(keys, &mut Reads::Snapshot(transaction.session())).await {
                // A snapshot may be ahead of what a majority has: the commit waits for it.
                Ok(pairs) => confirm(transaction, deadline).await.map(|()| pairs),
                Err(fault) => {
                    transaction.abort().await;
                    Err(fault)
                }
            }
        };
        while_transient(deadline, look).await
    }

    /// What claims and users say of `keys`, in order, and how many finds that took.
    async fn pairs(&self, keys: &[IdentityKey], reads: &mut Reads<'_>) -> Result<(Vec<Pair>, u32), Fault> {
        if keys.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let owners = self.owners(keys, reads).await?;
        if owners.iter().all(Option::is_none) {
            return Ok((vec![Pair::Free; keys.len()], 1));
        }
        let users = self.users(owners.iter().flatten().copied(), reads).await?;
        let pair = |(key, owner): (&IdentityKey, &Option<LocalityId>)| {
            let Some(owner) = owner else { return Pair::Free };
            let found = users.get(owner).and_then(|user| Found::new(user.clone(), key));
            found.map_or(Pair::Torn, Pair::Owned)
        };
        Ok((keys.iter().zip(&owners).map(pair).collect(), 2))
    }

    /// For each key, in order, the owner that its claim names.
    async fn owners(&self, keys: &[IdentityKey], reads: &mut Reads<'_>) -> Result<Vec<Option<LocalityId>>, Fault> {
        let mut owners: HashMap<&str, Option<LocalityId>> = keys.iter().map(|key| (key.as_str(), None)).collect();
        let ids = owners.keys().map(|key| Bson::String((*key).to_owned())).collect();
        for batch in reads.find(&self.identities, ids).await? {
            for document in documents(&batch)? {
                let (key, claim) = read_claim(document?)?;
                if let Some(owner) = owners.get_mut(key) {
                    *owner = claim.resolves_to();
                }
            }
        }
        Ok(keys.iter().map(|key| owners.get(key.as_str()).copied().flatten()).collect())
    }

    async fn users(
        &self,
        ids: impl Iterator<Item = LocalityId>,
        reads: &mut Reads<'_>,
    ) -> Result<HashMap<LocalityId, WireUser>, Fault> {
        let mut ids: Vec<LocalityId> = ids.collect();
        ids.sort_unstable();
        ids.dedup();
        let mut users = HashMap::with_capacity(ids.len());
        if ids.is_empty() {
            return Ok(users);
        }
        for batch in reads.find(&self.users, ids.into_iter().map(id_value).collect()).await? {
            for document in documents(&batch)? {
                let user = StoredUser::read(document?)?;
                users.insert(user.id, user.wire);
            }
        }
        Ok(users)
    }
}

impl Reads<'_> {
    /// The documents with these ids, in the batches in which they arrive: a reply holds 16 MiB.
    async fn find(&mut self, from: &Collection<RawDocumentBuf>, ids: Vec<Bson>) -> Result<Vec<RawBatch>, Fault> {
        // One more than can come, or the server would keep a cursor open to say that this was all.
        let size = ids.len() as u32 + 1;
        let find = from.find(by_id(ids)).batch_size(size);
        let batches = match self {
            Self::Plain { concern, criteria, time } => {
                let find = find.read_concern(concern.clone()).selection_criteria(criteria.clone()).max_time(*time);
                find.batch().await?.try_collect().await?
            }
            Self::Snapshot(session) => {
                let mut cursor = find.session(&mut **session).batch().await?;
                cursor.stream(session).try_collect().await?
            }
        };
        Ok(batches)
    }
}

fn documents(batch: &RawBatch) -> Result<impl Iterator<Item = Result<&RawDocument, Fault>>, Fault> {
    let documents = batch.doc_slices()?.into_iter();
    Ok(documents.map(|value| {
        let value = value.map_err(Fault::damaged)?;
        value.as_document().ok_or_else(|| Fault::damaged("a reply with something that is no document"))
    }))
}
