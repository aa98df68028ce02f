//! `polynym tenant delete`: marks a tenant for deletion, and waits until the servers removed it.

use clap::Args;
use tonic::Code;

use super::Change;
use crate::client::Session;
use crate::failure::Failure;
use crate::output::{self, confirm};
use polynym_proto::v1::{DeleteTenantRequest, DeleteTenantResponse};

#[derive(Args)]
pub struct Delete {
    /// Purge the users of the tenant. Without this, only a tenant without users is deleted.
    #[arg(long)]
    force: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    /// Show the result without applying it.
    #[arg(long)]
    dry_run: bool,
    /// Do not wait for the deletion.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    change: Change,
}

pub async fn delete(command: Delete) -> Result<(), Failure> {
    let session = Session::open(&command.change.settings).await?;
    let request = DeleteTenantRequest {
        tenant: session.tenant(),
        etag: command.change.etag,
        force: command.force,
        request_id: command.change.request_id.unwrap_or_default(),
        validate_only: command.dry_run,
    };
    if command.force && !command.dry_run && !command.yes {
        confirm(&session.tenant())?;
    }

    let answer = send(&session, request).await?;
    if !command.dry_run && !command.no_wait {
        eprintln!("{} is being deleted, even if this command is stopped", session.tenant());
        wait(&session).await?;
    }

    let word = match (command.dry_run, command.no_wait) {
        (true, _) => "would be deleted",
        (false, true) => "is being deleted",
        (false, false) => "is deleted",
    };
    session.show(&answer, |_| output::print(&format!("{} {word}\n", session.tenant())))
}

/// Deletes the session's tenant with its users, and waits for the deletion.
pub async fn delete_with_users(session: &Session) -> Result<(), Failure> {
    let tenant = session.tenant();
    send(session, DeleteTenantRequest { tenant, force: true, ..Default::default() }).await?;
    wait(session).await
}

/// Sends the request.
pub async fn send(
    session: &Session,
    request: DeleteTenantRequest,
) -> Result<DeleteTenantResponse, Failure> {
    session.answer(session.admin().delete_tenant(request).await)
}

/// Requires the tenant's name to be typed at a terminal.
fn confirm(tenant: &str) -> Result<(), Failure> {
    confirm::require_terminal(&format!(
        "all users of {tenant} would be purged, which cannot be undone: confirm with --yes"
    ))?;
    let question = format!(
        "This purges all users of {tenant}, which cannot be undone. Type the tenant's name: "
    );
    confirm::require_answer(&question, tenant, "nothing was deleted")
}

/// Polls the tenant until it is deleted.
pub async fn wait(session: &Session) -> Result<(), Failure> {
    loop {
        match session.poll_tenant().await {
            Err(error) if error.code() == Code::NotFound => return Ok(()),
            Err(error) => return Err(session.failure(error)),
            Ok(tenant) if tenant.delete_time.is_none() => {
                let tenant = session.tenant();
                return Err(Failure::Other(format!(
                    "{tenant} is not deleted: a user was created meanwhile"
                )));
            }
            Ok(_) => {}
        }
    }
}
