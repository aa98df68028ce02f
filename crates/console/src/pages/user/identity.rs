//! One identity of a user, and what can be done with it.

use askama::Template;
use axum::body::Body;
use axum::extract::Path;
use http::Response;
use polynym_client::Error;
use polynym_presentation::duration;
use polynym_proto::v1;
use v1::{
    LinkIdentityRequest, MoveIdentityRequest, ReplaceIdentityRequest, UnlinkIdentityRequest,
    VerifyIdentityRequest,
};

use super::shared_parts::{policies, to_user, user_id};
use crate::change::identifier_fields::{self, KINDS};
use crate::change::{Draft, Sent, problem};
use crate::failure::Failure;
use crate::form::Form;
use crate::frame::Frame;
use crate::render::{Page, redirect, render_with_status};
use crate::short_id::ShortId;
use crate::views::identity::{self, IdentityView};
use crate::views::{Commands, UserView};
use crate::visit::Visit;

#[derive(Template)]
#[template(path = "pages/user/identity.html")]
struct IdentityPage {
    frame: Frame,
    user: UserView,
    identity: IdentityView,
    draft: Draft,
    kinds: [(&'static str, &'static str); 6],
    /// For how long it is held after it is unlinked; empty if it is not.
    hold: String,
    verify: Option<Commands>,
    primary: Option<Commands>,
    replace: Option<Commands>,
    transfer: Option<Commands>,
    unlink: Option<Commands>,
}

/// Keeps an identifier under a short id, and leads to its page: identifiers are in no address.
pub async fn open(visit: Visit, Path((tenant, id)): Path<(String, String)>, form: Form) -> Page {
    let search = visit.session.queries.add(form.get("identity"));
    let (home, id) = (visit.frame(&tenant).home(), user_id(&id)?);
    Ok(redirect(&format!("{home}/users/{id}/identity/{search}")))
}

/// The page of an identity.
pub async fn page(
    visit: Visit,
    Path((tenant, id, search)): Path<(String, String, ShortId)>,
) -> Page {
    let text = visit.session.queries.get(search).ok_or(Failure::SearchGone)?;
    let user = problem::get(&visit.client(&tenant), &id).await?;
    let form = Form::of(&[("identity", &text), ("region", &visit.context.region)]);
    show(&visit, &tenant, &user, Draft::of(&user, form)).await
}

/// Unlinks an identity.
pub async fn unlink(visit: Visit, Path((tenant, id)): Path<(String, String)>, form: Form) -> Page {
    let sent = Sent::new(visit, tenant, form)?;
    let request = UnlinkIdentityRequest {
        user_id: id.clone(),
        identifier: identity::parse(sent.form.get("identity")),
        etag: sent.field("etag"),
        request_id: sent.field("request_id"),
        ..Default::default()
    };
    let outcome = sent.client().registry().unlink_identity(sent.call(request)?).await;
    finish(sent, id, outcome.map(drop), "unlinked").await
}

/// Marks an identity as verified, or as not verified.
pub async fn verify(visit: Visit, Path((tenant, id)): Path<(String, String)>, form: Form) -> Page {
    let sent = Sent::new(visit, tenant, form)?;
    let verified = sent.form.get("verified") != "no";
    let request = VerifyIdentityRequest {
        user_id: id.clone(),
        identifier: identity::parse(sent.form.get("identity")),
        verified,
        verified_by: if verified { sent.field("verified_by") } else { String::new() },
        etag: sent.field("etag"),
        request_id: sent.field("request_id"),
        ..Default::default()
    };
    let outcome = sent.client().registry().verify_identity(sent.call(request)?).await;
    let done = if verified { "verified" } else { "unverified" };
    finish(sent, id, outcome.map(drop), done).await
}

/// Makes an identity the primary one of its kind.
pub async fn make_primary(
    visit: Visit,
    Path((tenant, id)): Path<(String, String)>,
    form: Form,
) -> Page {
    let sent = Sent::new(visit, tenant, form)?;
    let request = LinkIdentityRequest {
        user_id: id.clone(),
        identifier: identity::parse(sent.form.get("identity")),
        primary: true,
        etag: sent.field("etag"),
        request_id: sent.field("request_id"),
        ..Default::default()
    };
    let outcome = sent.client().registry().link_identity(sent.call(request)?).await;
    finish(sent, id, outcome.map(drop), "primary").await
}

