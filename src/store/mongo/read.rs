//! Look-ups: the claims by their keys, then the users by their ids, each one find that goes to the
//! shards that own what is looked for. Documents are read where they lie in the server's reply.

use std::collections::HashMap;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures_util::{StreamExt, stream};
use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, RawDocument, doc};
use mongodb::options::{ReadConcern, ReadPreference, SelectionCriteria};

use super::attributes::ATTRIBUTES;
use super::collections::Collections;
use super::error::Fault;
use super::find::{Finds, documents};
use super::freshness::Key;
use super::moment::Moment;
use super::schema::{REVISION, StoredUser, WIRE, id_of, id_value, key_of, read_claim};
use crate::directory::encoded::encoded_user::{EncodedUser, Found};
use crate::directory::error::ItemError;
use crate::directory::model::tenant::Tenant;
use crate::directory::stores::{ANSWER_BYTES, Consistency, ItemResult, Resolved, View};
use crate::identifier::IdentityKey;

/// Linearizable look-ups of one batch that run concurrently: each is alone in its find.
const LINEARIZABLE_AT_ONCE: usize = 16;

/// The claim of a key, with its user.
#[derive(Clone)]
pub(super) enum Pair {
    /// The key has no owner.
    Free,
    /// Its owner lists it.
    Owned(Found),
    /// The user that the claim points to does not list it: one of the two was read before a commit,
    /// the other after.
    Torn,
    /// One of the two cannot be read.
    Failed(ItemError),
}

impl Pair {
    /// The bytes of the user.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Owned(found) => found.user.as_bytes().len(),
            Self::Free | Self::Torn | Self::Failed(_) => 0,
        }
    }
}

/// A user that is looked for.
enum Wanted<'r> {
    /// None was found.
    Absent,
    Document(&'r RawDocument),
    Read(ItemResult<EncodedUser>),
}

