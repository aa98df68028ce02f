//! `polynym tenant`.

pub mod delete;
mod events;
mod history;
mod policies;
pub mod renormalize;
mod table;
pub mod usage;

use clap::{Args, Subcommand};
use prost_types::FieldMask;

pub use delete::delete_with_users;

use policies::GivenPolicies;

use super::client::Session;
use super::failure::Failure;
use super::output::{self, confirm, printable};
use crate::config::{ChangeClient, Client, Flags};
use polynym_presentation::time;
use polynym_proto::v1::{
    GetTenantRequest, GetTenantResponse, ListTenantsRequest, ReservedHandles, Tenant as Message,
    UpdateTenantRequest,
};

pub const EXAMPLES: &str = "\
Examples:
  polynym tenant get
  polynym tenant set --tenant acme --hold handle=90d --hold email=7d --verified-wins on";

const GET: &str = "Example:\n  polynym tenant get --tenant acme";
const SET: &str = "\
Examples:
  polynym tenant set --tenant acme --create
  polynym tenant set --tenant acme --hold handle=90d --hold email=7d --verified-wins on";
const DELETE: &str = "\
Examples:
  polynym tenant delete --tenant acme
  polynym tenant delete --tenant acme --force --yes

The tenant is read-only at once. The servers begin to delete it some seconds later, when all of
them know, and continue if this command is stopped.";
const LIST: &str = "Example:\n  polynym tenant list";

/// Tenants in one page.
pub const PAGE_SIZE: i32 = 1_000;

#[derive(Subcommand)]
pub enum Tenant {
    /// Show a tenant with its policies.
    #[command(after_help = GET)]
    Get(Get),
    /// Change a tenant's policies, or create the tenant.
    #[command(after_help = SET)]
    Set(Set),
    /// Delete a tenant without users, or with --force, a tenant and its users.
    #[command(after_help = DELETE)]
    Delete(delete::Delete),
    /// Show the history of a tenant, newest first: changes of its policies, and purged users.
    #[command(after_help = history::HISTORY)]
    History(history::History),
    /// List the changes of a tenant's users by caller, operation, time and type, by user.
    #[command(after_help = events::EVENTS)]
    Events(events::Events),
    /// List the tenants.
    #[command(after_help = LIST)]
    List(Get),
}

#[derive(Args)]
pub struct Get {
    #[command(flatten)]
    settings: Flags<Client>,
}

#[derive(Args)]
pub struct Set {
    /// Make the tenant if it does not exist yet, without asking.
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    given: GivenPolicies,
    /// Handles that cannot be registered or linked, separated by commas; empty for none, `default`
    /// for the list in docs/api.md.
    #[arg(long, value_name = "HANDLES")]
    reserved_handles: Option<String>,
    /// The countries of national phone numbers in `polynym find`, such as DE,AT, the likeliest
    /// first; empty for none.
    #[arg(long, value_name = "COUNTRIES")]
    phone_regions: Option<String>,
    /// Show the result without applying it.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    change: Change,
}

/// The arguments of all changes of a tenant.
#[derive(Args)]
pub struct Change {
    /// Change or delete the tenant only if this is its etag.
    #[arg(long, default_value = "")]
    etag: String,
    /// A UUID that identifies this call, so that a retry takes effect at most once.
    #[arg(long, value_name = "UUID")]
    request_id: Option<String>,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

pub async fn run(command: Tenant) -> Result<(), Failure> {
    match command {
        Tenant::Get(command) => get(command).await,
        Tenant::Set(command) => set(command).await,
        Tenant::Delete(command) => delete::delete(command).await,
        Tenant::Events(command) => events::run(command).await,
        Tenant::History(command) => history::history(command).await,
        Tenant::List(command) => list(command).await,
    }
}

async fn get(command: Get) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = GetTenantRequest { tenant: session.tenant() };
    let answer = session.answer(session.admin().get_tenant(request).await)?;
    show(&session, answer.tenant)
}

async fn set(command: Set) -> Result<(), Failure> {
    let session = Session::open(&command.change.settings).await?;
    if !command.create {
        require_tenant(&session).await?;
    }
    let GivenPolicies { mut policies, mut paths } = command.given;
    if let Some(list) = &command.reserved_handles {
        policies.reserved_handles = reserved(list);
        paths.push("reserved_handles".to_owned());
    }
    if let Some(list) = &command.phone_regions {
        policies.phone_regions = items(list).map(str::to_ascii_uppercase).collect();
        paths.push("phone_regions".to_owned());
    }
    let request = UpdateTenantRequest {
        tenant: session.tenant(),
        policies: Some(*policies),
        update_mask: Some(FieldMask { paths }),
        etag: command.change.etag,
        request_id: command.change.request_id.unwrap_or_default(),
        validate_only: command.dry_run,
    };
    let outcome = session.admin().update_tenant(request).await;

    show(&session, session.answer(outcome)?.tenant)
}

/// Asks before a tenant is made: its name may be a slip.
async fn require_tenant(session: &Session) -> Result<(), Failure> {
    if session.find_tenant().await?.is_some() {
        return Ok(());
    }
    let tenant = session.tenant();
    confirm::require_terminal(&format!("there is no tenant {tenant}: add --create to make it"))?;
    let question = format!("There is no tenant {tenant} yet. Type its name to make it: ");
    confirm::require_answer(&question, &tenant, "nothing was made")
}

/// The handles of a list in an argument; none for Polynym's own list.
fn reserved(list: &str) -> Option<ReservedHandles> {
    let handles = || items(list).map(str::to_owned).collect();
    (list != "default").then(|| ReservedHandles { handles: handles() })
}

/// The items of a list in an argument.
fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

async fn list(command: Get) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let mut table = output::table(["tenant", "created", "policies changed"]);
    let mut page_token = String::new();
    loop {
        let request =
            ListTenantsRequest { tenant: String::new(), page_size: PAGE_SIZE, page_token };
        let outcome = session.admin().list_tenants(request).await;
        let answer = session.answer(outcome)?;
        for tenant in &answer.tenants {
            if session.json() {
                output::print_message(tenant)?;
            }
            let times = [&tenant.create_time, &tenant.update_time];
            let [created, changed] = times.map(|time| time::text(time.as_ref()));
            table.add_row([printable(&tenant.tenant).into_owned(), created, changed]);
        }
        page_token = answer.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }

    if session.json() { Ok(()) } else { output::print_table(&table) }
}

fn show(session: &Session, tenant: Option<Message>) -> Result<(), Failure> {
    if session.json() {
        return output::print_message(&GetTenantResponse { tenant });
    }
    output::print_table(&table::fields(&tenant.unwrap_or_default()))
}
