//! `polynym attribute`.

use clap::{Args, Subcommand};

use super::client::Session;
use super::failure::Failure;
use super::output::{self, printable};
use crate::config::{Client, Flags};
use crate::proto::v1::ListAttributeNamesRequest;

pub const EXAMPLES: &str = "\
Example:
  polynym attribute names --tenant acme";

/// Names in one call.
const PAGE: i32 = 1_000;

#[derive(Subcommand)]
pub enum Attribute {
    /// List the names of attributes that a tenant's users have, or once had.
    #[command(after_help = EXAMPLES)]
    Names(Names),
}

#[derive(Args)]
pub struct Names {
    #[command(flatten)]
    settings: Flags<Client>,
}

pub async fn run(command: Attribute) -> Result<(), Failure> {
    let Attribute::Names(Names { settings }) = command;
    let session = Session::open(&settings).await?;
    let mut page_token = String::new();
    loop {
        let request =
            ListAttributeNamesRequest { tenant: session.tenant(), page_size: PAGE, page_token };
        let answer = session.admin().list_attribute_names(session.request(request)).await;
        let answer = session.answer(answer)?;
        if session.json() {
            output::print_message("ListAttributeNamesResponse", &answer)?;
        } else {
            for name in &answer.names {
                output::print(&format!("{}\n", printable(name)))?;
            }
        }
        page_token = answer.next_page_token;
        if page_token.is_empty() {
            return Ok(());
        }
    }
}
