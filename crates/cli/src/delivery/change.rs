//! `polynym delivery create`, `set`, `pause` and `resume`.

use std::path::PathBuf;

use clap::Args;
use prost_types::FieldMask;

use super::{secret, show};
use crate::client::Session;
use crate::config::{ChangeClient, Flags};
use crate::failure::Failure;
use crate::output;
use polynym_presentation::event::parse;
use polynym_proto::v1::{CreateDeliveryRequest, Delivery, EventType, UpdateDeliveryRequest};

pub const CREATE: &str = "\
Examples:
  polynym delivery create billing --url https://billing.example.com/hook
  polynym delivery create crm --url https://crm.example.com/hook --type user_created --ids-only
  polynym delivery create crm --url https://crm.example.com/hook --secret-file crm.secret

Without --secret-file, a new secret is printed once. The receiver needs it to check signatures.";

pub const SET: &str = "\
Examples:
  polynym delivery set billing --url https://billing.example.com/v2/hook
  polynym delivery set billing --secret-file both.secrets

To replace a secret, give a file with the new and the old one; once the receiver knows the new one,
give a file with that alone.";

pub const PAUSE: &str = "Example:\n  polynym delivery pause billing";

pub const RESUME: &str = "Example:\n  polynym delivery resume billing";

#[derive(Args)]
pub struct Create {
    /// The id of the delivery.
    #[arg(value_name = "DELIVERY")]
    id: String,
    /// The URL of the receiver.
    #[arg(long, value_name = "URL")]
    url: String,
    /// Deliver events of this type, such as user_updated; can be repeated. By default, all.
    #[arg(long = "type", value_name = "TYPE", value_parser = parse)]
    types: Vec<EventType>,
    /// Deliver the ids of users alone, without values.
    #[arg(long)]
    ids_only: bool,
    /// The purpose of the delivery, for people.
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// A file with a secret, or with two, one a line.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

#[derive(Args)]
pub struct Set {
    /// The id of the delivery.
    #[arg(value_name = "DELIVERY")]
    id: String,
    /// The URL of the receiver.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Deliver events of this type alone; can be repeated.
    #[arg(long = "type", value_name = "TYPE", value_parser = parse, conflicts_with = "all_types")]
    types: Vec<EventType>,
    /// Deliver events of all types.
    #[arg(long)]
    all_types: bool,
    /// Whether to deliver the ids of users alone.
    #[arg(long, value_name = "true|false")]
    ids_only: Option<bool>,
    /// The purpose of the delivery, for people.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A file with a secret, or with two, one a line.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

#[derive(Args)]
pub struct Pause {
    /// The id of the delivery.
    #[arg(value_name = "DELIVERY")]
    id: String,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

pub async fn create(command: Create) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let generated = match command.secret_file {
        Some(_) => None,
        None => Some(secret::generate()?),
    };
    let secrets = match &command.secret_file {
        Some(path) => secret::read(path)?,
        None => generated.iter().cloned().collect(),
    };
    let request = CreateDeliveryRequest {
        tenant: session.tenant(),
        delivery_id: command.id,
        url: command.url,
        types: command.types.iter().map(|kind| (*kind).into()).collect(),
        ids_only: command.ids_only,
        description: command.description,
        secrets,
    };
    let answer = session.answer(session.admin().create_delivery(request).await)?;
    print(&session, &answer.delivery.unwrap_or_default())?;
    if let Some(secret) = generated {
        // Apart from the answer, which programs read.
        eprintln!("the secret, which is not shown again: {secret}");
    }
    Ok(())
}

pub async fn set(command: Set) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let (has_types, secret_file) =
        (command.all_types || !command.types.is_empty(), &command.secret_file);
    let given = [
        ("url", command.url.is_some()),
        ("types", has_types),
        ("ids_only", command.ids_only.is_some()),
        ("description", command.description.is_some()),
        ("secrets", secret_file.is_some()),
    ];
    let secrets = secret_file.as_deref().map(secret::read).transpose()?;
    let request = UpdateDeliveryRequest {
        url: command.url.unwrap_or_default(),
        types: command.types.iter().map(|kind| (*kind).into()).collect(),
        ids_only: command.ids_only.unwrap_or_default(),
        description: command.description.unwrap_or_default(),
        secrets: secrets.unwrap_or_default(),
        ..UpdateDeliveryRequest::default()
    };
    let paths = given.iter().filter(|(_, given)| *given).map(|(path, _)| (*path).to_owned());
    update(&session, command.id, paths.collect(), request).await
}

pub async fn pause(command: Pause, paused: bool) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = UpdateDeliveryRequest { paused, ..UpdateDeliveryRequest::default() };
    update(&session, command.id, vec!["paused".to_owned()], request).await
}

async fn update(
    session: &Session,
    delivery_id: String,
    paths: Vec<String>,
    request: UpdateDeliveryRequest,
) -> Result<(), Failure> {
    let (tenant, update_mask) = (session.tenant(), Some(FieldMask { paths }));
    let request = UpdateDeliveryRequest { tenant, delivery_id, update_mask, ..request };
    let answer = session.answer(session.admin().update_delivery(request).await)?;
    print(session, &answer.delivery.unwrap_or_default())
}

fn print(session: &Session, delivery: &Delivery) -> Result<(), Failure> {
    match session.json() {
        true => output::print_message(delivery),
        false => output::print(&show::text(delivery)),
    }
}
