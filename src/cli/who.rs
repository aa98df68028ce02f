//! A user as commands name one: by its id, or by an identifier that it owns.

use super::client::Session;
use super::failure::Failure;
use super::identifier;
use super::identifier::Typed;
use crate::identifier::TextError;
use crate::proto::v1::{Consistency, ResolveIdentityRequest};

/// A user's id, or an identifier.
#[derive(Clone, Debug)]
pub enum Who {
    /// The id, for the server to judge.
    Id(String),
    /// An identifier in its text form.
    Identifier(Typed),
}

/// Reads either: only identifiers have a colon.
pub fn parse(text: &str) -> Result<Who, TextError> {
    if text.contains(':') {
        identifier::parse(text).map(Who::Identifier)
    } else {
        Ok(Who::Id(text.to_owned()))
    }
}

impl Who {
    /// The user's id; an identifier is looked up, whether or not its owner is disabled.
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
        assert!(matches!(parse("20be0ffc-314a-bd53-7a50-013a65ca76d2"), Ok(Who::Id(_))));
        assert!(matches!(parse("social:github/583231"), Ok(Who::Identifier(_))));
        assert!(parse("mail:joe@example.com").is_err());
    }
}
