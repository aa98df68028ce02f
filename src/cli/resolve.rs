//! `polynym resolve`.

use clap::Args;
use comfy_table::Table;
use tonic::Code;
use tonic_types::Status as RpcStatus;

use super::client::Session;
use super::identifier::{self, Typed};
use super::output::{self, printable};
use super::{Failure, view};
use crate::config::{Client, Flags};
use crate::proto::v1::batch_resolve_identities_response::{Found, Result as Item, result::Outcome};
use crate::proto::v1::{BatchResolveIdentitiesRequest, ResolveIdentityRequest, ResolveIdentityResponse};

pub const EXAMPLES: &str = "\
Examples:
  polynym resolve email:joe.smith@example.com
  polynym resolve email:joe.smith@example.com handle:joe 'phone/US:(415) 555-2671' social:github/583231
  polynym resolve --json url:https://www.linkedin.com/in/joe.e.smith";

#[derive(Args)]
pub struct Resolve {
    /// Who to look for: email:…, handle:…, phone:+…, phone/REGION:…, social:PROVIDER/SUBJECT, url:https://…
    #[arg(required = true, value_name = "IDENTIFIER", value_parser = identifier::parse)]
    identifiers: Vec<Typed>,
    /// Show disabled users, too.
    #[arg(long)]
    show_disabled: bool,
    #[command(flatten)]
    settings: Flags<Client>,
}

pub async fn run(command: Resolve) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    match command.identifiers.as_slice() {
        [one] => resolve_one(&session, one, command.show_disabled).await,
        many => resolve_many(&session, many, command.show_disabled).await,
    }
}

async fn resolve_one(session: &Session, typed: &Typed, show_disabled: bool) -> Result<(), Failure> {
    let tenant = session.tenant();
    let identifier = Some(typed.message.clone());
    let request = ResolveIdentityRequest { tenant, identifier, show_disabled, ..Default::default() };
    let answer = session.directory().resolve_identity(session.request(request)).await;
    match answer.map(tonic::Response::into_inner) {
        Ok(ResolveIdentityResponse { user, identity }) => {
            Answers::new(session).print(&[(typed, Ok(Found { user, identity }))])
        }
        Err(status) if status.code() == Code::NotFound => {
            tell(typed, status.message());
            Err(Failure::Told)
        }
        Err(status) => Err(status.into()),
    }
}

async fn resolve_many(session: &Session, typed: &[Typed], show_disabled: bool) -> Result<(), Failure> {
    let tenant = session.tenant();
    let identifiers = typed.iter().map(|typed| typed.message.clone()).collect();
    let request = BatchResolveIdentitiesRequest { tenant, identifiers, show_disabled, ..Default::default() };
    let answer = session.directory().batch_resolve_identities(session.request(request)).await?.into_inner();
    let items: Vec<_> = typed.iter().zip(answer.results.into_iter().map(outcome)).collect();
    Answers::new(session).print(&items)?;
    let mut failed = false;
    for (typed, outcome) in &items {
        if let Err(status) = outcome {
            tell(typed, &status.message);
            failed = true;
        }
    }
    if failed { Err(Failure::Told) } else { Ok(()) }
}

fn outcome(item: Item) -> Result<Found, RpcStatus> {
    match item.outcome {
        Some(Outcome::Found(found)) => Ok(found),
        Some(Outcome::Error(status)) => Err(status),
        None => Err(RpcStatus { code: Code::Internal as i32, message: "no answer".to_owned(), details: Vec::new() }),
    }
}

fn tell(typed: &Typed, message: &str) {
    eprintln!("{}: {}", printable(&typed.text), printable(message));
}

/// How answers are shown: as a table, or as one object a line, in the order in which was asked.
struct Answers {
    json: bool,
}

impl Answers {
    fn new(session: &Session) -> Self {
        Self { json: session.json() }
    }

    fn print(&self, items: &[(&Typed, Result<Found, RpcStatus>)]) -> Result<(), Failure> {
        if self.json {
            return items.iter().try_for_each(|(_, outcome)| print_item(outcome));
        }
        let mut table = output::table(["asked for", "user", "name", "state", "identities"]);
        items.iter().for_each(|(typed, outcome)| add_row(&mut table, typed, outcome));
        if table.is_empty() { Ok(()) } else { output::print_table(&table) }
    }
}

/// What is found looks the same whether one or many were asked for. An error has a line too, to keep the order.
fn print_item(outcome: &Result<Found, RpcStatus>) -> Result<(), Failure> {
    match outcome {
        Ok(found) => output::print_message("BatchResolveIdentitiesResponse.Found", found),
        Err(status) => {
            let outcome = Some(Outcome::Error(status.clone()));
            output::print_message("BatchResolveIdentitiesResponse.Result", &Item { outcome })
        }
    }
}

fn add_row(table: &mut Table, typed: &Typed, outcome: &Result<Found, RpcStatus>) {
    let Ok(Found { user: Some(user), .. }) = outcome else { return };
    let identities: Vec<_> = user.identities.iter().map(|i| identifier::text(i.identifier.as_ref())).collect();
    table.add_row([
        printable(&typed.text).into_owned(),
        printable(&user.user_id).into_owned(),
        printable(&user.display_name).into_owned(),
        view::state(user).to_owned(),
        identities.join("\n"),
    ]);
}
