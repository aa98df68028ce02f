//! `polynym tenant`.

mod delete;
mod events;
mod history;
pub mod renormalize;
mod table;
pub mod usage;

use clap::{Args, Subcommand, ValueEnum};
use prost_types::{Duration as ProtoDuration, FieldMask};

pub use delete::delete_with_users;

use super::client::{Session, request_id};
use super::failure::Failure;
use super::output::{self, confirm, printable};
use crate::config::{ChangeClient, Client, Flags};
use polynym_identifier::Kind;
use polynym_presentation::duration::parse_message;
use polynym_presentation::time;
use polynym_proto::v1::{
    GetTenantRequest, GetTenantResponse, ListTenantsRequest, Policies, ReservedHandles,
    Tenant as Message, UpdateTenantRequest,
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
const PAGE_SIZE: i32 = 1_000;

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

#[derive(Clone, Copy, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Args)]
pub struct Set {
    /// Make the tenant if it does not exist yet, without asking.
    #[arg(long)]
    create: bool,
    /// How long identifiers of a kind are held for their former owners: 30d, 12h; 0d for no hold.
    /// Can be repeated.
    #[arg(long = "hold", value_name = "KIND=TIME", value_parser = hold)]
    holds: Vec<(Kind, ProtoDuration)>,
    /// Unverified identities do not resolve.
    #[arg(long, value_enum)]
    hide_unverified: Option<Switch>,
    /// A verified identity takes over another user's unverified one.
    #[arg(long, value_enum)]
    verified_wins: Option<Switch>,
    /// A phone that is verified goes to a user who verifies it so much later: 90d; 0d for never.
    #[arg(long, value_name = "TIME", value_parser = parse_message)]
    phone_takeover_after: Option<ProtoDuration>,
    /// A primary identity cannot be unlinked while the user has others of its kind.
    #[arg(long, value_enum)]
    keep_primary_identity: Option<Switch>,
    /// A user's last identity cannot be unlinked.
    #[arg(long, value_enum)]
    keep_last_identity: Option<Switch>,
    /// Allow handles that look like other handles.
    #[arg(long, value_enum)]
    allow_lookalikes: Option<Switch>,
    /// How long a deleted user can be restored: 30d, 12h.
    #[arg(long, value_name = "TIME", value_parser = parse_message)]
    restore_window: Option<ProtoDuration>,
    /// How long a merge can be undone: 7d, 12h.
    #[arg(long, value_name = "TIME", value_parser = parse_message)]
    undo_window: Option<ProtoDuration>,
    /// How long the history of users is kept: 400d; 0d for no history.
    #[arg(long, value_name = "TIME", value_parser = parse_message)]
    history_retention: Option<ProtoDuration>,
    /// How long a notice stays in an inbox: 90d.
    #[arg(long, value_name = "TIME", value_parser = parse_message)]
    inbox_retention: Option<ProtoDuration>,
    /// The maximum number of notices in an inbox.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=10_000))]
    inbox_limit: Option<i32>,
    /// Send users notices of a takeover of an identity, a merge, or being disabled or restored.
    #[arg(long, value_enum)]
    rule_notices: Option<Switch>,
    /// Handles that cannot be registered or linked, separated by commas; empty for none, `default`
    /// for the list in docs/api.md.
    #[arg(long, value_name = "HANDLES")]
    reserved_handles: Option<String>,
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

fn hold(text: &str) -> Result<(Kind, ProtoDuration), &'static str> {
    let (name, time) = text.split_once('=').ok_or("write KIND=TIME, as in handle=30d")?;
    let kind = name.parse().map_err(|_| "the kind must be email, handle, phone, social or url")?;
    Ok((kind, parse_message(time)?))
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
    let request_id = request_id(command.change.request_id.as_deref());
    let (policies, paths) = policies(&command);
    let request = UpdateTenantRequest {
        tenant: session.tenant(),
        policies: Some(policies),
        update_mask: Some(FieldMask { paths }),
        etag: command.change.etag,
        request_id,
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

/// The given policies, and their paths.
fn policies(command: &Set) -> (Policies, Vec<String>) {
    let mut paths = Vec::new();
    let mut switch = |name: &str, value: Option<Switch>| {
        paths.extend(value.map(|_| name.to_owned()));
        matches!(value, Some(Switch::On))
    };
    let mut policies = Policies {
        hide_unverified: switch("hide_unverified", command.hide_unverified),
        verified_wins: switch("verified_wins", command.verified_wins),
        keep_primary_identity: switch("keep_primary_identity", command.keep_primary_identity),
        keep_last_identity: switch("keep_last_identity", command.keep_last_identity),
        allow_lookalikes: switch("allow_lookalikes", command.allow_lookalikes),
        rule_notices: switch("rule_notices", command.rule_notices),
        ..Policies::default()
    };
    let mut window = |name: &str, value: Option<ProtoDuration>| {
        paths.extend(value.map(|_| name.to_owned()));
        value
    };
    policies.phone_takeover_after = window("phone_takeover_after", command.phone_takeover_after);
    policies.restore_window = window("restore_window", command.restore_window);
    policies.undo_window = window("undo_window", command.undo_window);
    policies.history_retention = window("history_retention", command.history_retention);
    policies.inbox_retention = window("inbox_retention", command.inbox_retention);
    if let Some(count) = command.inbox_limit {
        policies.inbox_limit = count;
        paths.push("inbox_limit".to_owned());
    }
    if let Some(list) = &command.reserved_handles {
        let handles =
            list.split(',').map(str::trim).filter(|handle| !handle.is_empty()).map(str::to_owned);
        policies.reserved_handles =
            (list != "default").then(|| ReservedHandles { handles: handles.collect() });
        paths.push("reserved_handles".to_owned());
    }

    let holds = policies.holds.get_or_insert_default();
    for (kind, time) in &command.holds {
        *table::hold_of(holds, *kind) = Some(*time);
        paths.push(format!("holds.{kind}"));
    }

    (policies, paths)
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
                output::print_message("Tenant", tenant)?;
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
        return output::print_message("GetTenantResponse", &GetTenantResponse { tenant });
    }
    output::print_table(&table::fields(&tenant.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_are_of_kinds() {
        assert_eq!(hold("email=7d").unwrap().0, Kind::Email);
        assert!(hold("email").is_err() && hold("mail=7d").is_err());
    }
}
