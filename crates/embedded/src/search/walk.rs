//! Searches on a snapshot: walks along a range of the index of attributes or of the claims.

use std::ops::Bound;

use locality_uuid::LocalityId;

use crate::error::Fault;
use crate::lookup::snapshot::{Snapshot, readable};
use crate::schema::claim::resolves_to;
use crate::schema::index_key;
use crate::schema::user::StoredUser;
use polynym_directory::{
    AccessPath, Pace, Position, Range, Scalar, Scanned, SearchedUser, Tenant, User, View,
    search::Field,
};
use polynym_identifier::{Identifier, IdentityKey, Kind};
use polynym_store_common::searched::fixed_attribute_id;
use polynym_store_common::unreadable::Kind as Record;

/// Greater than or equal to all ids, and greater than all values of a field.
const LAST_ID: [u8; 16] = [0xff; 16];
const LAST_VALUE: u8 = 0xff;
/// The most users that are named in a part because they cannot be read.
const MAX_NAMED: usize = 1_000;
/// The most entries of a step.
const STEP_ENTRIES: usize = 64;

/// The range of keys that a search reads.
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

/// A search by walks.
pub struct WalkSearch<'s> {
    pub tenant: &'s Tenant,
    pub path: &'s AccessPath,
    pub view: View,
    /// The most users that it finds, besides those that cannot be read.
    pub limit: usize,
}

impl Snapshot {
    /// The walks of a search, in order. Empty if nobody can match, and for searches that need no
    /// walk: all users are scanned, and identifiers looked up.
    pub fn walks(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        after: Option<&Position>,
    ) -> Result<Vec<Walk>, Fault> {
        Ok(match path {
            AccessPath::All | AccessPath::Identity(_) => Vec::new(),
            AccessPath::Equals { field, value } => {
                let Some(mut prefix) = self.prefix(tenant, field)? else { return Ok(Vec::new()) };
                index_key::write_scalar(value.into(), &mut prefix);
                let start = after.map(|after| after_user(&prefix, after.id));
                vec![Walk {
                    source: Source::Index,
                    start: start.unwrap_or_else(|| Bound::Included(prefix.clone())),
                    end: Bound::Included(concat(&prefix, &LAST_ID)),
                }]
            }
            AccessPath::Range { field, ranges } => {
                let Some(prefix) = self.prefix(tenant, field)? else { return Ok(Vec::new()) };
                let value = after.and_then(|after| after.value.as_ref());
                let walks = Range::from_value(ranges, value);
                let walks = walks.map(|range| range_walk(&prefix, range, after));
                walks.filter(Walk::has_entries).collect()
            }
            AccessPath::IdentityPrefix { kind, prefix } => {
                vec![claims_walk(tenant, *kind, prefix, after)]
            }
        })
    }

    /// The start of a field's keys. None if no user of the tenant has it.
    fn prefix(&self, tenant: &Tenant, field: &Field) -> Result<Option<Vec<u8>>, Fault> {
        let id = match fixed_attribute_id(field) {
            Ok(id) => Some(id),
            Err(name) => self.attribute_id(tenant.as_str(), name)?,
        };
        Ok(id.map(|id| index_key::prefix(tenant.as_str(), id)))
    }

    /// Adds the users at the next entries of a walk to `found`: at least one entry, and no more
    /// once the pace is over or the search has found all that it may. A user with several entries
    /// is found at its least one only. Returns whether there are no more entries.
    pub fn step(
        &self,
        search: &WalkSearch<'_>,
        walk: &mut Walk,
        found: &mut Scanned<SearchedUser, Position>,
        pace: &Pace,
    ) -> Result<bool, Fault> {
        let WalkSearch { tenant, path, view, limit } = *search;
        let entries = self.entries(walk, STEP_ENTRIES)?;
        let is_last = entries.len() < STEP_ENTRIES;
        let mut rest = limit - found.readable().count();
        for (n, (key, owner)) in entries.into_iter().enumerate() {
            if n > 0 && pace.is_over() {
                return Ok(false);
            }
            walk.start = Bound::Excluded(key.clone());
            let Some(owner) = owner else { continue };
            let user = match readable(Record::User(owner), self.full_user(owner))? {
                Some(Some(user)) => user,
                Some(None) => continue,
                None if found.unreadable().count() < MAX_NAMED => {
                    found.push(owner, None);
                    continue;
                }
                None => continue,
            };
            let Some(position) = path.position(&user) else { continue };
            if key.ends_with(&walk.key_end(tenant, path, &position)) {
                found.push(owner, Some(SearchedUser::new(user, view)));
                rest -= 1;
            }
            if rest == 0 {
                found.next = Some(position);
                break;
            }
        }
        Ok(is_last)
    }

    /// The number of the next entries of a walk, at most `limit`. Moves behind them.
    pub fn count(&self, walk: &mut Walk, limit: usize) -> Result<usize, Fault> {
        let mut entries = self.entries(walk, limit)?;
        let count = entries.len();
        if let Some((last, _)) = entries.pop() {
            walk.start = Bound::Excluded(last);
        }
        Ok(count)
    }

