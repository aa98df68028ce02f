//! Linking an identity to a user.

use polynym_presentation::duration;
use polynym_proto::v1::LinkIdentityRequest;

use super::shared_parts::{Origin, policies};
use crate::change::identifier_fields::{self, KINDS};
use crate::prelude::*;
use crate::views::identity;
use crate::views::reading::{self, Reading};

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
pub async fn page(Query(origin): Query<Origin>, form: UserForm) -> Page {
    let region = form.visit.context.region.clone();
    let fields = match reading::read(&origin.text(&form.visit), &region) {
        Reading::Identifier(typed) => identifier_fields::fields(&typed.text),
        _ => Form::of(&[("region", &region)]),
    };
    show(form.with_fields(fields)).await
}

/// Links the identity.
pub async fn link(change: UserChange) -> Page {
    let typed = match identifier_fields::identifier(&change.form, "") {
        Ok(typed) => typed,
        Err(problem) => return change.correct(problem, show).await,
    };
    change.release_hold().await?;
    let request = request(&change.tenant, &change.id, &change.form, typed.message);
    let outcome = change.client().registry().link_identity(change.undoable(request)?).await;
    change.finish(outcome, "linked", show).await
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

async fn show(form: UserForm) -> Page {
    let policies = policies(&form.client()).await;
    let status = form.draft.status();
    let page = LinkPage {
        frame: form.frame(),
        user: UserView::of(&form.user),
        kinds: KINDS,
        verified_wins: policies.verified_wins,
        phone_takeover_after: policies
            .phone_takeover_after
            .map_or_else(String::new, |time| duration::text(Some(&time))),
        commands: commands(&form.tenant, &form.user.user_id, &form.draft.form.typed()),
        draft: form.draft,
    };
    Ok(render_with_status(&page, status))
}

/// The calls that do the same, with an example if nothing is typed.
fn commands(tenant: &str, id: &str, form: &Form) -> Commands {
    let typed = identifier_fields::identifier(form, "").ok();
    let text = typed.map_or_else(|| "email:joe@example.com".to_owned(), |typed| typed.text);
    let request = request(tenant, id, form, identity::parse(&text).unwrap_or_default());
    let by = format!("--by={}", request.verified_by);
    let display = format!("--display={}", request.display);
    let mut cli = vec!["identity", "link", id, &text, "--tenant", tenant];
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
