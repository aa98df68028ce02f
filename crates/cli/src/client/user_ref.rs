//! The user argument of commands: an id, or an identifier that the user owns.

use crate::client::Session;
use crate::failure::Failure;
use crate::text::identifier::{self, IdentifierArg};
use polynym_identifier::TextError;
use polynym_proto::v1::{Consistency, ResolveIdentityRequest};

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
    /// The user's id. Looks up an identifier, even that of a disabled user.
    pub async fn id(self, session: &Session) -> Result<String, Failure> {
        let typed = match self {
            Self::Id(id) => return Ok(id),
            Self::Identifier(typed) => typed,
        };
        let request = ResolveIdentityRequest {
            tenant: session.tenant(),
            identifier: Some(typed.message),
            consistency: Consistency::Latest.into(),
            show_disabled: true,
            ..Default::default()
        };
        let found =
            session.answer(session.directory().resolve_identity(session.request(request)).await)?;

        Ok(found.user.unwrap_or_default().user_id)
    }
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
