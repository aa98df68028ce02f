//! One identity of a user, and what can be done with it.

use polynym_client::Client;
use polynym_presentation::duration;
use v1::{
    Identifier, LinkIdentityRequest, MoveIdentityRequest, ReplaceIdentityRequest,
    UnlinkIdentityRequest, VerifyIdentityRequest,
};

use super::shared_parts::{policies, user_id};
use crate::change::done;
use crate::change::identifier_fields::{self, KINDS};
use crate::prelude::*;
use crate::short_id::ShortId;
use crate::views::identity::{self, IdentityView};

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
    let fields = Form::of(&[("identity", &text), ("region", &visit.context.region)]);
    show(UserForm::new(visit, tenant, &id, fields).await?).await
}

/// Unlinks an identity.
pub async fn unlink(change: UserChange) -> Page {
    let request = unlink_request(&change.tenant, &change.id, &change.form);
    let outcome = change.client().registry().unlink_identity(change.undoable(request)?).await;
    change.finish(outcome, "unlinked", show).await
}

/// Marks an identity as verified, or as not verified.
pub async fn verify(change: UserChange) -> Page {
    let request = verify_request(&change.tenant, &change.id, &change.form);
    let done = if request.verified { "verified" } else { "unverified" };
    let outcome = change.client().registry().verify_identity(change.undoable(request)?).await;
    change.finish(outcome, done, show).await
}

/// Makes an identity the primary one of its kind.
pub async fn make_primary(change: UserChange) -> Page {
    let request = primary_request(&change.tenant, &change.id, &change.form);
    let outcome = change.client().registry().link_identity(change.undoable(request)?).await;
    change.finish(outcome, "primary", show).await
}

/// Replaces an identity by another.
pub async fn replace(change: UserChange) -> Page {
    let new = match identifier_fields::identifier(&change.form, "") {
        Ok(new) => new,
        Err(problem) => return change.correct(problem, show).await,
    };
    change.release_hold().await?;
    let request = replace_request(&change.tenant, &change.id, &change.form, Some(new.message));
    let outcome = change.client().registry().replace_identity(change.undoable(request)?).await;
    change.finish(outcome, "replaced", show).await
}

/// The page of the identity that the form names. Leads to the user if it has the identity no
/// longer.
pub async fn show(form: UserForm) -> Page {
    let (frame, user, client) = (form.frame(), UserView::of(&form.user), form.client());
    let UserForm { visit, tenant, user: own, draft } = form;
    let text = draft.form.get("identity").to_owned();
    let found = own.identities.iter().find(|one| identity::text(one.identifier.as_ref()) == text);
    let Some(found) = found else {
        return Ok(visit.done(&format!("{}/users/{}", frame.home(), user.id), done("gone")));
    };
    let verified = if found.verify_time.is_some() { "no" } else { "yes" };
    let change = Form::of(&[("identity", &text), ("verified", verified)]);
    let status = draft.status();
    let page = IdentityPage {
        frame,
        identity: IdentityView::of(found),
        kinds: KINDS,
        hold: hold(&client, found).await,
        verify: Some(verify_commands(&tenant, &user.id, &change)),
        primary: Some(primary_commands(&tenant, &user.id, &change)),
        replace: Some(replace_commands(&tenant, &user.id, &draft.form.typed())),
        transfer: Some(move_commands(&tenant, &user.id, &text)),
        unlink: Some(unlink_commands(&tenant, &user.id, &change)),
        user,
        draft,
    };
    Ok(render_with_status(&page, status))
}

/// For how long the tenant holds an identity of this kind. Empty if it does not, or if the caller
/// may not know.
async fn hold(client: &Client, one: &v1::Identity) -> String {
    let holds = policies(client).await.holds.unwrap_or_default();
    let hold = duration::of(match identity::kind(one.identifier.as_ref()) {
        "email" => holds.email,
        "handle" => holds.handle,
        "phone" => holds.phone,
        "social" => holds.social,
        _ => holds.url,
    });
    if hold.is_zero() { String::new() } else { duration::largest_unit(hold) }
}

fn verify_request(tenant: &str, id: &str, form: &Form) -> VerifyIdentityRequest {
    let verified = form.get("verified") != "no";
    VerifyIdentityRequest {
        tenant: tenant.to_owned(),
        user_id: id.to_owned(),
        identifier: identity::parse(form.get("identity")),
        verified,
        verified_by: if verified { form.get("verified_by").to_owned() } else { String::new() },
        etag: form.get("etag").to_owned(),
        request_id: form.get("request_id").to_owned(),
    }
}

fn verify_commands(tenant: &str, id: &str, form: &Form) -> Commands {
    let request = verify_request(tenant, id, form);
    let mut cli = vec!["identity", "verify", id, form.get("identity"), "--tenant", tenant];
    if !request.verified {
        cli.push("--revoke");
    }
    Commands::from_request(&cli, &request)
}

fn primary_request(tenant: &str, id: &str, form: &Form) -> LinkIdentityRequest {
    LinkIdentityRequest {
        tenant: tenant.to_owned(),
        user_id: id.to_owned(),
        identifier: identity::parse(form.get("identity")),
        primary: true,
        etag: form.get("etag").to_owned(),
        request_id: form.get("request_id").to_owned(),
        ..Default::default()
    }
}

fn primary_commands(tenant: &str, id: &str, form: &Form) -> Commands {
    let text = form.get("identity");
    let cli = ["identity", "link", id, text, "--primary", "--tenant", tenant];
    Commands::from_request(&cli, &primary_request(tenant, id, form))
}

fn replace_request(
    tenant: &str,
    id: &str,
    form: &Form,
    new: Option<Identifier>,
) -> ReplaceIdentityRequest {
    ReplaceIdentityRequest {
        tenant: tenant.to_owned(),
        user_id: id.to_owned(),
        old_identifier: identity::parse(form.get("identity")),
        new_identifier: new,
        etag: form.get("etag").to_owned(),
        request_id: form.get("request_id").to_owned(),
    }
}

/// The calls that replace it by what is typed, or by an example.
fn replace_commands(tenant: &str, id: &str, form: &Form) -> Commands {
    let typed = identifier_fields::identifier(form, "").ok().map(|typed| typed.text);
    let new = typed.unwrap_or_else(|| "email:new@example.com".to_owned());
    let cli = ["identity", "replace", id, form.get("identity"), &new, "--tenant", tenant];
    let request = replace_request(tenant, id, form, identity::parse(&new));
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

fn unlink_request(tenant: &str, id: &str, form: &Form) -> UnlinkIdentityRequest {
    UnlinkIdentityRequest {
        tenant: tenant.to_owned(),
        user_id: id.to_owned(),
        identifier: identity::parse(form.get("identity")),
        etag: form.get("etag").to_owned(),
        request_id: form.get("request_id").to_owned(),
    }
}

fn unlink_commands(tenant: &str, id: &str, form: &Form) -> Commands {
    let cli = ["identity", "unlink", id, form.get("identity"), "--tenant", tenant];
    Commands::from_request(&cli, &unlink_request(tenant, id, form))
}
