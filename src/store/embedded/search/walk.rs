//! Searches on a snapshot: walks along a range of the index of attributes, of the claims, or of a
//! tenant's users.

use std::ops::Bound;

use locality_uuid::LocalityId;
use redb::ReadOnlyTable;

use super::error::Fault;
use super::index_key;
use super::read::Snapshot;
use super::schema::{StoredUser, resolves_to};
use super::{Embedded, YIELD_EVERY};
use crate::directory::error::Error;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::user::User;
use crate::directory::search::{Field, Lead, Position, Range, Scalar, SearchedUser};
use crate::directory::store::{Store, View};
use crate::identifier::{Identifier, IdentityKey, Kind};
use crate::store::searched::fixed_token;

/// After all ids, and after all values of a field.
const LAST_ID: [u8; 16] = [0xff; 16];
const LAST_VALUE: u8 = 0xff;

/// A range of keys that a search walks along.
pub struct Walk {
    source: Source,
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
}

enum Source {
    Index,
    Claims,
}

/// The key of an entry, and its user.
type Entry = (Vec<u8>, Option<LocalityId>);

/// A step of a walk.
#[derive(Default)]
pub struct Step {
    /// The users that were found.
    pub users: Vec<SearchedUser>,
    /// The entries that were read; fewer than asked for only at the end.
    pub entries: usize,
}

impl Snapshot {
    /// The walk of a search; none where it finds nobody. A search for all users is a scan, and one
    /// by identifiers a look-up of claims.
    pub fn walk(
        &self,
        tenant: &Tenant,
        lead: &Lead,
        after: Option<&Position>,
    ) -> Result<Option<Walk>, Fault> {
        Ok(match lead {
            Lead::All | Lead::Identity(_) => None,
            Lead::Equals { field, value } => {
                let Some(mut prefix) = self.prefix(tenant, field)? else { return Ok(None) };
                index_key::write_scalar(value.into(), &mut prefix);
                let start = after.map(|after| followed(&prefix, after.id));
                Some(Walk {
                    source: Source::Index,
                    start: start.unwrap_or_else(|| Bound::Included(prefix.clone())),
                    end: Bound::Included(joined(&prefix, &LAST_ID)),
                })
            }
            Lead::Range { field, range } => {
                let Some(prefix) = self.prefix(tenant, field)? else { return Ok(None) };
                Some(range_walk(&prefix, range, after)).filter(Walk::has_entries)
            }
            Lead::IdentityPrefix { kind, prefix } => {
                Some(claims_walk(tenant, *kind, prefix, after))
            }
        })
    }

    /// The start of a field's keys; none where no user of the tenant has it.
    fn prefix(&self, tenant: &Tenant, field: &Field) -> Result<Option<Vec<u8>>, Fault> {
        let token = match fixed_token(field) {
            Ok(token) => Some(token),
            Err(name) => self.token(tenant.as_str(), name)?,
        };
        Ok(token.map(|token| index_key::prefix(tenant.as_str(), token)))
    }

    /// Goes along a walk for [`YIELD_EVERY`] entries. A user stands where its least element is: it
    /// is found there, and at no other.
    pub fn step(
        &self,
        tenant: &Tenant,
        lead: &Lead,
        walk: &mut Walk,
        view: View,
    ) -> Result<Step, Fault> {
        let mut step = Step::default();
        for (key, owner) in self.entries(walk, YIELD_EVERY)? {
            step.entries += 1;
            walk.start = Bound::Excluded(key.clone());
            let user = owner.map(|owner| self.whole(owner)).transpose()?.flatten();
            let Some(user) = user else { continue };
            let position = lead.position(&user);
            let place = position.map(|position| walk.place(tenant, lead, &position));
            if place.is_some_and(|place| key.ends_with(&place)) {
                step.users.push(SearchedUser::of(user, view));
            }
        }
        Ok(step)
    }