impl Collections {
    /// The owners of `keys`, in their order.
    pub async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
    ) -> Result<Resolved, Fault> {
        if consistency != Consistency::Linearizable {
            return self.resolve_together(keys, consistency, view).await;
        }
        let is_full = AtomicBool::new(false);
        let one = |n: usize| self.resolve_together(&keys[n..=n], consistency, view);
        let rest = stream::iter(0..keys.len()).take_while(|_| ready(!is_full.load(Relaxed)));
        let mut each = std::pin::pin!(rest.map(one).buffered(LINEARIZABLE_AT_ONCE));
        let (mut all, mut bytes) =
            (Resolved { found: Vec::with_capacity(keys.len()), reads: 0 }, 0);
        while let Some(outcome) = each.next().await {
            let one = outcome
                .unwrap_or_else(|fault| Resolved { found: vec![Err(fault.into())], reads: 1 });
            bytes += one
                .found
                .iter()
                .flatten()
                .flatten()
                .map(|found| found.user.as_bytes().len())
                .sum::<usize>();
            is_full.fetch_or(bytes > ANSWER_BYTES, Relaxed);
            all.reads += one.reads;
            all.found.extend(one.found);
        }

        Ok(all)
    }

    /// Claim and user are not one snapshot: where they disagree, both are read again, and then in
    /// one transaction, which sees one moment on all shards.
    async fn resolve_together(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
    ) -> Result<Resolved, Fault> {
        let mut plain = self.plain(consistency);
        let (mut pairs, mut reads) = self.guessed_pairs(keys, consistency, view).await?;
        for exact in [false, true] {
            let torn: Vec<usize> =
                (0..pairs.len()).filter(|n| matches!(pairs[*n], Pair::Torn)).collect();
            if torn.is_empty() {
                break;
            }
            let keys: Vec<IdentityKey> = torn.iter().map(|n| keys[*n].clone()).collect();
            let again = if exact {
                self.one_moment(&keys, view).await
            } else {
                self.pairs(&keys, &mut plain, view).await
            };
            match again {
                Ok((again, more)) => {
                    reads += more;
                    // Keys after one that did not fit do not fit either.
                    pairs.truncate(torn.get(again.len()).copied().unwrap_or(usize::MAX));
                    torn.into_iter().zip(again).for_each(|(n, pair)| pairs[n] = pair);
                }
                Err(fault) => {
                    let error = ItemError::from(fault);
                    torn.into_iter().for_each(|n| pairs[n] = Pair::Failed(error.clone()));
                }
            }
        }

        let found = pairs.into_iter().map(|pair| match pair {
            Pair::Free => Ok(None),
            Pair::Owned(found) => Ok(Some(found)),
            Pair::Torn => Err(Fault::damaged("a claim of a user who does not list it").into()),
            Pair::Failed(error) => Err(error),
        });

        Ok(Resolved { found: found.collect(), reads })
    }

    /// The users of `tenant` with these ids, in their order.
    pub async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Fault> {
        let mut plain = self.plain(Consistency::Latest);
        let (users, _) = self.users(ids.iter().copied().map(Some), &mut plain, view).await?;
        Ok(of_tenant(tenant, users))
    }

    /// The same users at one moment on all shards, which is not before the call.
    pub async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Fault> {
        let mut moment = Moment::new(self);
        loop {
            let mut transaction = moment.begin().await?;
            let users = self
                .users(ids.iter().copied().map(Some), &mut Finds::Snapshot(&mut transaction), view)
                .await;
            if let Some((users, _)) = moment.end(transaction, users).await? {
                return Ok(of_tenant(tenant, users));
            }
        }
    }

    pub(super) fn plain(&self, consistency: Consistency) -> Finds<'static, 'static> {
        let (concern, preference) = match consistency {
            Consistency::Latest => (ReadConcern::majority(), ReadPreference::Primary),
            Consistency::Linearizable => (ReadConcern::linearizable(), ReadPreference::Primary),
            Consistency::Eventual => {
                (ReadConcern::majority(), ReadPreference::Nearest { options: None })
            }
        };

        Finds::Plain {
            concern,
            criteria: SelectionCriteria::ReadPreference(preference),
            time: self.timeout,
        }
    }

    /// The claims and users of `keys` at one moment on all shards, which is not before the call.
    async fn one_moment(
        &self,
        keys: &[IdentityKey],
        view: View,
    ) -> Result<(Vec<Pair>, u32), Fault> {
        let mut moment = Moment::new(self);
        loop {
            let mut transaction = moment.begin().await?;
            let pairs = self.pairs(keys, &mut Finds::Snapshot(&mut transaction), view).await;
            if let Some(found) = moment.end(transaction, pairs).await? {
                return Ok(found);
            }
        }
    }

    /// The claims and users of `keys`, in order, until the users have [`ANSWER_BYTES`]; and the
    /// number of finds.
    pub(super) async fn pairs(
        &self,
        keys: &[IdentityKey],
        finds: &mut Finds<'_, '_>,
        view: View,
    ) -> Result<(Vec<Pair>, u32), Fault> {
        if keys.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let owners = self.owners(keys, finds).await?;
        if owners.iter().all(|owner| matches!(owner, Ok(None))) {
            return Ok((vec![Pair::Free; keys.len()], 1));
        }

        let ids = owners.iter().map(|owner| owner.as_ref().ok().copied().flatten());
        let (users, reads) = self.users(ids, finds, view).await?;
        type Read<'k> = ((&'k IdentityKey, ItemResult<LocalityId>), ItemResult<EncodedUser>);
        let pair = |((key, owner), user): Read<'_>| match (owner, user) {
            (Err(error), _) | (_, Err(error)) => Pair::Failed(error),
            (Ok(None), _) => Pair::Free,
            (Ok(Some(owner)), Ok(user)) => {
                let found = user.and_then(|user| Found::new(user, key));
                found.as_ref().inspect(|_| self.hints.learn(key, owner));
                found.map_or(Pair::Torn, Pair::Owned)
            }
        };
        let pairs = keys.iter().zip(owners).zip(users).map(pair).collect();

        Ok((pairs, 1 + reads))
    }

    /// For each key, in order, the owner that its claim names.
    async fn owners(
        &self,
        keys: &[IdentityKey],
        finds: &mut Finds<'_, '_>,
    ) -> Result<Vec<ItemResult<LocalityId>>, Fault> {
        let mut owners: HashMap<&str, ItemResult<LocalityId>> =
            keys.iter().map(|key| (key.as_str(), Ok(None))).collect();
        let ids = owners.keys().map(|key| Bson::String((*key).to_owned())).collect();
        let reply = finds.find(&self.identities, ids, None).await?;
        finds.note(keys.iter().cloned().map(Key::Claim));
        if !reply.is_whole {
            return Err(Fault::damaged("more claims than a reply can hold"));
        }

        for batch in &reply.batches {
            for document in documents(batch)? {
                let document = document?;
                if let Some(owner) = owners.get_mut(key_of(document)?) {
                    *owner = read_claim(document)
                        .map(|(_, claim)| claim.resolves_to())
                        .map_err(ItemError::from);
                }
            }
        }

        Ok(keys.iter().map(|key| owners.get(key.as_str()).cloned().unwrap_or(Ok(None))).collect())
    }

    /// The users with these ids, in their order, until they have [`ANSWER_BYTES`]; and how many
    /// finds that took. A reply that is not whole stands for large users: those that it leaves out
    /// are asked for in smaller numbers.
    pub(super) async fn users(
        &self,
        ids: impl Iterator<Item = Option<LocalityId>> + Clone + Send,
        finds: &mut Finds<'_, '_>,
        view: View,
    ) -> Result<(Vec<ItemResult<EncodedUser>>, u32), Fault> {
        let mut users = Vec::with_capacity(ids.size_hint().0);
        let (mut bytes, mut reads, mut most) = (0, 0, usize::MAX);
        loop {
            let rest = ids.clone().skip(users.len());
            let wanted = first(rest.clone(), most);
            if wanted.is_empty() {
                users.extend(rest.map(|_| Ok(None)));
                return Ok((users, reads));
            }
            let keys = wanted.keys().copied().map(id_value).collect();
            let reply = finds.find(&self.users, keys, Some(projection(view))).await?;
            finds.note(wanted.keys().copied().map(Key::User));
            let mut wanted = wanted;
            reads += 1;
            let (mut count, mut size) = (0, 0);
            for batch in &reply.batches {
                for document in documents(batch)? {
                    let document = document?;
                    (count, size) = (count + 1, size + document.as_bytes().len());
                    wanted.insert(id_of(document)?, Wanted::Document(document));
                }
            }
            for id in rest {
                let user = match id.map(|id| wanted.get_mut(&id)) {
                    None => Ok(None),
                    Some(Some(Wanted::Absent)) if !reply.is_whole => break,
                    Some(Some(user)) => user.read(self, view).await,
                    Some(None) => break,
                };
                bytes += user
                    .as_ref()
                    .ok()
                    .and_then(Option::as_ref)
                    .map_or(0, |user| user.as_bytes().len());
                users.push(user);
                if bytes > ANSWER_BYTES {
                    return Ok((users, reads));
                }
            }
            let mean = size.checked_div(count).unwrap_or(ANSWER_BYTES).max(1);
            most = if reply.is_whole { usize::MAX } else { (most / 2).max(1) };
            most = most.min((ANSWER_BYTES - bytes) / mean + 1);
        }
    }
}

