//! The checks of batches of rows. They only read, so several batches are checked at once.

use locality_uuid::LocalityId;

use super::checkable::{Candidate, CheckableStore, ClaimRow, Presence, Side, UserClaims, UserRow};
use super::finding::{Finding, Inconsistency};
use super::histories::histories_faults;
use polynym_directory::{Claim, Error};
use polynym_identifier::IdentityKey;

/// The users of a batch.
pub(super) struct CheckedUsers {
    /// The number of rows.
    pub rows: u64,
    /// The users that can be read.
    pub users: Vec<UserClaims>,
    /// The rows that are not users, unnamed attributes, and the faults of histories.
    pub findings: Vec<Finding>,
    /// The identities whose claim differs.
    pub differing: Vec<Candidate>,
    /// The identities without a claim.
    pub absent: Vec<Candidate>,
}

/// The claims of a batch.
pub(super) struct CheckedClaims {
    /// The number of rows.
    pub rows: u64,
    /// The rows that are not claims.
    pub findings: Vec<Finding>,
    /// The claims whose owner seems not to list the key.
    pub candidates: Vec<Candidate>,
}

/// Checks users with their claims and histories.
pub(super) async fn check_users<A: CheckableStore>(
    store: &A,
    rows: Vec<UserRow>,
) -> Result<CheckedUsers, Error> {
    let (count, mut users, mut findings) = (rows.len() as u64, Vec::new(), Vec::new());
    let mut named = Vec::with_capacity(rows.len());
    for row in rows {
        match row {
            UserRow::UserClaims(user) => {
                named.push(user.id);
                users.push(user);
            }
            UserRow::Unnamed(user) => {
                findings.push(Finding::of_user(Inconsistency::Unnamed, user.id));
                users.push(user);
            }
            UserRow::Unreadable(id) => {
                findings.push(Finding::of_document(Inconsistency::UnreadableUser, id));
            }
        }
    }
    let (differing, absent) = candidates_of(store, &users).await?;
    findings.extend(histories_faults(store, &named).await?);
    Ok(CheckedUsers { rows: count, users, findings, differing, absent })
}

/// The candidates of users: those whose claim differs, and those without a claim.
pub(super) async fn candidates_of<A: CheckableStore>(
    store: &A,
    users: &[UserClaims],
) -> Result<(Vec<Candidate>, Vec<Candidate>), Error> {
    let expected: Vec<_> = users
        .iter()
        .flat_map(|user| user.claims.iter().map(move |claim| (user.id, claim)))
        .collect();
    let keys: Vec<_> = expected.iter().map(|(_, (key, _))| key.clone()).collect();
    let found = store.claims_at(&keys).await?;
    let (mut differing, mut absent) = (Vec::new(), Vec::new());
    for ((user, (key, claim)), found) in expected.into_iter().zip(found) {
        let candidate = || Candidate { side: Side::Listed, key: key.clone(), user: Some(user) };
        match found {
            Presence::Present(found) if found == *claim => {}
            Presence::Absent => absent.push(candidate()),
            _ => differing.push(candidate()),
        }
    }

    Ok((differing, absent))
}

/// Checks claims with their users.
pub(super) async fn check_claims<A: CheckableStore>(
    store: &A,
    rows: Vec<ClaimRow>,
) -> Result<CheckedClaims, Error> {
    let (count, mut claims, mut findings) = (rows.len() as u64, Vec::new(), Vec::new());
    for row in rows {
        match row {
            ClaimRow::Claim(key, claim) => claims.push((key, claim)),
            ClaimRow::Unreadable(key) => {
                findings.push(Finding::of_document(Inconsistency::UnreadableClaim, key));
            }
        }
    }
    let candidates = unlisted(store, claims).await?;
    Ok(CheckedClaims { rows: count, findings, candidates })
}

/// The candidates of claims: those whose owner seems not to list the key.
async fn unlisted<A: CheckableStore>(
    store: &A,
    claims: Vec<(IdentityKey, Claim)>,
) -> Result<Vec<Candidate>, Error> {
    let mut ids: Vec<LocalityId> = claims.iter().filter_map(|(_, claim)| claim.owner).collect();
    ids.sort_unstable();
    ids.dedup();
    let users = store.users_at(&ids).await?;
    let lists = |id: LocalityId, key: &IdentityKey| {
        let user = ids.binary_search(&id).ok().map(|n| &users[n]);
        matches!(user, Some(Presence::Present(user)) if user.claim(key).is_some())
    };
    let candidates = claims.into_iter().filter_map(|(key, claim)| match claim.owner {
        Some(id) if lists(id, &key) => None,
        user => Some(Candidate { side: Side::Claimed, key, user }),
    });
    Ok(candidates.collect())
}