/// Leads to the user's page after a change, or shows why it was refused.
pub async fn finish(sent: Sent, id: String, outcome: Result<(), Error>, done: &str) -> Page {
    let error = match outcome {
        Ok(()) => return Ok(to_user(&sent, &id, done)),
        Err(error) => error,
    };
    let text =
        identifier_fields::identifier(&sent.form, "").map(|typed| typed.text).unwrap_or_default();
    let (user, mut draft) = sent.refused(error, &id).await?;
    draft.problem = draft.problem.map(|problem| problem.about(&text, &id));
    show(&sent.visit, &sent.tenant, &user, draft).await
}

/// The page of the identity that the form names.
pub async fn show(visit: &Visit, tenant: &str, user: &v1::User, draft: Draft) -> Page {
    let text = draft.form.get("identity").to_owned();
    let found = user.identities.iter().find(|one| identity::text(one.identifier.as_ref()) == text);
    let Some(found) = found else { return Ok(gone(visit, tenant, user)) };
    let status = draft.status();
    let id = &user.user_id;
    let page = IdentityPage {
        frame: visit.frame(tenant),
        user: UserView::of(user),
        identity: IdentityView::of(found),
        kinds: KINDS,
        hold: hold(visit, tenant, found).await,
        verify: Some(verify_commands(tenant, id, &text, found.verify_time.is_none())),
        primary: Some(primary_commands(tenant, id, &text)),
        replace: Some(replace_commands(tenant, id, &text, &draft.form)),
        transfer: Some(move_commands(tenant, id, &text)),
        unlink: Some(unlink_commands(tenant, id, &text)),
        draft,
    };
    Ok(render_with_status(&page, status))
}

/// Leads to the user, who has the identity no longer.
fn gone(visit: &Visit, tenant: &str, user: &v1::User) -> Response<Body> {
    redirect(&format!("{}/users/{}?done=gone", visit.frame(tenant).home(), user.user_id))
}

/// For how long the tenant holds an identity of this kind. Empty if it does not, or if the caller
/// may not know.
async fn hold(visit: &Visit, tenant: &str, one: &v1::Identity) -> String {
    let holds = policies(&visit.client(tenant)).await.holds.unwrap_or_default();
    let hold = duration::of(match identity::kind(one.identifier.as_ref()) {
        "email" => holds.email,
        "handle" => holds.handle,
        "phone" => holds.phone,
        "social" => holds.social,
        _ => holds.url,
    });
    if hold.is_zero() { String::new() } else { duration::largest_unit(hold) }
}

fn verify_commands(tenant: &str, id: &str, text: &str, verified: bool) -> Commands {
    let mut cli = vec!["identity", "verify", id, text, "--tenant", tenant];
    if !verified {
        cli.push("--revoke");
    }
    let request = VerifyIdentityRequest {
        tenant: tenant.to_owned(),
        user_id: id.to_owned(),
        identifier: identity::parse(text),
        verified,
        ..Default::default()
    };
    Commands::from_request(&cli, &request)
}

fn primary_commands(tenant: &str, id: &str, text: &str) -> Commands {
    let cli = ["identity", "link", id, text, "--primary", "--tenant", tenant];
    let request = LinkIdentityRequest {
        tenant: tenant.to_owned(),
        user_id: id.to_owned(),
        identifier: identity::parse(text),
        primary: true,
        ..Default::default()
    };
    Commands::from_request(&cli, &request)
}

/// The calls that replace it by what is typed, or by an example.
fn replace_commands(tenant: &str, id: &str, text: &str, form: &Form) -> Commands {
    let typed = identifier_fields::identifier(form, "").ok().map(|typed| typed.text);
    let new = typed.unwrap_or_else(|| "email:new@example.com".to_owned());
    let cli = ["identity", "replace", id, text, &new, "--tenant", tenant];
    let request = ReplaceIdentityRequest {
        tenant: tenant.to_owned(),
        user_id: id.to_owned(),
        old_identifier: identity::parse(text),
        new_identifier: identity::parse(&new),
        ..Default::default()
    };
    Commands::from_request(&cli, &request)
}

fn move_commands(tenant: &str, id: &str, text: &str) -> Commands {
    let cli = ["identity", "move", id, "handle:other", text, "--dry-run", "--tenant", tenant];
    let request = MoveIdentityRequest {
        tenant: tenant.to_owned(),
        from_user_id: id.to_owned(),
        to_user_id: "ID".to_owned(),
        identifier: identity::parse(text),
        validate_only: true,
        ..Default::default()
    };
    Commands::from_request(&cli, &request)
}

fn unlink_commands(tenant: &str, id: &str, text: &str) -> Commands {
    let cli = ["identity", "unlink", id, text, "--tenant", tenant];
    let request = UnlinkIdentityRequest {
        tenant: tenant.to_owned(),
        user_id: id.to_owned(),
        identifier: identity::parse(text),
        ..Default::default()
    };
    Commands::from_request(&cli, &request)
}
