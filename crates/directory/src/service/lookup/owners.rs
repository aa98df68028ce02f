//! The owners of an identifier: the present one and the former ones, each with its period.

use std::collections::{HashMap, HashSet};

use locality_uuid::LocalityId;
use prost::Message;

use super::as_of::{FormsAt, MAX_ATTEMPTS};
use crate::clock::Now;
use crate::encoded::decode::read_time;
use crate::encoded::encode::identity_message;
use crate::encoded::encoded_user::{EncodedUser, Found};
use crate::error::{Error, ItemError};
use crate::model::claim::Claim;
use crate::model::ownership::EndedOwnerships;
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::stores::{OrderedReads, View};
use crate::timestamp::Timestamp;
use polynym_identifier::{Identifier, IdentityKey, RawIdentifier};
use polynym_proto::v1;

/// A period in which a user owned an identifier.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerPeriod {
    /// The user; `None` once it is purged.
    pub user: Option<LocalityId>,
    /// The time when it began.
    pub begin: Timestamp,
    /// The time when it ended; `None` for the present owner.
    pub end: Option<Timestamp>,
    /// The identity, at the end of the period; `None` once the user is purged, or if its record
    /// cannot be read.
    pub identity: Option<v1::Identity>,
}

/// The owners of an identifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Owners {
    /// The identifier.
    pub identifier: Identifier,
    /// The periods, the latest first.
    pub periods: Vec<OwnerPeriod>,
    /// The time before which owners are not known.
    pub known_since: Timestamp,
}

/// The owners who are there to be seen.
type Users = HashMap<LocalityId, Owner>;

/// An owner who is there to be seen.
enum Owner {
    /// A present owner.
    Present(EncodedUser),
    /// A former owner. The ended ownership has its identity.
    Former,
    /// A former owner whose record cannot be read.
    Unreadable,
}

impl Directory {
    /// The owners of an identifier, as far back as the tenant keeps its history.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TenantNotFound`], [`Error::RulesChanging`],
    /// [`Error::Unavailable`].
    pub async fn list_owners(
        &self,
        context: &RequestContext<'_>,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<Owners, Error> {
        let policies = self.policies(&context.tenant).await?;
        let earliest = policies.history_begins(context.now.earliest());
        let rules = self.rules_to_change().await?;
        let forms = FormsAt::new(rules, "identifier".to_owned(), raw);
        for _ in 0..MAX_ATTEMPTS {
            if let Some(owners) = self.read_owners(context, &forms, earliest).await? {
                let rejection = || forms.present.err().unwrap_or(Error::IdentityNotFound);
                return owners.ok_or_else(rejection);
            }
        }
        Err(Error::Unavailable("the identity changes owners faster than they can be read".into()))
    }

    /// The owners of the first form that has any, if it has a form. None if an owner changed
    /// between two reads.
    async fn read_owners(
        &self,
        context: &RequestContext<'_>,
        forms: &FormsAt<'_>,
        earliest: Timestamp,
    ) -> Result<Option<Option<Owners>>, Error> {
        let tenant = context.tenant.as_str();
        let keys: Vec<_> = forms.all().map(|form| IdentityKey::new(tenant, form)).collect();
        // Claims first: a user who loses a key after this read is among the ended ownerships.
        let mut reads = self.backend.reads.in_order().await?;
        let claims = reads.claims(&keys).await?;
        let ended = reads.ended_ownerships(&keys).await?;
        let users = read_users(context, &mut *reads, &claims, &ended).await?;

        let mut owners = None;
        for (((form, key), claim), ended) in forms.all().zip(&keys).zip(claims).zip(ended) {
            let Some(periods) = periods(key, claim, &ended, &users, earliest)? else {
                return Ok(None);
            };
            let is_known =
                owners.as_ref().is_some_and(|owners: &Owners| !owners.periods.is_empty());
            let is_named = |period: &OwnerPeriod| {
                let display = period.identity.as_ref().map_or("", |identity| &identity.display);
                forms.is_named(form, display)
            };
            if !is_known && (owners.is_none() || periods.iter().any(is_named)) {
                let known_since = known_since(earliest, &ended, &periods);
                owners = Some(Owners { identifier: form.clone(), periods, known_since });
            }
        }
        Ok(Some(owners))
    }
}

