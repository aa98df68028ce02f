//! `polynym get`.

use clap::{Args, ValueEnum};

use super::reader::MAX_TENANTS;
use super::{document, write};
use crate::client::Session;
use crate::config::{Flags, Server};
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::tenant::PAGE_SIZE;
use polynym_proto::v1::{ListTenantsRequest, Tenant};

pub const EXAMPLES: &str = "\
Examples:
  polynym get > tenants.yaml
  polynym get acme -o json

`polynym apply -f tenants.yaml` takes the file back. Tenants that are being deleted are left out.";

#[derive(Args)]
pub struct Get {
    /// The tenants to print; all that the caller may see, if none is named.
    #[arg(value_name = "TENANT")]
    tenants: Vec<String>,
    /// The format.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
    #[command(flatten)]
    settings: Flags<Server>,
}

/// The format of the file.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    /// YAML.
    Yaml,
    /// JSON in one line, as with --json.
    Json,
}

pub async fn run(command: Get) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let found = match command.tenants.is_empty() {
        true => all(&session).await?,
        false => named(&session, &command.tenants).await?,
    };
    let (leaving, tenants): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|tenant| tenant.delete_time.is_some());
    for tenant in leaving {
        eprintln!("{} is being deleted, and left out", printable(&tenant.tenant));
    }
    if tenants.len() > MAX_TENANTS {
        eprintln!("apply takes at most {MAX_TENANTS} tenants at once: print some by their names");
    }
    let file = document::of_tenants(&tenants);
    if session.json() || command.output == Format::Json {
        return output::print_json(&write::json(&file));
    }
    output::print(&write::yaml(&file))
}

/// The tenants with these names.
async fn named(session: &Session, names: &[String]) -> Result<Vec<Tenant>, Failure> {
    let mut tenants = Vec::new();
    for name in names {
        let Some(tenant) = session.with_tenant(name).find_tenant().await? else {
            return Err(Failure::Other(format!("there is no tenant {}", printable(name))));
        };
        tenants.push(Tenant { tenant: name.clone(), ..tenant });
    }
    Ok(tenants)
}

/// All tenants.
async fn all(session: &Session) -> Result<Vec<Tenant>, Failure> {
    let mut tenants = Vec::new();
    let mut request = ListTenantsRequest { page_size: PAGE_SIZE, ..Default::default() };
    loop {
        let answer = session.answer(session.admin().list_tenants(request.clone()).await)?;
        tenants.extend(answer.tenants);
        if answer.next_page_token.is_empty() {
            return Ok(tenants);
        }
        request.page_token = answer.next_page_token;
    }
}