    /// The next entries of a walk: their keys and users.
    fn entries(&self, walk: &Walk, count: usize) -> Result<Vec<Entry>, Fault> {
        let range = (slice(&walk.start), slice(&walk.end));
        let mut entries = Vec::new();
        if !walk.has_entries() {
            return Ok(entries);
        }
        match &walk.source {
            Source::Index => {
                for entry in self.attributes.range::<&[u8]>(range)?.take(count) {
                    let key = entry?.0.value().to_vec();
                    let user = index_key::user(&key);
                    entries.push((key, user));
                }
            }
            Source::Claims => {
                for entry in self.identities.range::<&[u8]>(range)?.take(count) {
                    let (key, claim) = entry?;
                    let owner = readable(Record::Claim, resolves_to(claim.value()))?;
                    entries.push((key.value().to_vec(), owner.flatten()));
                }
            }
        }
        Ok(entries)
    }

    /// The owners of identifiers after `after`, in the order of their ids.
    pub fn owners(
        &self,
        tenant: &Tenant,
        of: &[Identifier],
        after: Option<LocalityId>,
        limit: usize,
        view: View,
    ) -> Result<Scanned<SearchedUser, Position>, Fault> {
        let mut found = Scanned::default();
        let mut rest = self.owner_ids(tenant, of)?;
        rest.retain(|id| after.is_none_or(|after| *id > after));
        for id in rest {
            match readable(Record::User(id), self.full_user(id))? {
                Some(None) => continue,
                user => found.push(id, user.flatten().map(|user| SearchedUser::new(user, view))),
            }
            if found.users.len() == limit {
                found.next = Some(Position { value: None, id });
                break;
            }
        }
        Ok(found)
    }

    /// The owners of identifiers, in order.
    pub fn owner_ids(&self, tenant: &Tenant, of: &[Identifier]) -> Result<Vec<LocalityId>, Fault> {
        let mut owners = Vec::new();
        for identifier in of {
            let key = IdentityKey::new(tenant.as_str(), identifier);
            let claim = self.identities.get(key.as_str().as_bytes())?;
            owners.extend(claim.map(|claim| resolves_to(claim.value())).transpose()?.flatten());
        }
        owners.sort_unstable();
        owners.dedup();
        Ok(owners)
    }

    /// A user with its attributes.
    fn full_user(&self, id: LocalityId) -> Result<Option<User>, Fault> {
        let Some(bytes) = self.users.get(id.as_bytes())? else { return Ok(None) };
        Ok(Some(self.decode(&StoredUser::read(bytes.value())?)?.user))
    }
}

impl Walk {
    /// The end of the key of a user at this position.
    fn key_end(&self, tenant: &Tenant, path: &AccessPath, position: &Position) -> Vec<u8> {
        let mut end = Vec::new();
        match (&self.source, path, &position.value) {
            (
                Source::Claims,
                AccessPath::IdentityPrefix { kind, .. },
                Some(Scalar::String(value)),
            ) => {
                return claim_key(tenant, *kind, value);
            }
            (_, _, Some(value)) => index_key::write_scalar(value.into(), &mut end),
            (_, _, None) => {}
        }
        end.extend(position.id.as_bytes());
        end
    }

    /// Whether the range may have entries.
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
        Bound::Excluded(value) => Bound::Excluded(concat(&key(value), &LAST_ID)),
        Bound::Unbounded => Bound::Included(prefix.to_vec()),
    };
    let position = after.and_then(|after| Some((after.value.as_ref()?, after.id)));
    let position = position.filter(|(value, _)| range.contains(value));
    Walk {
        source: Source::Index,
        start: position.map_or(lower, |(value, id)| after_user(&key(value), id)),
        end: match &range.upper {
            Bound::Included(value) => Bound::Included(concat(&key(value), &LAST_ID)),
            Bound::Excluded(value) => Bound::Excluded(key(value)),
            Bound::Unbounded => Bound::Excluded(concat(prefix, &[LAST_VALUE])),
        },
    }
}

fn claims_walk(tenant: &Tenant, kind: Kind, prefix: &str, after: Option<&Position>) -> Walk {
    let start = claim_key(tenant, kind, prefix);
    let resumed = after.and_then(|after| match &after.value {
        Some(Scalar::String(value)) => Some(Bound::Excluded(claim_key(tenant, kind, value))),
        _ => None,
    });
    Walk {
        source: Source::Claims,
        end: Bound::Excluded(concat(&start, &[LAST_VALUE])),
        start: resumed.unwrap_or(Bound::Included(start)),
    }
}

fn claim_key(tenant: &Tenant, kind: Kind, canonical: &str) -> Vec<u8> {
    let identifier = Identifier::from_canonical(kind, canonical.to_owned());
    IdentityKey::new(tenant.as_str(), &identifier).as_str().as_bytes().to_vec()
}

fn slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

fn after_user(key: &[u8], id: LocalityId) -> Bound<Vec<u8>> {
    Bound::Excluded(concat(key, id.as_bytes()))
}

fn concat(key: &[u8], end: &[u8]) -> Vec<u8> {
    [key, end].concat()
}
