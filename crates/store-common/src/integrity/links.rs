//! The check of the links between merged users. Each user is read again with the users that it
//! names; a fault that several reads show is reported.

use std::collections::{HashMap, HashSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;

use super::checkable::{CheckableStore, Presence, UserClaims};
use super::finding::{Finding, Inconsistency, RepairState};
use super::histories::holds_soon;
use super::limits::MAX_CONCURRENT_CHECKS;
use super::passes::Run;
use polynym_directory::{
    Error, MergeLinks, MergeWalk, Mutation, Tenant, TenantRecord, Timestamp, UserChange,
};

/// A fault of a user's links, and the other user.
type LinkFault = (Inconsistency, Option<LocalityId>);
/// The links of other users that a check has read. None if a user cannot be read.
type Others = HashMap<LocalityId, Option<MergeLinks>>;

/// The mutation that removes the faults of a user's links, under the policies of its tenant.
pub fn link_repair(links: &MergeLinks, tenant: Option<TenantRecord>) -> Mutation {
    of_tenant(links.tenant.clone(), links.user, UserChange::RemoveMergeFaults, tenant)
}

/// The mutation that stores a user again, with the elements by which it is searched. `tenant` is
/// the user's, if it has a record.
pub fn index_repair(name: Tenant, user: LocalityId, tenant: Option<TenantRecord>) -> Mutation {
    of_tenant(name, user, UserChange::Reindex, tenant)
}

fn of_tenant(
    name: Tenant,
    user: LocalityId,
    change: UserChange,
    tenant: Option<TenantRecord>,
) -> Mutation {
    let mutation = Mutation::of_user(name, user, Timestamp::now(), change);
    match tenant {
        None => mutation,
        Some(TenantRecord { since, policies, .. }) => {
            Mutation { tenant_since: since, policies: policies.into(), ..mutation }
        }
    }
}

impl<A: CheckableStore> Run<'_, A> {
    /// Checks the links of these users, and repairs them if that is requested and possible.
    pub(super) async fn check_links(&mut self, users: &[UserClaims]) -> Result<(), Error> {
        let store = self.store;
        let linked = users.iter().filter(|user| has_links(&user.links)).map(|user| user.id);
        let faults: Vec<_> = stream::iter(linked.collect::<Vec<_>>())
            .map(|user| async move {
                // Servers may be changing the user: only a fault that several reads find counts.
                let is_sound = async || Ok(faults_of(store, user).await?.is_empty());
                match holds_soon(is_sound).await? {
                    true => Ok(Vec::new()),
                    false => Ok::<_, Error>(vec![(user, faults_of(store, user).await?)]),
                }
            })
            .buffered(MAX_CONCURRENT_CHECKS)
            .try_collect()
            .await?;
        for (user, faults) in faults.into_iter().flatten() {
            let is_repairable = faults.iter().any(|(fault, _)| fault.is_repairable());
            let is_repaired = match users.iter().find(|own| own.id == user) {
                Some(own) if self.repairs && is_repairable => {
                    store.repair_links(&own.links).await?
                }
                _ => false,
            };
            for (fault, other) in faults {
                let repair = match fault.is_repairable() {
                    true if is_repaired => RepairState::Done,
                    true if !self.repairs => RepairState::Pending,
                    _ => RepairState::Impossible,
                };
                self.report(&Finding { other, repair, ..Finding::of_user(fault, user) });
            }
        }
        Ok(())
    }
}

fn has_links(links: &MergeLinks) -> bool {
    links.into.is_some() || !links.listed.is_empty() || links.has_damaged_undo
}

/// The faults of a user's links.
async fn faults_of<A: CheckableStore>(
    store: &A,
    user: LocalityId,
) -> Result<Vec<LinkFault>, Error> {
    let mut others = read(store, &[user]).await?;
    let Some(Some(links)) = others.remove(&user) else { return Ok(Vec::new()) };
    let others = read(store, &links.listed).await?;
    let mut faults = Vec::new();
    // A listed user that cannot be read may name the user.
    let unreadable = (links.tenant.as_str().as_bytes(), Some(user));
    let relations = links.relations(|id| {
        others.get(&id).map(|other| other.as_ref().map_or(unreadable, MergeLinks::merged_into))
    });
    for (other, relation) in relations {
        if relation.is_fault() {
            faults.push((Inconsistency::Unmerged, Some(other)));
        }
    }
    if links.has_damaged_undo {
        faults.push((Inconsistency::DamagedUndo, None));
    }
    if let Some(into) = links.into
        && !has_primary(store, &links).await?
    {
        faults.push((Inconsistency::Orphan, Some(into)));
    }
    Ok(faults)
}

/// Whether a merged user is part of the user that it leads to. A user that cannot be read may list
/// it.
async fn has_primary<A: CheckableStore>(store: &A, links: &MergeLinks) -> Result<bool, Error> {
    let mut walk = MergeWalk::new(links.user, links.into);
    let mut listed = Vec::new();
    while let Some(id) = walk.next() {
        match read(store, &[id]).await?.remove(&id) {
            Some(None) => return Ok(true),
            Some(Some(primary)) if primary.tenant == links.tenant && walk.step(primary.into) => {
                listed = primary.listed;
            }
            _ => return Ok(false),
        }
    }
    Ok(walk.is_listed_in(&listed))
}

/// The users that exist, by their ids.
async fn read<A: CheckableStore>(store: &A, ids: &[LocalityId]) -> Result<Others, Error> {
    let ids: Vec<_> = ids.iter().copied().collect::<HashSet<_>>().into_iter().collect();
    let found = store.users_at(&ids).await?;
    let other = |(id, found)| match found {
        Presence::Absent => None,
        Presence::Unreadable => Some((id, None)),
        Presence::Present(user) => Some((id, Some(UserClaims::into_links(user)))),
    };
    Ok(ids.into_iter().zip(found).filter_map(other).collect())
}
