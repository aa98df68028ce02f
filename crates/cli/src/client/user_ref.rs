//! The user argument of commands: an id, or an identifier that the user owns.

use crate::client::Session;
use crate::client::former_user::{deleted_owner, with_deleted_owner};
use crate::failure::Failure;
use crate::text::identifier::{self, IdentifierArg};
use polynym_identifier::TextError;
use polynym_proto::v1::{Consistency, ResolveIdentityRequest, User};

/// A user's id, or an identifier.
#[derive(Clone, Debug)]
pub enum UserRef {
    /// The id. The server validates it.
    Id(String),
    /// An identifier.
    Identifier(IdentifierArg),
}

/// Parses either: only identifiers have a colon.
pub fn parse(text: &str) -> Result<UserRef, TextError> {
    if text.contains(':') {
        identifier::parse(text).map(UserRef::Identifier)
    } else {
        Ok(UserRef::Id(text.to_owned()))
    }
}

impl UserRef {
    /// The user's id. Looks up an identifier, even that of a disabled user. The error for an
    /// identifier of a deleted user says how to restore it.
    pub async fn id(&self, session: &Session) -> Result<String, Failure> {
        let typed = match self {
            Self::Id(id) => return Ok(id.clone()),
            Self::Identifier(typed) => typed,
        };
        match self.find(session, typed).await? {
            Found::Present(id) => Ok(id),
            Found::Deleted(user) => {
                let status = with_deleted_owner(session, &typed.text, &user).await;
                Err(session.failure(status))
            }
        }
    }

    /// The user's id, even if the user is deleted.
    pub async fn id_of_any(&self, session: &Session) -> Result<String, Failure> {
        let typed = match self {
            Self::Id(id) => return Ok(id.clone()),
            Self::Identifier(typed) => typed,
        };
        Ok(match self.find(session, typed).await? {
            Found::Present(id) => id,
            Found::Deleted(user) => user.user_id,
        })
    }

    async fn find(&self, session: &Session, typed: &IdentifierArg) -> Result<Found, Failure> {
        let request = ResolveIdentityRequest {
            tenant: session.tenant(),
            identifier: Some(typed.message.clone()),
            consistency: Consistency::Latest.into(),
            show_disabled: true,
            ..Default::default()
        };
        match session.directory().resolve_identity(request).await {
            Ok(answer) => Ok(Found::Present(answer.user.unwrap_or_default().user_id)),
            Err(error) if error.reason() == "IDENTITY_NOT_FOUND" => {
                let deleted = deleted_owner(session, &typed.message).await;
                deleted
                    .map(|user| Found::Deleted(Box::new(user)))
                    .ok_or_else(|| session.failure(error))
            }
            Err(error) => Err(session.failure(error)),
        }
    }
}

/// The user of an identifier.
enum Found {
    /// The id of a user to whom it resolves.
    Present(String),
    Deleted(Box<User>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_named_by_id_or_identifier() {
        assert!(matches!(parse("20be0ffc-314a-bd53-7a50-013a65ca76d2"), Ok(UserRef::Id(_))));
        assert!(matches!(parse("social:github/583231"), Ok(UserRef::Identifier(_))));
        assert!(parse("mail:joe@example.com").is_err());
    }
}
