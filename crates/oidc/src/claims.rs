//! What a checked ID token says about a person.

use std::time::SystemTime;

use openidconnect::{ClientId, EndSessionUrl, LogoutRequest, PostLogoutRedirectUrl};
use polynym_access::{ClaimNames, person_name};
use serde_json::{Map, Value};
use url::Url;

use crate::exchange::Token;
use crate::fault::Fault;

/// The maximum bytes of an ID token that is kept for signing out at the provider.
const MAX_HINT_BYTES: usize = 4 << 10;

/// A person, as the provider's ID token says.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The name in logs and histories.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
    /// When the token ends.
    pub expires: SystemTime,
    /// How to sign out at the provider, if one can.
    pub end: Option<EndSession>,
}

/// The way to sign out at the provider.
#[derive(Clone, Debug)]
pub struct EndSession {
    endpoint: EndSessionUrl,
    client_id: ClientId,
    /// The ID token, by which the provider knows whose session ends; none if it is long.
    hint: Option<Token>,
}

impl EndSession {
    pub(crate) fn new(endpoint: EndSessionUrl, client_id: &str, token: &Token) -> Self {
        let is_short = token.to_string().len() <= MAX_HINT_BYTES;
        let hint = is_short.then(|| token.clone());
        Self { endpoint, client_id: ClientId::new(client_id.to_owned()), hint }
    }

    /// The address at the provider, which leads back to this one.
    pub fn address(&self, back: &str) -> Option<Url> {
        let back = PostLogoutRedirectUrl::new(back.to_owned()).ok()?;
        let request = LogoutRequest::from(self.endpoint.clone())
            .set_client_id(self.client_id.clone())
            .set_post_logout_redirect_uri(back);
        let request = match &self.hint {
            Some(token) => request.set_id_token_hint(token),
            None => request,
        };
        Some(request.http_get_url())
    }
}

impl Identity {
    /// The person of these claims.
    pub(crate) fn of(
        claims: &Map<String, Value>,
        names: &ClaimNames,
        expires: SystemTime,
        end: Option<EndSession>,
    ) -> Result<Self, Fault> {
        let name = claim(claims, &names.name).and_then(Value::as_str);
        let name = name.and_then(person_name).ok_or(Fault::NoName)?;
        if names.name == "email" && claims.get("email_verified") != Some(&Value::Bool(true)) {
            return Err(Fault::EmailUnverified);
        }
        Ok(Self { name, groups: groups(claim(claims, &names.groups)), expires, end })
    }
}

/// A claim by its name, or by the names of the objects that it is in, as in `realm_access.roles`.
fn claim<'c>(claims: &'c Map<String, Value>, name: &str) -> Option<&'c Value> {
    claims.get(name).or_else(|| {
        let (outer, inner) = name.split_once('.')?;
        claim(claims.get(outer)?.as_object()?, inner)
    })
}

/// The groups of a claim: a list of texts, or one.
fn groups(claim: Option<&Value>) -> Vec<String> {
    match claim {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => {
            all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn identity(claims: &Value, name: &str, groups: &str) -> Result<Identity, Fault> {
        let names = ClaimNames { name: name.to_owned(), groups: groups.to_owned() };
        let claims = claims.as_object().unwrap();
        Identity::of(claims, &names, SystemTime::UNIX_EPOCH, None)
    }

    #[test]
    fn names_and_groups_come_from_the_claims_of_the_settings() {
        let claims = json!({
            "sub": "7", "email": "ann@example.org", "email_verified": true, "groups": ["a", 1, "b"],
            "https://example.org/team": "x", "realm_access": {"roles": ["r"]}, "nick": "a b",
        });
        let ann = identity(&claims, "email", "groups").unwrap();
        assert_eq!(
            (ann.name.as_str(), ann.groups),
            ("oidc:ann@example.org", vec!["a".to_owned(), "b".to_owned()])
        );
        let by_id = identity(&claims, "sub", "realm_access.roles").unwrap();
        assert_eq!((by_id.name.as_str(), by_id.groups), ("oidc:7", vec!["r".to_owned()]));
        assert_eq!(identity(&claims, "sub", "https://example.org/team").unwrap().groups, ["x"]);
        assert!(identity(&claims, "sub", "none.at.all").unwrap().groups.is_empty());
        for wrong in ["nick", "none", "groups"] {
            assert_eq!(identity(&claims, wrong, "groups").unwrap_err(), Fault::NoName);
        }
    }

    #[test]
    fn an_address_counts_once_it_is_verified() {
        for verified in [json!(false), json!(null), json!("yes")] {
            let claims = json!({"email": "ann@example.org", "email_verified": verified});
            assert_eq!(identity(&claims, "email", "groups").unwrap_err(), Fault::EmailUnverified);
        }
    }
}