/// Those of the users that are of a tenant.
fn of_tenant(tenant: &Tenant, users: Vec<ItemResult<EncodedUser>>) -> Vec<ItemResult<EncodedUser>> {
    let is_own = |user: &EncodedUser| user.tenant() == tenant.as_str().as_bytes();
    users.into_iter().map(|user| Ok(user?.filter(is_own))).collect()
}

/// The first of these ids, at most `most`, none of which was found yet.
fn first<'r>(
    ids: impl Iterator<Item = Option<LocalityId>>,
    most: usize,
) -> HashMap<LocalityId, Wanted<'r>> {
    let mut wanted = HashMap::with_capacity(ids.size_hint().0.min(most));
    for id in ids.flatten() {
        if wanted.len() == most {
            break;
        }
        wanted.insert(id, Wanted::Absent);
    }
    wanted
}

impl Wanted<'_> {
    /// The user. What several keys ask for is read once.
    async fn read(&mut self, collections: &Collections, view: View) -> ItemResult<EncodedUser> {
        if let Self::Document(document) = self {
            let user = read_user(document, collections, view).await;
            *self = Self::Read(user.map(Some).map_err(ItemError::from));
        }
        match self {
            Self::Read(user) => user.clone(),
            Self::Absent | Self::Document(_) => Ok(None),
        }
    }
}

async fn read_user(
    document: &RawDocument,
    collections: &Collections,
    view: View,
) -> Result<EncodedUser, Fault> {
    let stored = StoredUser::read(document)?;
    match view {
        View::Full => collections.full_user(stored).await,
        View::Basic => Ok(stored.wire.without_attributes()),
    }
}

/// The fields of users to read. MongoDB takes less time to pick fields than to leave one out.
fn projection(view: View) -> Document {
    match view {
        View::Full => doc! { REVISION: 1, WIRE: 1, ATTRIBUTES: 1 },
        View::Basic => doc! { REVISION: 1, WIRE: 1 },
    }
}
