//! Lists on a snapshot: tenants, their keys and users, holds, and users whose expiry is due.

use std::ops::Bound;

use locality_uuid::LocalityId;

use crate::error::Fault;
use crate::lookup::snapshot::{Snapshot, item_result, readable};
use crate::schema::claim::decode_claim;
use crate::schema::user::StoredUser;
use polynym_directory::{Error, ExpiredUser, Hold, Pace, Scanned, Tenant, TenantRecord, Timestamp};
use polynym_identifier::IdentityKey;
use polynym_store_common::unreadable::Kind;

/// A page of a scan for holds without an owner.
#[derive(Default)]
pub struct ScannedHolds {
    /// The holds in it.
    pub holds: Vec<Hold>,
    /// The last key that was read, after which the next page starts. None at the end.
    pub last: Option<IdentityKey>,
}

/// Reads users in parts, between which other calls get the thread. A part is `None` once the
/// snapshot is gone: the users so far are of the snapshot, and the next page finds none.
pub async fn users_in_parts<T>(
    after: Option<LocalityId>,
    limit: usize,
    read: impl Fn(Option<LocalityId>, usize, &Pace) -> Result<Option<Scanned<T>>, Error>,
) -> Result<Option<Scanned<T>>, Error> {
    let (mut all, mut pace) = (Scanned { users: Vec::new(), next: after }, Pace::default());
    loop {
        let Some(part) = read(all.next, limit - all.users.len(), &pace)? else {
            return Ok(Some(all).filter(|all| !all.users.is_empty()));
        };
        all.users.extend(part.users);
        all.next = part.next;
        if all.next.is_none() || all.users.len() >= limit {
            return Ok(Some(all));
        }
        pace.rest().await;
    }
}

/// Reads holds in parts, like [`users_in_parts`].
pub async fn holds_in_parts(
    after: Option<&IdentityKey>,
    limit: usize,
    read: impl Fn(Option<&IdentityKey>, usize, &Pace) -> Result<Option<ScannedHolds>, Error>,
) -> Result<Option<Vec<Hold>>, Error> {
    let (mut holds, mut after, mut pace) = (Vec::new(), after.cloned(), Pace::default());
    loop {
        let Some(part) = read(after.as_ref(), limit - holds.len(), &pace)? else {
            return Ok(Some(holds).filter(|holds| !holds.is_empty()));
        };
        holds.extend(part.holds);
        after = part.last;
        if after.is_none() || holds.len() >= limit {
            return Ok(Some(holds));
        }
        pace.rest().await;
    }
}

impl Snapshot {
    /// The tenants whose names start with `prefix` and come after `after`.
    pub fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Fault> {
        let mut found = Vec::new();
        for entry in self.tenants.range(prefix.max(after)..)? {
            let (name, tenant) = entry?;
            if found.len() == limit || !name.value().starts_with(prefix) {
                break;
            }
            if name.value() > after {
                let tenant = TenantRecord::decode(tenant.value()).map_err(Fault::damaged);
                found.extend(readable(Kind::Tenant, tenant)?);
            }
        }
        Ok(found)
    }

    /// Keys of a tenant's claims.
    pub fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Fault> {
        let [first, end] = IdentityKey::range(tenant.as_str());
        let mut keys = Vec::new();
        for entry in self.identities.range(first.as_bytes()..end.as_bytes())?.take(limit) {
            let text = String::from_utf8(entry?.0.value().to_vec()).map_err(Fault::damaged)?;
            keys.extend(IdentityKey::from_stored(text));
        }
        Ok(keys)
    }

    /// Holds of a tenant on keys whose owner was purged, in the order of their keys. Reads the
    /// tenant's claims: at least one, and no more once the pace is over.
    pub fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
        pace: &Pace,
    ) -> Result<ScannedHolds, Fault> {
        let [first, end] = IdentityKey::range(tenant.as_str());
        let start = match after {
            Some(after) => Bound::Excluded(after.as_str().as_bytes()),
            None => Bound::Included(first.as_bytes()),
        };
        let mut scanned = ScannedHolds::default();
        for entry in self.identities.range::<&[u8]>((start, Bound::Excluded(end.as_bytes())))? {
            let (key, stored) = entry?;
            let claim = readable(Kind::Claim, decode_claim(stored.value()))?;
            let key = || -> Result<_, Fault> {
                let text = String::from_utf8(key.value().to_vec()).map_err(Fault::damaged)?;
                Ok(IdentityKey::from_stored(text))
            };
            if let Some(claim) = claim.filter(|claim| claim.owner.is_none()) {
                scanned.holds.extend(key()?.and_then(|key| Hold::from_claim(&key, &claim)));
            }
            let is_full = scanned.holds.len() >= limit || pace.is_over();
            // A key that cannot be read is no position.
            if is_full && let Some(last) = key()? {
                scanned.last = Some(last);
                break;
            }
        }
        Ok(scanned)
    }

    /// The next users of `tenant` after `after`, each converted by `read`: at least one, at most
    /// `limit`, and no more once the pace is over.
    pub fn scan<T>(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
        pace: &Pace,
        read: impl Fn(&Self, &StoredUser<'_>) -> Result<T, Fault>,
    ) -> Result<Scanned<T>, Fault> {
        let (name, last) = (tenant.as_str(), [0xff; 16]);
        let position = after.map(|id| *id.as_bytes());
        let start = position
            .as_ref()
            .map_or(Bound::Included((name, &[0; 16])), |id| Bound::Excluded((name, id)));
        let mut scanned = Scanned::default();

        for entry in self.tenant_users.range((start, Bound::Included((name, &last))))? {
            let key = entry?.0;
            let id = key.value().1;
            let record = self.users.get(id)?;
            let user = match &record {
                Some(record) => {
                    StoredUser::read(record.value()).and_then(|stored| read(self, &stored))
                }
                None => Err(Fault::damaged("a tenant lists a user who does not exist")),
            };
            let id = LocalityId::from(*id);
            scanned.push(id, readable(Kind::User(id), user)?);
            if scanned.users.len() >= limit || pace.is_over() {
                scanned.next = Some(id);
                break;
            }
        }

        Ok(scanned)
    }

    /// Users whose expiry is due at `now`, in the order of their expiry and ids.
    pub fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Fault> {
        let mut found = Vec::new();
        if after.is_some_and(|(time, _)| time > now) {
            return Ok(found);
        }
        let position = after.map(|(time, id)| (time.as_millis(), *id.as_bytes()));
        let start =
            position.as_ref().map_or(Bound::Unbounded, |(time, id)| Bound::Excluded((*time, id)));
        let end = (now.as_millis(), &[0xff; 16]);

        for entry in
            self.expiries.range::<(i64, &[u8; 16])>((start, Bound::Included(end)))?.take(limit)
        {
            let key = entry?.0;
            let (millis, bytes) = key.value();
            let (time, id) = (Timestamp::from_millis(millis), LocalityId::from(*bytes));
            found.push(ExpiredUser { time, id, tenant: item_result(self.tenant_of(id))? });
        }

        Ok(found)
    }

    fn tenant_of(&self, id: LocalityId) -> Result<Tenant, Fault> {
        let user = self
            .users
            .get(id.as_bytes())?
            .ok_or_else(|| Fault::damaged("an expiry of a user who does not exist"))?;
        Tenant::parse(StoredUser::read(user.value())?.tenant()?).map_err(Fault::damaged)
    }
}
