//! Look-ups of keys: the claims, then the users that they name, each in one find, which goes to the
//! shards that own the documents.

use std::collections::HashMap;

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, RawDocument};
use mongodb::options::{ReadConcern, ReadPreference, SelectionCriteria};

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::freshness::Key;
use crate::lookup::find::ReadMode;
use crate::lookup::late_find::Call;
use crate::lookup::plain_find::{PlainFind, Query};
use crate::lookup::reply::documents;
use crate::schema::attributes::ATTRIBUTES;
use crate::schema::bson::{id_from, id_of, id_value, key_of};
use crate::schema::claim::read_claim;
use crate::schema::fields::{REVISION, WIRE};
use crate::schema::user::StoredUser;
use crate::search::user_names::UserNames;
use polynym_directory::{
    ANSWER_BYTES, Consistency, EncodedUser, Found, ItemError, ItemResult, View,
};
use polynym_identifier::IdentityKey;

/// The result of one key: its claim and the user that the claim names.
#[derive(Clone)]
pub enum KeyLookup {
    /// The key has no owner.
    Free,
    /// The key's owner lists it.
    Owned(Found),
    /// The user does not list the key: one of the two was read before a commit, the other after.
    Torn,
    /// One of the two cannot be read.
    Failed(ItemError),
}

impl KeyLookup {
    /// The bytes of the user.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Owned(found) => found.user.as_bytes().len(),
            Self::Free | Self::Torn | Self::Failed(_) => 0,
        }
    }
}

/// The state of a wanted user.
enum WantedUser {
    /// It was not found.
    Absent,
    Stored(Box<StoredUser>),
    Read(ItemResult<EncodedUser>),
}

impl Collections {
    /// The read mode of a call for a consistency.
    pub fn read_mode(&self, consistency: Consistency, call: Call) -> ReadMode<'static, 'static> {
        let (concern, preference) = match consistency {
            Consistency::Latest => (ReadConcern::majority(), ReadPreference::Primary),
            Consistency::Linearizable => (ReadConcern::linearizable(), ReadPreference::Primary),
            Consistency::Eventual => {
                (ReadConcern::majority(), ReadPreference::Nearest { options: None })
            }
        };

        let criteria = SelectionCriteria::ReadPreference(preference);
        let plain = PlainFind { concern, criteria, time: self.timeout };
        match &self.lateness {
            Some(lateness) => {
                ReadMode::InParts(plain, call, lateness[consistency as usize].clone())
            }
            None => ReadMode::Plain(plain),
        }
    }

