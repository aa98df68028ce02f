//! Reads whose answers are decoded, for cases that look into users.

use super::Failure;
use super::ensure::{ensure, equal};
use crate::directory::{Consistency, Found, Store, Tenant, User};
use crate::identifier::IdentityKey;
use crate::locality::LocalityId;

/// The owners of `keys`; each answer must carry the identity that was asked for.
pub async fn owners(
    store: &dyn Store,
    keys: &[IdentityKey],
    consistency: Consistency,
) -> Result<Vec<Option<User>>, Failure> {
    let found = store.resolve(keys, consistency).await?.found;
    equal(&found.len(), &keys.len(), "the number of answers")?;
    keys.iter().zip(found).map(|(key, found)| found.map(|found| owner(key, &found)).transpose()).collect()
}

fn owner(key: &IdentityKey, found: &Found) -> Result<User, Failure> {
    let again = Found::new(found.user.clone(), key);
    ensure(again.as_ref() == Some(found), "an answer without the identity that was asked for")?;
    Ok(found.user.decode()?)
}

/// The users of `tenant` with these ids.
pub async fn users(store: &dyn Store, tenant: &Tenant, ids: &[LocalityId]) -> Result<Vec<Option<User>>, Failure> {
    let users = store.get(tenant, ids).await?;
    users.into_iter().map(|user| Ok(user.map(|user| user.decode()).transpose()?)).collect()
}
