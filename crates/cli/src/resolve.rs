//! `polynym resolve`.

use clap::{Args, ValueEnum};
use prost_types::Timestamp;
use tonic::Code;

use super::client::Session;
use super::failure::Failure;
use super::output::{self, Table, printable};
use super::report::rpc_status;
use super::text::identifier::{self, IdentifierArg};
use super::text::user_table;
use crate::config::{Client, Flags};
use polynym_presentation::time::instant;
use polynym_proto::google::rpc::Status as RpcStatus;
use polynym_proto::v1::batch_resolve_identities_response::result::Outcome;
use polynym_proto::v1::batch_resolve_identities_response::{Found, Result as Item};
use polynym_proto::v1::{
    BatchResolveIdentitiesRequest, Consistency, ResolveIdentityRequest, ResolveIdentityResponse,
};

pub const EXAMPLES: &str = "\
Examples:
  polynym resolve email:joe.smith@example.com
  polynym resolve handle:joe 'phone/US:(415) 555-2671' social:github/583231
  polynym resolve '+1 (415) 555-2671' @joe https://www.linkedin.com/in/joe.e.smith
  polynym resolve --as-of 2026-01-31 email:joe.smith@example.com
  polynym resolve --json url:https://www.linkedin.com/in/joe.e.smith";

#[derive(Args)]
pub struct Resolve {
    /// The identifiers: email:…, handle:…, phone:+…, phone/REGION:…, social:PROVIDER/SUBJECT,
    /// url:https://… Without a kind, what the text looks like; numbers without a country are of the
    /// region of the locale.
    #[arg(required = true, value_name = "IDENTIFIER", value_parser = identifier::parse_pasted)]
    identifiers: Vec<IdentifierArg>,
    /// The freshness of the answer.
    #[arg(long, value_enum, default_value = "latest")]
    consistency: Freshness,
    /// Show disabled users.
    #[arg(long)]
    show_disabled: bool,
    /// Show the owners at a time: 2026-01-31, 2026-01-31T12:00:00Z, or an age: 90d. Needs the role
    /// viewer.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    as_of: Option<Timestamp>,
    #[command(flatten)]
    settings: Flags<Client>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Freshness {
    /// The state that a majority has acknowledged. May be stale during a failover.
    Latest,
    /// Never stale.
    Linearizable,
    /// The state of the nearest member of the database, which may lag.
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

async fn resolve_one(
    session: &Session,
    typed: &IdentifierArg,
    command: &Resolve,
) -> Result<(), Failure> {
    let request = ResolveIdentityRequest {
        tenant: session.tenant(),
        identifier: Some(typed.message.clone()),
        consistency: Consistency::from(command.consistency).into(),
        show_disabled: command.show_disabled,
        as_of: command.as_of,
        ..Default::default()
    };
    let found = match session.directory().resolve_identity(request).await {
        Err(error) if error.code() == Code::NotFound => Err(rpc_status(error.status())),
        outcome => {
            let ResolveIdentityResponse { user, identity } = session.answer(outcome)?;
            Ok(Found { user, identity })
        }
    };

    show(session, &[(typed, found)])
}

async fn resolve_many(
    session: &Session,
    typed: &[IdentifierArg],
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
    let outcome = session.directory().batch_resolve_identities(request).await;
    let results = session.answer(outcome)?.results;
    let items: Vec<_> = typed.iter().zip(results.into_iter().map(found_or_error)).collect();
    show(session, &items)
}

fn found_or_error(item: Item) -> Result<Found, RpcStatus> {
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

/// Shows answers in the order of the request, as a table or as JSON, and errors on standard error.
fn show(
    session: &Session,
    items: &[(&IdentifierArg, Result<Found, RpcStatus>)],
) -> Result<(), Failure> {
    if session.json() {
        items.iter().try_for_each(|(typed, outcome)| print_item(typed, outcome))?;
    } else {
        let mut table = output::table(["asked for", "user", "name", "state", "identities"]);
        items.iter().for_each(|(typed, outcome)| add_row(&mut table, typed, outcome));
        if !table.is_empty() {
            output::print_table(&table)?;
        }
    }

    let mut result = Ok(());
    for (typed, outcome) in items {
        if let Err(status) = outcome {
            eprintln!("{}: {}", printable(&typed.text), printable(&status.message));
            result = Err(Failure::AlreadyReported);
        }
    }
    result
}

/// Prints one item, or its error in the same place.
fn print_item(typed: &IdentifierArg, outcome: &Result<Found, RpcStatus>) -> Result<(), Failure> {
    match outcome {
        Ok(found) => output::print_message(found),
        Err(status) => output::print_error(Some(&typed.text), status),
    }
}

fn add_row(table: &mut Table, typed: &IdentifierArg, outcome: &Result<Found, RpcStatus>) {
    let Ok(Found { user: Some(user), .. }) = outcome else { return };
    let mut row = vec![printable(&typed.text).into_owned()];
    row.extend(user_table::summary(user));
    table.add_row(row);
}
