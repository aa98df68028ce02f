//! `polynym tenant delete`: marks a tenant, and waits until the servers have removed it.

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use tonic::Code;

use crate::cli::Failure;
use crate::cli::client::{Session, request_id};
use crate::cli::output;
use crate::config::{Client, Flags};
use crate::proto::v1::{DeleteTenantRequest, DeleteTenantResponse, GetTenantRequest};

/// How often a server is asked whether the tenant is gone.
const PERIOD: Duration = Duration::from_millis(500);

#[derive(Args)]
pub struct Delete {
    /// Purge the users that the tenant has. Without this, only a tenant without users is deleted.
    #[arg(long)]
    force: bool,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// Tell what would be, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not wait until it is gone.
    #[arg(long)]
    no_wait: bool,
    /// Delete the tenant only if this is its etag.
    #[arg(long, default_value = "")]
    etag: String,
    /// A UUID that names this call: sent again with it, the call happens once at most.
    #[arg(long, value_name = "UUID")]
    request_id: Option<String>,
    #[command(flatten)]
    settings: Flags<Client>,
}

pub async fn delete(command: Delete) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = DeleteTenantRequest {
        tenant: session.tenant(),
        etag: command.etag,
        force: command.force,
        request_id: request_id(command.request_id.as_deref()),
        validate_only: command.dry_run,
    };
    if command.force && !command.dry_run && !command.yes {
        confirm(&session.tenant())?;
    }

    let answer = send(&session, request).await?;
    if !command.dry_run && !command.no_wait {
        eprintln!("{} is being deleted: the servers go on where this is stopped", session.tenant());
        wait(&session).await?;
    }

    if session.json() {
        return output::print_message("DeleteTenantResponse", &answer);
    }
    let word = match (command.dry_run, command.no_wait) {
        (true, _) => "would be deleted",
        (false, true) => "is being deleted",
        (false, false) => "is deleted",
    };
    output::print(&format!("{} {word}\n", session.tenant()))
}

/// Deletes the session's tenant with its users, and waits until it is gone.
pub async fn delete_whole(session: &Session) -> Result<(), Failure> {
    let tenant = session.tenant();
    let request_id = request_id(None);
    send(session, DeleteTenantRequest { tenant, force: true, request_id, ..Default::default() }).await?;
    wait(session).await
}

async fn send(session: &Session, request: DeleteTenantRequest) -> Result<DeleteTenantResponse, Failure> {
    let request_id = request.request_id.clone();
    let send = |request| {
        let mut admin = session.admin();
        async move { admin.delete_tenant(request).await }
    };
    session.mutate(&request_id, request, send).await
}

/// Asks for the tenant's name. Only somebody at a terminal can answer.
fn confirm(tenant: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(format!(
            "all users of {tenant} would be purged, which cannot be undone: give --yes"
        )));
    }

    eprint!("All users of {tenant} are purged, which cannot be undone. Type the tenant's name: ");
    let mut typed = String::new();
    io::stdin().read_line(&mut typed)?;
    if typed.trim() == tenant { Ok(()) } else { Err(Failure::Other("nothing was deleted".to_owned())) }
}

/// Waits until the tenant is gone.
async fn wait(session: &Session) -> Result<(), Failure> {
    loop {
        let request = GetTenantRequest { tenant: session.tenant() };
        match session.admin().get_tenant(session.request(request)).await {
            Err(status) if status.code() == Code::NotFound => return Ok(()),
            Err(status) if status.code() == Code::Unavailable => {}
            Err(status) => return Err(session.failed(status, None)),
            Ok(answer) => {
                let tenant = answer.into_inner().tenant.unwrap_or_default();
                if tenant.delete_time.is_none() {
                    let tenant = session.tenant();
                    return Err(Failure::Other(format!("{tenant} is not deleted: it got users at the last moment")));
                }
            }
        }
        tokio::time::sleep(PERIOD).await;
    }
}