    /// The number of entries of a walk, at most `limit`.
    pub fn count(&self, walk: &Walk, limit: usize) -> Result<usize, Fault> {
        Ok(self.entries(walk, limit)?.len())
    }

    /// The next entries of a walk: their keys and users.
    fn entries(&self, walk: &Walk, count: usize) -> Result<Vec<Entry>, Fault> {
        let range = (slice(&walk.start), slice(&walk.end));
        let mut entries = Vec::new();
        if !walk.has_entries() {
            return Ok(entries);
        }
        match (&walk.source, &self.attributes) {
            (Source::Index, None) => {}
            (Source::Index, Some(index)) => {
                for entry in index.range::<&[u8]>(range)?.take(count) {
                    let key = entry?.0.value().to_vec();
                    let user = index_key::user(&key);
                    entries.push((key, user));
                }
            }
            (Source::Claims, _) => {
                for entry in self.identities.range::<&[u8]>(range)?.take(count) {
                    let (key, claim) = entry?;
                    entries.push((key.value().to_vec(), resolves_to(claim.value())?));
                }
            }
        }
        Ok(entries)
    }

    /// The owners of identifiers, by their ids.
    pub fn owners(&self, tenant: &Tenant, of: &[Identifier]) -> Result<Vec<User>, Fault> {
        let mut owners = Vec::new();
        for identifier in of {
            let key = IdentityKey::new(tenant.as_str(), identifier);
            let claim = self.identities.get(key.as_str().as_bytes())?;
            owners.extend(claim.map(|claim| resolves_to(claim.value())).transpose()?.flatten());
        }
        owners.sort_unstable();
        owners.dedup();
        let users = owners.into_iter().map(|owner| self.whole(owner));
        users.filter_map(Result::transpose).collect()
    }

    /// A user with its attributes.
    fn whole(&self, id: LocalityId) -> Result<Option<User>, Fault> {
        let Some(bytes) = self.users.get(id.as_bytes())? else { return Ok(None) };
        Ok(Some(self.decode(&StoredUser::read(bytes.value())?)?.user))
    }
}

impl Embedded {
    /// See [`Store::search`](crate::directory::Store::search).
    pub(super) async fn find(
        &self,
        tenant: &Tenant,
        lead: &Lead,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Vec<SearchedUser>, Error> {
        self.check_searchable(lead)?;
        let view = lead.view(view);
        if *lead == Lead::All {
            let users = self.scan(tenant, after.map(|after| after.id), limit).await?;
            return Ok(users.into_iter().map(|own| SearchedUser::of(own.user, view)).collect());
        }
        if let Lead::Identity(identifiers) = lead {
            let mut owners = self.on_snapshot(|snapshot| snapshot.owners(tenant, identifiers))?;
            owners.retain(|owner| after.is_none_or(|after| owner.id > after.id));
            owners.truncate(limit);
            return Ok(owners.into_iter().map(|owner| SearchedUser::of(owner, view)).collect());
        }

        let mut users = Vec::new();
        let walk = self.on_snapshot(|snapshot| snapshot.walk(tenant, lead, after))?;
        let Some(mut walk) = walk else { return Ok(users) };
        loop {
            let step = |snapshot: &Snapshot| snapshot.step(tenant, lead, &mut walk, view);
            let step = self.on_snapshot(step)?;
            users.extend(step.users);
            if step.entries < YIELD_EVERY || users.len() >= limit {
                users.truncate(limit);
                return Ok(users);
            }
            tokio::task::yield_now().await;
        }
    }

    /// See [`Store::probe`](crate::directory::Store::probe).
    pub(super) fn count_entries(
        &self,
        tenant: &Tenant,
        lead: &Lead,
        limit: usize,
    ) -> Result<usize, Error> {
        self.check_searchable(lead)?;
        match lead {
            Lead::All => self.on_snapshot(|snapshot| snapshot.count_users(tenant, limit)),
            Lead::Identity(identifiers) => {
                let owners = self.on_snapshot(|snapshot| snapshot.owners(tenant, identifiers))?;
                Ok(owners.len().min(limit))
            }
            _ => self.on_snapshot(|snapshot| match snapshot.walk(tenant, lead, None)? {
                Some(walk) => snapshot.count(&walk, limit),
                None => Ok(0),
            }),
        }
    }

    /// Refuses a search by what a store of an older schema has no index of.
    fn check_searchable(&self, lead: &Lead) -> Result<(), Error> {
        let has_index = self.on_snapshot(|snapshot| Ok(snapshot.has_attributes()))?;
        if has_index || lead.field().is_none() { Ok(()) } else { Err(Error::NotSearchable) }
    }
}

/// The table [`ATTRIBUTES`](super::schema::ATTRIBUTES) on a snapshot.
pub type AttributesTable = ReadOnlyTable<&'static [u8], ()>;

impl Walk {
    /// The end of the key at which a user with this position stands.
    fn place(&self, tenant: &Tenant, lead: &Lead, position: &Position) -> Vec<u8> {
        let mut place = Vec::new();
        match (&self.source, lead, &position.value) {
            (Source::Claims, Lead::IdentityPrefix { kind, .. }, Some(Scalar::String(value))) => {
                return claim_key(tenant, *kind, value);
            }
            (_, _, Some(value)) => index_key::write_scalar(value.into(), &mut place),
            (_, _, None) => {}
        }
        place.extend(position.id.as_bytes());
        place
    }

