//! Deletes a tenant: what it would remove, and the name to type.

use http::StatusCode;
use polynym_client::Client;
use polynym_proto::v1::{DeleteTenantRequest, Tenant};

use super::conflict::{self, Conflict, Refusal, Seen};
use crate::prelude::*;
use crate::views::tenant::TenantView;

#[derive(Template)]
#[template(path = "pages/tenants/delete.html")]
struct DeletePage {
    frame: Frame,
    tenant: TenantView,
    has_users: bool,
    /// Whether the box for its users is ticked.
    is_forced: bool,
    /// The name as typed.
    typed: String,
    error: String,
    seen: Seen,
    conflict: Option<Conflict>,
    commands: Commands,
}

/// The submitted fields, and why they were refused.
#[derive(Default)]
struct Attempt {
    typed: String,
    is_forced: bool,
    error: String,
    conflict: Option<Conflict>,
}

/// The preview.
pub async fn page(visit: Visit, Path(name): Path<String>) -> Page {
    visit.require(Role::Admin)?;
    show(&visit, &name, Attempt::default(), StatusCode::OK).await
}

async fn show(visit: &Visit, name: &str, attempt: Attempt, status: StatusCode) -> Page {
    let client = visit.client(name);
    let tenant = conflict::tenant(&client).await?;
    let has_users = has_users(&client, &tenant).await?;
    let Attempt { typed, is_forced, error, conflict } = attempt;
    let mut cli = vec!["tenant", "delete", "--tenant", name];
    cli.extend(has_users.then_some("--force"));
    let request =
        DeleteTenantRequest { tenant: name.to_owned(), force: has_users, ..Default::default() };
    Ok(render_with_status(
        &DeletePage {
            frame: visit.frame(name),
            has_users,
            is_forced,
            typed,
            error,
            seen: Seen::of(&tenant),
            tenant: TenantView::of(&tenant),
            conflict,
            commands: Commands::from_request(&cli, &request),
        },
        status,
    ))
}

/// Whether a tenant has users, by a deletion that is not applied.
async fn has_users(client: &Client, tenant: &Tenant) -> Result<bool, Failure> {
    if tenant.delete_time.is_some() {
        return Ok(tenant.delete_users);
    }
    let request = DeleteTenantRequest { validate_only: true, ..Default::default() };
    match client.admin().delete_tenant(request).await {
        Ok(_) => Ok(false),
        Err(error) if error.reason() == "TENANT_NOT_EMPTY" => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Deletes the tenant if its name is typed.
pub async fn submit(visit: Visit, Path(name): Path<String>, form: Form) -> Page {
    visit.require(Role::Admin)?;
    let typed = form.get("name").to_owned();
    let is_forced = form.has("force");
    let attempt = |error: &str| {
        let error = error.to_owned();
        Attempt { typed: typed.clone(), is_forced, error, conflict: None }
    };
    if typed != name {
        let attempt = attempt("This is not the name of the tenant. Nothing was deleted.");
        return show(&visit, &name, attempt, StatusCode::UNPROCESSABLE_ENTITY).await;
    }
    let (client, seen) = (visit.client(&name), Seen::in_form(&form));
    let request = DeleteTenantRequest {
        etag: seen.etag.clone(),
        force: is_forced,
        request_id: seen.request_id.clone(),
        ..Default::default()
    };
    match client.admin().delete_tenant(request).await.map_err(Refusal::from) {
        Ok(_) => Ok(redirect(&format!("{}/tenants", visit.context.base))),
        Err(Refusal::Conflict) => {
            let conflict = Some(seen.conflict(&client).await?);
            let attempt = Attempt { conflict, ..attempt("") };
            show(&visit, &name, attempt, StatusCode::CONFLICT).await
        }
        Err(Refusal::Invalid(message, _)) => {
            show(&visit, &name, attempt(&message), StatusCode::CONFLICT).await
        }
        Err(Refusal::Other(failure)) => Err(failure),
    }
}
