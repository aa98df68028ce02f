//! Users who are created unless they exist.

use crate::client::Client;
use crate::error::{Error, Kind};
use crate::reasons::IDENTITY_TAKEN;
use crate::v1::{Consistency, CreateUserRequest, Identifier, Identity, User};

/// A user, and whether the call has created it.
#[derive(Clone, Debug, PartialEq)]
pub struct Obtained {
    /// The user.
    pub user: User,
    /// Whether it is new.
    pub is_created: bool,
}

impl Client {
    /// Finds the user who owns an identifier, or creates `user`, with this identifier beside its
    /// identities. Of concurrent callers, one creates the user, and all get it.
    pub async fn get_or_create(
        &self,
        identifier: Identifier,
        user: User,
    ) -> Result<Obtained, Error> {
        match self.resolve(identifier.clone()).await {
            Err(error) if error.kind() == Kind::NotFound => {}
            found => return found.map(|found| existing(found.user)),
        }
        let user = Some(with_identifier(user, &identifier));
        let request = CreateUserRequest { user, ..Default::default() };
        let taken = match self.registry().create_user(request).await {
            Err(error) if error.reason() == IDENTITY_TAKEN => error,
            created => {
                let user = created?.user.unwrap_or_default();
                return Ok(Obtained { user, is_created: true });
            }
        };
        match self.resolve(identifier).consistency(Consistency::Linearizable).await {
            // The user has another identity that is taken.
            Err(error) if error.kind() == Kind::NotFound => Err(taken),
            found => found.map(|found| existing(found.user)),
        }
    }
}

fn existing(user: Option<User>) -> Obtained {
    Obtained { user: user.unwrap_or_default(), is_created: false }
}

fn with_identifier(mut user: User, identifier: &Identifier) -> User {
    let is_it = |identity: &Identity| identity.identifier.as_ref() == Some(identifier);
    if !user.identities.iter().any(is_it) {
        let identifier = Some(identifier.clone());
        user.identities.insert(0, Identity { identifier, ..Default::default() });
    }
    user
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{email, handle};

    #[test]
    fn the_identifier_is_added_unless_it_is_there() {
        let one = with_identifier(User::default(), &email("joe@example.com"));
        assert_eq!(one.identities.len(), 1);
        let two = with_identifier(one.clone(), &handle("joe"));
        assert_eq!(two.identities[0].identifier, Some(handle("joe")));
        assert_eq!(with_identifier(two.clone(), &email("joe@example.com")), two);
    }
}
