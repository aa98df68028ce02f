//! Replacing an identity of a user.

use axum::extract::Path;
use polynym_proto::v1::ReplaceIdentityRequest;

use super::identity::{finish, show};
use crate::change::{Sent, identifier_fields};
use crate::form::Form;
use crate::render::Page;
use crate::views::identity;
use crate::visit::Visit;

/// Replaces an identity by another.
pub async fn replace(visit: Visit, Path((tenant, id)): Path<(String, String)>, form: Form) -> Page {
    let sent = Sent::new(visit, tenant, form)?;
    let new = match identifier_fields::identifier(&sent.form, "") {
        Ok(new) => new,
        Err(problem) => {
            let (user, draft) = sent.wrong(problem, &id).await?;
            return show(&sent.visit, &sent.tenant, &user, draft).await;
        }
    };
    sent.release_hold().await?;
    let request = ReplaceIdentityRequest {
        user_id: id.clone(),
        old_identifier: identity::parse(sent.form.get("identity")),
        new_identifier: Some(new.message),
        etag: sent.field("etag"),
        request_id: sent.field("request_id"),
        ..Default::default()
    };
    let outcome = sent.client().registry().replace_identity(sent.call(request)?).await;
    finish(sent, id, outcome.map(drop), "replaced").await
}
