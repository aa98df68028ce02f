//! Which events are shown: their kinds, and the user.

use locality_uuid::LocalityId;
use polynym_access::Role;
use polynym_client::Client;
use polynym_presentation::event;
use polynym_proto::v1::{EventType, ResolveIdentityRequest, WatchRequest};
use url::form_urlencoded;

use crate::failure::Failure;
use crate::form::{Form, Path};
use crate::render::{Page, redirect};
use crate::views::reading::{self, Reading};
use crate::visit::Visit;

/// Which events are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The kinds; empty for all.
    pub kinds: Vec<EventType>,
    /// The id of the user; empty for all.
    pub user: String,
    /// The token to resume after; empty for now.
    pub after: String,
    /// Whether the page follows the events.
    pub is_live: bool,
}

impl Selection {
    /// Reads the query of an address. Kinds and ids that are none are ignored.
    pub fn read(query: &str) -> Self {
        let mut selection = Self { is_live: true, ..Self::default() };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "kind" => selection.kinds.extend(event::parse(&value)),
                "user" => {
                    let id = value.parse::<LocalityId>().ok();
                    selection.user = id.map(|id| id.to_string()).unwrap_or_default();
                }
                "after" => selection.after = value.into_owned(),
                "live" => selection.is_live = value != "off",
                _ => {}
            }
        }
        selection.kinds.sort_unstable();
        selection.kinds.dedup();
        selection
    }

    /// The query of an address: without the token, unless `after` is one.
    pub fn query(&self, after: &str, is_live: bool) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for kind in &self.kinds {
            query.append_pair("kind", &name(*kind));
        }
        for (name, value) in [("user", &*self.user), ("after", after)] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        if !is_live {
            query.append_pair("live", "off");
        }
        query.finish()
    }

    /// The call.
    pub fn request(&self, tenant: &str) -> WatchRequest {
        WatchRequest {
            tenant: tenant.to_owned(),
            user_ids: Some(self.user.clone()).filter(|user| !user.is_empty()).into_iter().collect(),
            types: self.kinds.iter().map(|kind| (*kind).into()).collect(),
            resume_token: self.after.clone(),
        }
    }
}

/// The name of a kind in addresses, such as `IDENTITY_LINKED`.
pub fn name(kind: EventType) -> String {
    event::name(kind).to_ascii_uppercase()
}

/// Leads to the events of what somebody chose. A user may be named by an identifier, which is in
/// no address.
pub async fn submit(visit: Visit, Path(tenant): Path<String>, form: Form) -> Page {
    visit.require(Role::Viewer)?;
    let client = visit.client(&tenant);
    let selection = Selection {
        kinds: form.all("kind").filter_map(|kind| event::parse(kind).ok()).collect(),
        user: user(&client, form.get("user"), &visit.context.region).await?,
        after: String::new(),
        is_live: form.get("live") != "off",
    };
    let query = selection.query("", selection.is_live);
    Ok(redirect(&format!("{}/events?{query}", visit.frame(&tenant).home())))
}

/// The id of the user that a text names; empty for an empty text.
async fn user(client: &Client, text: &str, region: &str) -> Result<String, Failure> {
    if text.is_empty() {
        return Ok(String::new());
    }
    match reading::read(text, region) {
        Reading::Id(id) => Ok(id),
        Reading::Identifier(typed) => {
            let request = ResolveIdentityRequest {
                identifier: Some(typed.message),
                show_disabled: true,
                ..Default::default()
            };
            let answer = client.directory().resolve_identity(request).await?;
            answer.user.map(|user| user.user_id).ok_or(Failure::NotFound)
        }
        Reading::Filter(_) | Reading::Words(_) => {
            Err(Failure::Form("Write the id or an identifier of a user, such as @joe.".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_its_address() {
        let text = "kind=USER_CREATED&kind=IDENTITY_LINKED&kind=NONSENSE&user=joe&after=t%2B1";
        let selection = Selection::read(text);
        assert_eq!(selection.kinds, [EventType::UserCreated, EventType::IdentityLinked]);
        assert_eq!((&*selection.user, &*selection.after, selection.is_live), ("", "t+1", true));
        let query = selection.query("t+2", false);
        let again = Selection::read(&query);
        assert_eq!((again.kinds, &*again.after, again.is_live), (selection.kinds, "t+2", false));
    }
}
