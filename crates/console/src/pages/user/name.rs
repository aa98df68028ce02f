//! The display name of a user.

use prost_types::FieldMask;
use v1::UpdateUserRequest;

use crate::prelude::*;

#[derive(Template)]
#[template(path = "pages/user/name.html")]
struct NamePage {
    frame: Frame,
    user: UserView,
    draft: Draft,
    commands: Commands,
}

/// The form.
pub async fn page(form: UserForm) -> Page {
    let fields = Form::of(&[("name", &form.user.display_name)]);
    show(form.with_fields(fields)).await
}

/// Changes the display name.
pub async fn rename(change: UserChange) -> Page {
    let request = request(&change.tenant, &change.id, &change.form);
    let outcome = change.client().registry().update_user(change.undoable(request)?).await;
    change.finish(outcome, "renamed", show).await
}

fn request(tenant: &str, id: &str, form: &Form) -> UpdateUserRequest {
    UpdateUserRequest {
        tenant: tenant.to_owned(),
        user: Some(v1::User {
            user_id: id.to_owned(),
            display_name: form.get("name").to_owned(),
            etag: form.get("etag").to_owned(),
            ..Default::default()
        }),
        update_mask: Some(FieldMask { paths: vec!["display_name".to_owned()] }),
        request_id: form.get("request_id").to_owned(),
    }
}

async fn show(form: UserForm) -> Page {
    let (frame, user) = (form.frame(), UserView::of(&form.user));
    let UserForm { tenant, draft, .. } = form;
    let request = request(&tenant, &user.id, &draft.form.typed());
    let flag = format!("--name={}", draft.form.get("name"));
    let cli = ["user", "update", &user.id, &flag, "--tenant", &tenant];
    let commands = Commands::from_request(&cli, &request);
    let status = draft.status();
    Ok(render_with_status(&NamePage { frame, user, draft, commands }, status))
}