    /// Whether there may be an entry.
    fn has_entries(&self) -> bool {
        let key = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key.clone()),
            Bound::Unbounded => None,
        };
        match (key(&self.start), key(&self.end)) {
            (Some(start), Some(end)) => start <= end,
            _ => true,
        }
    }
}

fn range_walk(prefix: &[u8], range: &Range, after: Option<&Position>) -> Walk {
    let key = |value: &Scalar| {
        let mut key = prefix.to_vec();
        index_key::write_scalar(value.into(), &mut key);
        key
    };
    let lower = match &range.lower {
        Bound::Included(value) => Bound::Included(key(value)),
        Bound::Excluded(value) => Bound::Excluded(joined(&key(value), &LAST_ID)),
        Bound::Unbounded => Bound::Included(prefix.to_vec()),
    };
    let position = after.and_then(|after| Some((after.value.as_ref()?, after.id)));
    Walk {
        source: Source::Index,
        start: position.map_or(lower, |(value, id)| followed(&key(value), id)),
        end: match &range.upper {
            Bound::Included(value) => Bound::Included(joined(&key(value), &LAST_ID)),
            Bound::Excluded(value) => Bound::Excluded(key(value)),
            Bound::Unbounded => Bound::Excluded(joined(prefix, &[LAST_VALUE])),
        },
    }
}

fn claims_walk(tenant: &Tenant, kind: Kind, prefix: &str, after: Option<&Position>) -> Walk {
    let start = claim_key(tenant, kind, prefix);
    let after = after.and_then(|after| match &after.value {
        Some(Scalar::String(value)) => Some(Bound::Excluded(claim_key(tenant, kind, value))),
        _ => None,
    });
    Walk {
        source: Source::Claims,
        end: Bound::Excluded(joined(&start, &[LAST_VALUE])),
        start: after.unwrap_or(Bound::Included(start)),
    }
}

fn claim_key(tenant: &Tenant, kind: Kind, canonical: &str) -> Vec<u8> {
    let identifier = Identifier::from_canonical(kind, canonical.to_owned());
    IdentityKey::new(tenant.as_str(), &identifier).as_str().as_bytes().to_vec()
}

fn slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

fn followed(key: &[u8], id: LocalityId) -> Bound<Vec<u8>> {
    Bound::Excluded(joined(key, id.as_bytes()))
}

fn joined(key: &[u8], end: &[u8]) -> Vec<u8> {
    [key, end].concat()
}
