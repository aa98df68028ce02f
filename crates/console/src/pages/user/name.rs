//! The display name of a user.

use askama::Template;
use axum::body::Body;
use axum::extract::Path;
use http::Response;
use polynym_access::Role;
use polynym_proto::v1;
use prost_types::FieldMask;
use v1::UpdateUserRequest;

use super::shared_parts::to_user;
use crate::change::{Draft, Sent, problem};
use crate::form::Form;
use crate::frame::Frame;
use crate::render::{Page, render_with_status};
use crate::views::{Commands, UserView};
use crate::visit::Visit;

#[derive(Template)]
#[template(path = "pages/user/name.html")]
struct NamePage {
    frame: Frame,
    user: UserView,
    draft: Draft,
    commands: Commands,
}

/// The form.
pub async fn page(visit: Visit, Path((tenant, id)): Path<(String, String)>) -> Page {
    visit.require(Role::Registrar)?;
    let user = problem::get(&visit.client(&tenant), &id).await?;
    let form = Form::of(&[("name", &user.display_name)]);
    Ok(show(&visit, &tenant, &user, Draft::of(&user, form)))
}

/// Changes the display name.
pub async fn rename(visit: Visit, Path((tenant, id)): Path<(String, String)>, form: Form) -> Page {
    let sent = Sent::new(visit, tenant, form)?;
    let mut request = request(&sent.tenant, &id, sent.form.get("name"));
    request.request_id = sent.field("request_id");
    if let Some(user) = &mut request.user {
        user.etag = sent.field("etag");
    }
    match sent.client().registry().update_user(sent.call(request)?).await {
        Ok(_) => Ok(to_user(&sent, &id, "renamed")),
        Err(error) => {
            let (user, draft) = sent.refused(error, &id).await?;
            Ok(show(&sent.visit, &sent.tenant, &user, draft))
        }
    }
}

fn request(tenant: &str, id: &str, name: &str) -> UpdateUserRequest {
    UpdateUserRequest {
        tenant: tenant.to_owned(),
        user: Some(v1::User {
            user_id: id.to_owned(),
            display_name: name.to_owned(),
            ..Default::default()
        }),
        update_mask: Some(FieldMask { paths: vec!["display_name".to_owned()] }),
        request_id: String::new(),
    }
}

fn show(visit: &Visit, tenant: &str, user: &v1::User, draft: Draft) -> Response<Body> {
    let status = draft.status();
    let name = draft.form.get("name");
    let flag = format!("--name={name}");
    let cli = ["user", "update", &user.user_id, &flag, "--tenant", tenant];
    let request = request(tenant, &user.user_id, name);
    let commands = Commands::from_request(&cli, &request);
    let (frame, user) = (visit.frame(tenant), UserView::of(user));
    render_with_status(&NamePage { frame, user, draft, commands }, status)
}