    /// Looks up `keys`, in order, until the users have [`ANSWER_BYTES`]. Returns the number of
    /// finds, too.
    pub async fn look_up(
        &self,
        keys: &[IdentityKey],
        mode: &mut ReadMode<'_, '_>,
        view: View,
    ) -> Result<(Vec<KeyLookup>, u32), Fault> {
        if keys.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let owners = self.owners(keys, mode).await?;
        if owners.iter().all(|owner| matches!(owner, Ok(None))) {
            return Ok((vec![KeyLookup::Free; keys.len()], 1));
        }

        let ids = owners.iter().map(|owner| owner.as_ref().ok().copied().flatten());
        let (users, reads) = self.users(ids, mode, view).await?;
        type Read<'k> = ((&'k IdentityKey, ItemResult<LocalityId>), ItemResult<EncodedUser>);
        let lookup = |((key, owner), user): Read<'_>| match (owner, user) {
            (Err(error), _) | (_, Err(error)) => KeyLookup::Failed(error),
            (Ok(None), _) => KeyLookup::Free,
            (Ok(Some(owner)), Ok(user)) => {
                let found = user.and_then(|user| Found::new(user, key));
                found.as_ref().inspect(|_| self.hints.learn(key, owner));
                found.map_or(KeyLookup::Torn, KeyLookup::Owned)
            }
        };
        let lookups = keys.iter().zip(owners).zip(users).map(lookup).collect();

        Ok((lookups, 1 + reads))
    }

    /// The owners that the claims of `keys` name, in order.
    async fn owners(
        &self,
        keys: &[IdentityKey],
        mode: &mut ReadMode<'_, '_>,
    ) -> Result<Vec<ItemResult<LocalityId>>, Fault> {
        let mut owners: HashMap<&str, ItemResult<LocalityId>> =
            keys.iter().map(|key| (key.as_str(), Ok(None))).collect();
        let ids = || owners.keys().map(|key| Bson::String((*key).to_owned())).collect();
        let query = Query { from: &self.identities, ids: &ids, fields: &[] };
        let reply = mode.find(query).await?;
        mode.record_reads(keys.iter().cloned().map(Key::Claim));
        if reply.is_cut {
            return Err(Fault::damaged("more claims than a reply can hold"));
        }

        for key in reply.unanswered.iter().filter_map(Bson::as_str) {
            if let Some(owner) = owners.get_mut(key) {
                *owner = Err(Fault::TimedOut.into());
            }
        }
        for found in documents(&reply) {
            let document = found?;
            if let Some(owner) = owners.get_mut(key_of(document)?) {
                let claim = read_claim(document).map_err(ItemError::from);
                *owner = claim.map(|(_, claim)| claim.resolves_to());
            }
        }

        Ok(keys.iter().map(|key| owners.get(key.as_str()).cloned().unwrap_or(Ok(None))).collect())
    }

    /// The users with these ids, in order, until they have [`ANSWER_BYTES`], and the number of
    /// finds, with those of names of attributes that are not known. A truncated reply means large
    /// users: fetch the rest in smaller batches.
    pub async fn users(
        &self,
        ids: impl Iterator<Item = Option<LocalityId>> + Clone + Send,
        mode: &mut ReadMode<'_, '_>,
        view: View,
    ) -> Result<(Vec<ItemResult<EncodedUser>>, u32), Fault> {
        let mut users = Vec::with_capacity(ids.size_hint().0);
        let (mut bytes, mut reads, mut batch_size) = (0, 0, usize::MAX);
        loop {
            let rest = ids.clone().skip(users.len());
            let mut wanted = first(rest.clone(), batch_size);
            if wanted.is_empty() {
                users.extend(rest.map(|_| Ok(None)));
                return Ok((users, reads));
            }
            let ids = || wanted.keys().copied().map(id_value).collect();
            let query = Query { from: &self.users, ids: &ids, fields: fields(view) };
            let reply = mode.find(query).await?;
            mode.record_reads(wanted.keys().copied().map(Key::User));
            reads += 1;
            let (mut count, mut size) = (0, 0);
            for found in documents(&reply) {
                let document = found?;
                (count, size) = (count + 1, size + document.as_bytes().len());
                wanted.insert(id_of(document)?, WantedUser::of(document));
            }
            for id in reply.unanswered.iter().filter_map(id_from) {
                wanted.insert(id, WantedUser::Read(Err(Fault::TimedOut.into())));
            }
            let stored = wanted.values().filter_map(WantedUser::stored);
            let (names, read) = self.known_names_of(stored).await;
            let unnamed = read.err().map(ItemError::from);
            reads += names.reads;
            for id in rest {
                let user = match id.map(|id| wanted.get_mut(&id)) {
                    None => Ok(None),
                    Some(Some(WantedUser::Absent)) if reply.is_cut => break,
                    Some(Some(user)) => user.read(&names, unnamed.as_ref(), view),
                    Some(None) => break,
                };
                bytes += user.iter().flatten().map(|user| user.as_bytes().len()).sum::<usize>();
                users.push(user);
                if bytes > ANSWER_BYTES {
                    return Ok((users, reads));
                }
            }
            let mean = size.checked_div(count).unwrap_or(ANSWER_BYTES).max(1);
            let next_size = if reply.is_cut { (batch_size / 2).max(1) } else { usize::MAX };
            batch_size = next_size.min((ANSWER_BYTES - bytes) / mean + 1);
        }
    }
}

/// The first `limit` of these ids, not found yet.
fn first(
    ids: impl Iterator<Item = Option<LocalityId>>,
    limit: usize,
) -> HashMap<LocalityId, WantedUser> {
    let mut wanted = HashMap::with_capacity(ids.size_hint().0.min(limit));
    for id in ids.flatten() {
        if wanted.len() == limit {
            break;
        }
        wanted.insert(id, WantedUser::Absent);
    }
    wanted
}

impl WantedUser {
    fn of(document: &RawDocument) -> Self {
        match StoredUser::read(document) {
            Ok(stored) => Self::Stored(Box::new(stored)),
            Err(fault) => Self::Read(Err(fault.into())),
        }
    }

    fn stored(&self) -> Option<&StoredUser> {
        if let Self::Stored(stored) = self { Some(stored) } else { None }
    }

    /// The user, which is encoded once for several keys. `unnamed` is why some names could not be
    /// read.
    fn read(
        &mut self,
        names: &UserNames,
        unnamed: Option<&ItemError>,
        view: View,
    ) -> ItemResult<EncodedUser> {
        if let Self::Stored(stored) = self {
            let user = match view {
                View::Full => names.full(stored),
                View::Basic => Ok(stored.wire.clone().without_attributes()),
            };
            let error = |fault| unnamed.cloned().unwrap_or_else(|| ItemError::from(fault));
            *self = Self::Read(user.map(Some).map_err(error));
        }
        match self {
            Self::Read(user) => user.clone(),
            Self::Absent | Self::Stored(_) => Ok(None),
        }
    }
}

/// The fields of users to read. For MongoDB, including fields is faster than excluding one.
const fn fields(view: View) -> &'static [&'static str] {
    match view {
        View::Full => &[REVISION, WIRE, ATTRIBUTES],
        View::Basic => &[REVISION, WIRE],
    }
}
