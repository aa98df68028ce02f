//! Claims by their keys and users by their ids, each in one find that goes to the shards that own
//! what is looked for. Documents are read where they lie in the server's reply.

use std::collections::HashMap;

use futures_util::StreamExt;
use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, RawDocument, doc};
use mongodb::options::{ReadConcern, ReadPreference, SelectionCriteria};

use crate::directory::error::ItemError;
use crate::directory::store::{ANSWER_BYTES, Consistency, ItemResult, View};
use crate::identifier::IdentityKey;
use crate::store::mongo::client::error::Fault;
use crate::store::mongo::database::collections::Collections;
use crate::store::mongo::database::freshness::Key;
use crate::store::mongo::lookup::find::{Finds, documents};
use crate::store::mongo::schema::attributes::ATTRIBUTES;
use crate::store::mongo::schema::bson::{id_of, id_value, key_of};
use crate::store::mongo::schema::claim::read_claim;
use crate::store::mongo::schema::fields::{REVISION, WIRE};
use crate::store::mongo::schema::user::StoredUser;
use crate::wire::encoded_user::{EncodedUser, Found};

/// The claim of a key, with its user.
#[derive(Clone)]
pub enum Pair {
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
    pub fn bytes(&self) -> usize {
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
    pub fn plain(&self, consistency: Consistency) -> Finds<'static, 'static> {
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

    /// The claims and users of `keys`, in order, until the users have [`ANSWER_BYTES`]; and the
    /// number of finds.
    pub async fn pairs(
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
    pub async fn users(
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
