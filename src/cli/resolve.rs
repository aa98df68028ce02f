//! `polynym resolve`.

use clap::{Args, ValueEnum};
use comfy_table::Table;
use prost_types::Timestamp;
use tonic::Code;

use super::client::Session;
use super::failure::Failure;
use super::identifier::Typed;
use super::output::printable;
use super::report::rich;
use super::time::instant;
use super::{identifier, output, view};
use crate::config::{Client, Flags};
use crate::proto::google::rpc::Status as RpcStatus;
use crate::proto::v1::batch_resolve_identities_response::result::Outcome;
use crate::proto::v1::batch_resolve_identities_response::{Found, Result as Item};
use crate::proto::v1::{
    BatchResolveIdentitiesRequest, Consistency, ResolveIdentityRequest, ResolveIdentityResponse,
};

pub const EXAMPLES: &str = "\
Examples:
  polynym resolve email:joe.smith@example.com
  polynym resolve handle:joe 'phone/US:(415) 555-2671' social:github/583231
  polynym resolve --as-of 2026-01-31 email:joe.smith@example.com
  polynym resolve --json url:https://www.linkedin.com/in/joe.e.smith";

#[derive(Args)]
pub struct Resolve {
    /// The identifiers: email:…, handle:…, phone:+…, phone/REGION:…, social:PROVIDER/SUBJECT,
    /// url:https://…
    #[arg(required = true, value_name = "IDENTIFIER", value_parser = identifier::parse)]
    identifiers: Vec<Typed>,
    /// The freshness of the answer.
    #[arg(long, value_enum, default_value = "latest")]
    consistency: Freshness,
    /// Show disabled users, too.
    #[arg(long)]
    show_disabled: bool,
    /// Ask who owned the identifiers then: 2026-01-31, 2026-01-31T12:00:00Z, or an age: 90d. Needs
    /// the role registrar.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    as_of: Option<Timestamp>,
    #[command(flatten)]
    settings: Flags<Client>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Freshness {
    /// The state that a majority has acknowledged; it may be stale for the length of a failover.
    Latest,
    /// Never stale.
    Linearizable,
    /// From the nearest member of the database, which may lag behind.
    Eventual,
}

impl From<Freshness> for Consistency {
    fn from(freshness: Freshness) -> Self {
        match freshness {
            Freshness::Latest => Self::Latest,
            Freshness::Linearizable => Self::Linearizable,
            Freshness::Eventual => Self::Eventual,
        }
    }
}

pub async fn run(command: Resolve) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    match command.identifiers.as_slice() {
        [one] => resolve_one(&session, one, &command).await,
        many => resolve_many(&session, many, &command).await,
    }
}

async fn resolve_one(session: &Session, typed: &Typed, command: &Resolve) -> Result<(), Failure> {
    let request = ResolveIdentityRequest {
        tenant: session.tenant(),
        identifier: Some(typed.message.clone()),
        consistency: Consistency::from(command.consistency).into(),
        show_disabled: command.show_disabled,
        as_of: command.as_of,
        ..Default::default()
    };
    let found = match session.directory().resolve_identity(session.request(request)).await {
        Err(status) if status.code() == Code::NotFound => Err(rich(&status)),
        answer => {
            let ResolveIdentityResponse { user, identity } = session.answer(answer)?;
            Ok(Found { user, identity })
        }
    };

    show(session, &[(typed, found)])
}

async fn resolve_many(
    session: &Session,
    typed: &[Typed],
    command: &Resolve,
) -> Result<(), Failure> {
    let request = BatchResolveIdentitiesRequest {
        tenant: session.tenant(),
        identifiers: typed.iter().map(|typed| typed.message.clone()).collect(),
        consistency: Consistency::from(command.consistency).into(),
        show_disabled: command.show_disabled,
        as_of: command.as_of,
        ..Default::default()
    };
    let answer = session.directory().batch_resolve_identities(session.request(request)).await;
    let results = session.answer(answer)?.results;
    let items: Vec<_> = typed.iter().zip(results.into_iter().map(outcome)).collect();
    show(session, &items)
}

fn outcome(item: Item) -> Result<Found, RpcStatus> {
    match item.outcome {
        Some(Outcome::Found(found)) => Ok(found),
        Some(Outcome::Error(status)) => Err(status),
        None => Err(RpcStatus {
            code: Code::Internal as i32,
            message: "no answer".to_owned(),
            details: Vec::new(),
        }),
    }
}

/// Shows answers as a table, or as one object a line, in the order in which was asked; and errors
/// on standard error.
fn show(session: &Session, items: &[(&Typed, Result<Found, RpcStatus>)]) -> Result<(), Failure> {
    if session.json() {
        items.iter().try_for_each(|(typed, outcome)| print_item(typed, outcome))?;
    } else {
        let mut table = output::table(["asked for", "user", "name", "state", "identities"]);
        items.iter().for_each(|(typed, outcome)| add_row(&mut table, typed, outcome));
        if !table.is_empty() {
            output::print_table(&table)?;
        }
    }

    let mut failed = false;
    for (typed, outcome) in items {
        if let Err(status) = outcome {
            eprintln!("{}: {}", printable(&typed.text), printable(&status.message));
            failed = true;
        }
    }

    if failed { Err(Failure::AlreadyReported) } else { Ok(()) }
}

/// Prints one item in the same form for one and for many. An error has a line too, which keeps the
/// order.
fn print_item(typed: &Typed, outcome: &Result<Found, RpcStatus>) -> Result<(), Failure> {
    match outcome {
        Ok(found) => output::print_message("BatchResolveIdentitiesResponse.Found", found),
        Err(status) => output::print_error(Some(&typed.text), status),
    }
}

fn add_row(table: &mut Table, typed: &Typed, outcome: &Result<Found, RpcStatus>) {
    let Ok(Found { user: Some(user), .. }) = outcome else { return };
    let identities: Vec<_> =
        user.identities.iter().map(|i| identifier::text(i.identifier.as_ref())).collect();
    table.add_row([
        printable(&typed.text).into_owned(),
        printable(&user.user_id).into_owned(),
        printable(&user.display_name).into_owned(),
        view::state(user).to_owned(),
        identities.join("\n"),
    ]);
}
