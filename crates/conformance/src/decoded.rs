//! Reads whose answers are decoded, for cases that look into users.

use std::time::Duration;

use locality_uuid::LocalityId;
use polynym_directory::{Backend, Consistency, EncodedUser, Found, Tenant, Timestamp, User, View};
use polynym_identifier::{IdentityKey, RULES_VERSION};

use super::Failure;
use super::assertions::equal;

/// The owners of `keys`; each answer must carry the identity that was asked for.
pub async fn owners(
    store: &Backend,
    keys: &[IdentityKey],
    consistency: Consistency,
) -> Result<Vec<Option<User>>, Failure> {
    let found = store.lookups.resolve(keys, consistency, View::Full, Duration::ZERO).await?.found;
    equal(&found.len(), &keys.len(), "the number of answers")?;
    keys.iter()
        .zip(found)
        .map(|(key, found)| found?.map(|found| owner(key, &found)).transpose())
        .collect()
}

/// The user, who must be encoded as any user is, with the identity that the key stands for.
fn owner(key: &IdentityKey, found: &Found) -> Result<User, Failure> {
    let user = decode(&found.user)?;
    let wanted = Found::new(EncodedUser::of(&user), key);
    equal(&Some(found), &wanted.as_ref(), "an owner with the identity that was asked for")?;
    Ok(user)
}

/// The users of `tenant` with these ids.
pub async fn users(
    store: &Backend,
    tenant: &Tenant,
    ids: &[LocalityId],
) -> Result<Vec<Option<User>>, Failure> {
    let users = store.lookups.get(tenant, ids, View::Full).await?;
    users.into_iter().map(|user| user?.map(|user| decode(&user)).transpose()).collect()
}

/// The user, with identities of the present rules: their versions are no part of what is read.
fn decode(user: &EncodedUser) -> Result<User, Failure> {
    let mut user = user.decode()?;
    for identity in &mut user.identities {
        identity.rules_version = RULES_VERSION;
    }
    Ok(user)
}

/// The first users that are due at `now`, with their tenants.
pub async fn expired_users(
    store: &Backend,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<(Tenant, LocalityId)>, Failure> {
    let due = store.histories.expired_users(now, None, limit).await?;
    due.into_iter().map(|user| Ok((user.tenant?, user.id))).collect()
}
