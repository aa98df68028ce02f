//! `polynym attribute define`: sets a definition, and waits until the servers have changed the
//! index.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::client::Session;
use crate::config::{ChangeClient, Flags};
use crate::failure::Failure;
use crate::output::{self, printable};
use polynym_proto::v1::{
    AttributeDefinition, Policies, Tenant, UpdateTenantRequest, UpdateTenantResponse,
};
use polynym_table::ValueType;

#[derive(Args)]
pub struct Define {
    /// The attribute's name.
    name: String,
    /// The type of new values.
    #[arg(long = "type", value_parser = value_types(), value_name = "TYPE")]
    value_type: Option<ValueType>,
    /// Do not index the attribute: writes cost less, but a search by it alone reads all users.
    #[arg(long)]
    no_index: bool,
    /// Take users of one name with the same value of the attribute for probable duplicates.
    #[arg(long)]
    evidence: bool,
    /// Let `polynym find` find users by a whole value of the attribute, such as a customer number.
    /// Needs the index.
    #[arg(long)]
    find: bool,
    /// Do not wait for the index change.
    #[arg(long)]
    no_wait: bool,
    /// Define the attribute only if this is the tenant's etag.
    #[arg(long, default_value = "")]
    etag: String,
    /// Show the result without applying it.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

fn value_types() -> impl TypedValueParser<Value = ValueType> {
    let names = ValueType::ALL.map(|(name, _)| name);
    PossibleValuesParser::new(names).try_map(|name| ValueType::parse(&name))
}

pub async fn define(command: Define) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let definition = AttributeDefinition {
        name: command.name.clone(),
        indexed: Some(!command.no_index),
        r#type: command.value_type.map_or(0, |value_type| value_type.kind().into()),
        evidence: command.evidence,
        find: command.find,
        index_change_time: None,
    };
    let policies = Policies { attribute_definitions: vec![definition], ..Default::default() };
    let request = UpdateTenantRequest {
        tenant: session.tenant(),
        policies: Some(policies),
        etag: command.etag,
        validate_only: command.dry_run,
        ..Default::default()
    };
    let outcome = session.admin().update_tenant(request).await;
    let mut tenant = session.answer(outcome)?.tenant.unwrap_or_default();
    if !command.dry_run && !command.no_wait && is_changing(&tenant, &command.name) {
        eprintln!("the servers are changing the index, and continue if this command is stopped");
        tenant = wait(&session, &command.name).await?;
    }

    if session.json() {
        let answer = UpdateTenantResponse { tenant: Some(tenant) };
        return output::print_message(&answer);
    }
    let state = match is_changing(&tenant, &command.name) {
        true => "its index is being changed",
        false if command.no_index => "not indexed",
        false => "indexed",
    };
    let word = if command.dry_run { "would be defined" } else { "is defined" };
    output::print(&format!("{} {word}: {state}\n", printable(&command.name)))
}

fn is_changing(tenant: &Tenant, name: &str) -> bool {
    let mut definitions =
        tenant.policies.iter().flat_map(|policies| &policies.attribute_definitions);
    definitions.any(|own| own.name == name && own.index_change_time.is_some())
}

/// Waits until the servers have changed the index.
async fn wait(session: &Session, name: &str) -> Result<Tenant, Failure> {
    loop {
        let tenant = session.poll_tenant().await.map_err(|error| session.failure(error))?;
        if !is_changing(&tenant, name) {
            return Ok(tenant);
        }
    }
}
