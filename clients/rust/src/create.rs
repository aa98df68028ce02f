//! Users who are created unless they exist.

use crate::client::Client;
use crate::error::Error;
use crate::reasons::{IDENTITY_NOT_FOUND, IDENTITY_TAKEN};
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
    /// Finds the user who owns an identifier, or creates `user`, with this identifier first of its
    /// identities unless it is there. The calls have one deadline. Of concurrent
    /// callers, one creates the user, and all get it.
    pub async fn get_or_create(
        &self,
        identifier: Identifier,
        user: User,
    ) -> Result<Obtained, Error> {
        let deadline = self.deadline(None);
        match self.resolve(identifier.clone()).await {
            Err(error) if error.reason() == IDENTITY_NOT_FOUND => {}
            found => return found.map(|found| existing(found.user)),
        }
        let user = Some(with_identifier(user, &identifier));
        let request = CreateUserRequest { user, ..Default::default() };
        let taken = match self.until(deadline).registry().create_user(request).await {
            Err(error) if error.reason() == IDENTITY_TAKEN => error,
            created => {
                let user = created?.user.unwrap_or_default();
                return Ok(Obtained { user, is_created: true });
            }
        };
        let again = self.until(deadline).resolve(identifier);
        match again.consistency(Consistency::Linearizable).await {
            // The user has another identity that is taken.
            Err(error) if error.reason() == IDENTITY_NOT_FOUND => Err(taken),
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
    use std::time::Duration;

    use tonic::Code;

    use super::*;
    use crate::fake::{Answer, Fake, status};
    use crate::{email, handle};

    #[tokio::test]
    async fn nothing_is_created_in_a_tenant_that_does_not_exist() {
        let missing = status(Code::NotFound, "TENANT_NOT_FOUND", Duration::ZERO, "");
        let server = Fake::start(move |_| Answer::Fails(missing.clone())).await;
        let client = server.builder().connect_lazy().unwrap();
        let error = client.get_or_create(handle("joe"), User::default()).await.unwrap_err();
        assert_eq!(error.reason(), "TENANT_NOT_FOUND");
        assert_eq!(server.counts(), [1]);
    }

    #[test]
    fn the_identifier_is_added_unless_it_is_there() {
        let one = with_identifier(User::default(), &email("joe@example.com"));
        assert_eq!(one.identities.len(), 1);
        let two = with_identifier(one.clone(), &handle("joe"));
        assert_eq!(two.identities[0].identifier, Some(handle("joe")));
        assert_eq!(with_identifier(two.clone(), &email("joe@example.com")), two);
    }
}