/// Reads the owners.
async fn read_users(
    context: &RequestContext<'_>,
    reads: &mut dyn OrderedReads,
    claims: &[Option<Claim>],
    ended: &[EndedOwnerships],
) -> Result<Users, Error> {
    let present: HashSet<_> = claims.iter().flatten().filter_map(Claim::resolves_to).collect();
    let former = ended.iter().flat_map(|ended| &ended.0).filter_map(|former| former.user);
    let all: HashSet<_> = present.iter().copied().chain(former).collect();
    let ids = Vec::from_iter(all);
    let (mut users, mut rest) = (Users::new(), &*ids);
    while !rest.is_empty() {
        let found = reads.get(&context.tenant, rest, View::Basic).await?;
        // A large answer stops early, after one user at least.
        let (asked, left) = rest.split_at(found.len().clamp(1, rest.len()));
        for (id, user) in asked.iter().zip(found) {
            let owner = match user {
                Ok(user) => user.filter(|user| is_present(user, context.now)).map(|user| {
                    if present.contains(id) { Owner::Present(user) } else { Owner::Former }
                }),
                Err(ItemError::Internal(_)) if !present.contains(id) => Some(Owner::Unreadable),
                Err(error) => return Err(error.into()),
            };
            users.extend(owner.map(|owner| (*id, owner)));
        }
        rest = left;
    }
    Ok(users)
}

/// The periods of the owners of a key, the latest first; none if its present owner changed.
fn periods(
    key: &IdentityKey,
    claim: Option<Claim>,
    ended: &EndedOwnerships,
    users: &Users,
    earliest: Timestamp,
) -> Result<Option<Vec<OwnerPeriod>>, Error> {
    let mut periods = Vec::with_capacity(ended.0.len() + 1);
    let mut previous_end = None;
    for former in &ended.0 {
        // If two overlap, as under clock skew, the earlier one counts.
        let begin = previous_end.map_or(former.begin, |end| former.begin.max(end));
        previous_end = Some(former.end);
        if former.end <= earliest || former.end <= begin {
            continue;
        }
        let owner = former.user.and_then(|user| users.get(&user));
        let user = former.user.filter(|_| owner.is_some());
        let is_known = owner.is_some_and(|owner| !matches!(owner, Owner::Unreadable));
        let identity = former.identity.as_ref().filter(|_| is_known).map(identity_message);
        periods.push(OwnerPeriod { user, begin, end: Some(former.end), identity });
    }
    if let Some(id) = claim.and_then(|claim| claim.resolves_to())
        && let Some(Owner::Present(user)) = users.get(&id)
    {
        let Some(found) = Found::new(user.clone(), key) else { return Ok(None) };
        let begin = found.link_time();
        let begin = previous_end.map_or(begin, |end| begin.max(end));
        let identity = v1::Identity::decode(found.identity).ok();
        periods.push(OwnerPeriod { user: Some(id), begin, end: None, identity });
    }
    periods.reverse();
    Ok(Some(periods))
}

/// Whether a user is there to be seen: not deleted, or within its restore window.
fn is_present(user: &EncodedUser, now: Now) -> bool {
    !user.state().is_purge_due(now)
}

/// The time before which the owners of a key are not known.
fn known_since(earliest: Timestamp, ended: &EndedOwnerships, periods: &[OwnerPeriod]) -> Timestamp {
    let is_full = ended.0.len() == EndedOwnerships::MAX;
    let dropped = ended.0.first().filter(|_| is_full).map(|oldest| oldest.begin);
    let oldest = periods.last().and_then(|period| period.identity.as_ref());
    let import_time = oldest.and_then(|identity| identity.import_time);
    let imported = import_time.map(|time| read_time(Some(time)));
    [dropped, imported].into_iter().flatten().fold(earliest, Timestamp::max)
}
