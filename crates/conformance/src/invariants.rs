//! The invariants that hold at any moment: an identifier resolves to at most one user (I1), and a
//! user lists an identity exactly when it resolves to that user (I2).

use std::collections::BTreeMap;

use locality_uuid::LocalityId;
use polynym_directory::{Consistency, Tenant, User};
use polynym_identifier::{Identifier, IdentityKey};

use super::assertions::{ensure, equal};
use super::fixture::{Fixture, identifier};
use super::{Failure, decoded};

impl Fixture {
    /// Fails unless the invariants hold for the users of the default tenant with these ids, so far
    /// as they exist, and for `names`, which nobody else owns. Answers with the users.
    pub async fn invariants(
        &self,
        ids: &[LocalityId],
        names: &[String],
    ) -> Result<Vec<User>, Failure> {
        let users: Vec<User> = decoded::users(&self.store, &Tenant::DEFAULT, ids)
            .await?
            .into_iter()
            .flatten()
            .collect();
        let mut owners = owners(&users)?;
        for name in names {
            owners.entry(identifier(name)?).or_default();
        }

        let keys: Vec<_> =
            owners.keys().map(|name| IdentityKey::new(Tenant::DEFAULT.as_str(), name)).collect();
        let found = decoded::owners(&self.store, &keys, Consistency::Latest).await?;
        equal(&found.len(), &keys.len(), "answers")?;
        for ((name, owner), found) in owners.iter().zip(&found) {
            equal(&found.as_ref(), owner, &format!("the owner of {name}"))?;
        }

        Ok(users)
    }
}

/// The users that list each identifier.
fn owners(users: &[User]) -> Result<BTreeMap<Identifier, Option<&User>>, Failure> {
    let mut owners = BTreeMap::new();
    for user in users {
        for identity in &user.identities {
            let other = owners.insert(identity.identifier.clone(), Some(user));
            ensure(other.is_none(), format!("{} is listed twice", identity.identifier))?;
        }
    }
    Ok(owners)
}
