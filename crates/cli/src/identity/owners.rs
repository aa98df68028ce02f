//! `polynym identity owners`.

use clap::Args;

use crate::client::Session;
use crate::config::{Client, Flags};
use crate::failure::Failure;
use crate::output::{self, Table, printable};
use crate::text::identifier::{self, IdentifierArg};
use polynym_presentation::time;
use polynym_proto::v1::{ListOwnersRequest, ListOwnersResponse};

pub const OWNERS: &str = "\
Examples:
  polynym identity owners handle:joe
  polynym identity owners email:joe.smith@example.com --json";

#[derive(Args)]
pub struct Owners {
    /// The identifier.
    #[arg(value_parser = identifier::parse)]
    identifier: IdentifierArg,
    #[command(flatten)]
    settings: Flags<Client>,
}

pub async fn run(command: Owners) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let identifier = Some(command.identifier.message);
    let request = ListOwnersRequest { tenant: session.tenant(), identifier };
    let answer = session.answer(session.directory().list_owners(request).await)?;
    session.show(&answer, print)
}

fn print(answer: &ListOwnersResponse) -> Result<(), Failure> {
    let name = identifier::text(answer.identifier.as_ref());
    let since = time::text(answer.known_since.as_ref());
    if answer.owners.is_empty() {
        return output::print(&format!("nobody has owned {name} since {since}\n"));
    }
    output::print_table(&table(answer))?;
    output::print(&format!("owners of {name} before {since} are not known\n"))
}

fn table(answer: &ListOwnersResponse) -> Table {
    let mut table = output::table(["user", "from", "to"]);
    for owner in &answer.owners {
        let purged = "(purged)".into();
        let user = if owner.user_id.is_empty() { purged } else { printable(&owner.user_id) };
        let from = time::text(owner.from.as_ref());
        let to = owner.to.as_ref().map_or_else(|| "now".to_owned(), ToString::to_string);
        table.add_row([&*user, &from, &to]);
    }
    table
}
