//! Linking an identity to a user.

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, Query};
use http::Response;
use polynym_access::Role;
use polynym_presentation::duration;
use polynym_proto::v1;
use polynym_proto::v1::LinkIdentityRequest;

use super::shared_parts::{Origin, policies, to_user};
use crate::change::identifier_fields::{self, KINDS};
use crate::change::{Draft, Sent, problem};
use crate::form::Form;
use crate::frame::Frame;
use crate::render::{Page, render_with_status};
use crate::views::reading::{self, Reading};
use crate::views::{Commands, UserView, identity};
use crate::visit::Visit;

#[derive(Template)]
#[template(path = "pages/user/link.html")]
struct LinkPage {
    frame: Frame,
    user: UserView,
    draft: Draft,
    kinds: [(&'static str, &'static str); 6],
    /// Whether a verified identity is taken from a user who has it unverified.
    verified_wins: bool,
    /// How much older the verification of a phone must be to be taken; may be empty.
    phone_takeover_after: String,
    commands: Commands,
}

/// The form.
pub async fn page(
    visit: Visit,
    Path((tenant, id)): Path<(String, String)>,
    Query(origin): Query<Origin>,
) -> Page {
    visit.require(Role::Registrar)?;
    let user = problem::get(&visit.client(&tenant), &id).await?;
    let region = visit.context.region.clone();
    let form = match reading::read(&origin.text(&visit), &region) {
        Reading::Identifier(typed) => identifier_fields::fields(&typed.text),
        _ => Form::of(&[("region", &region)]),
    };
    Ok(show(&visit, &tenant, &user, Draft::of(&user, form)).await)
}

/// Links the identity.
pub async fn link(visit: Visit, Path((tenant, id)): Path<(String, String)>, form: Form) -> Page {
    let sent = Sent::new(visit, tenant, form)?;
    let typed = match identifier_fields::identifier(&sent.form, "") {
        Ok(typed) => typed,
        Err(problem) => {
            let (user, draft) = sent.wrong(problem, &id).await?;
            return Ok(show(&sent.visit, &sent.tenant, &user, draft).await);
        }
    };
    sent.release_hold().await?;
    let request = request(&sent.tenant, &id, &sent.form, typed.message);
    match sent.client().registry().link_identity(sent.call(request)?).await {
        Ok(_) => Ok(to_user(&sent, &id, "linked")),
        Err(error) => {
            let (user, mut draft) = sent.refused(error, &id).await?;
            draft.problem = draft.problem.map(|problem| problem.about(&typed.text, &id));
            Ok(show(&sent.visit, &sent.tenant, &user, draft).await)
        }
    }
}

fn request(tenant: &str, id: &str, form: &Form, identifier: v1::Identifier) -> LinkIdentityRequest {
    let verified = form.has("verified");
    LinkIdentityRequest {
        tenant: tenant.to_owned(),
        user_id: id.to_owned(),
        identifier: Some(identifier),
        verified,
        verified_by: if verified { form.get("verified_by").to_owned() } else { String::new() },
        primary: form.has("primary"),
        display: form.get("display").to_owned(),
        etag: form.get("etag").to_owned(),
        request_id: form.get("request_id").to_owned(),
    }
}

async fn show(visit: &Visit, tenant: &str, user: &v1::User, draft: Draft) -> Response<Body> {
    let status = draft.status();
    let policies = policies(&visit.client(tenant)).await;
    let page = LinkPage {
        frame: visit.frame(tenant),
        user: UserView::of(user),
        kinds: KINDS,
        verified_wins: policies.verified_wins,
        phone_takeover_after: policies
            .phone_takeover_after
            .map_or_else(String::new, |time| duration::text(Some(&time))),
        commands: commands(tenant, user, &draft.form),
        draft,
    };
    render_with_status(&page, status)
}

/// The calls that do the same, with an example if nothing is typed.
fn commands(tenant: &str, user: &v1::User, form: &Form) -> Commands {
    let typed = identifier_fields::identifier(form, "").ok();
    let text = typed.map_or_else(|| "email:joe@example.com".to_owned(), |typed| typed.text);
    let message = identity::parse(&text).unwrap_or_default();
    let request = LinkIdentityRequest {
        etag: String::new(),
        request_id: String::new(),
        ..request(tenant, &user.user_id, form, message)
    };
    let by = format!("--by={}", request.verified_by);
    let display = format!("--display={}", request.display);
    let mut cli = vec!["identity", "link", &user.user_id, &text, "--tenant", tenant];
    if request.verified {
        cli.push("--verified");
    }
    if !request.verified_by.is_empty() {
        cli.push(&by);
    }
    if request.primary {
        cli.push("--primary");
    }
    if !request.display.is_empty() {
        cli.push(&display);
    }
    Commands::from_request(&cli, &request)
}
