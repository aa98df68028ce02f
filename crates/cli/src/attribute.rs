//! `polynym attribute`.

mod define;

use clap::{Args, Subcommand};

use super::client::Session;
use super::failure::Failure;
use super::output::{self, printable};
use crate::config::{Client, Flags};
use polynym_proto::v1::ListAttributeNamesRequest;

pub const EXAMPLES: &str = "\
Examples:
  polynym attribute names --tenant acme
  polynym attribute define bio --no-index";

const NAMES: &str = "Example:\n  polynym attribute names --tenant acme";
const DEFINE: &str = "\
Examples:
  polynym attribute define level --type int
  polynym attribute define bio --no-index
  polynym attribute define bio

Without --type and --no-index, an attribute has any type and is indexed. The servers change the
index, and continue if this command is stopped.";

/// Names in one call.
const PAGE_SIZE: i32 = 1_000;

#[derive(Subcommand)]
pub enum Attribute {
    /// List the names of all attributes that a tenant's users have or had.
    #[command(after_help = NAMES)]
    Names(Names),
    /// Define an attribute: the type of its values, and whether it is indexed.
    #[command(after_help = DEFINE)]
    Define(define::Define),
}

#[derive(Args)]
pub struct Names {
    #[command(flatten)]
    settings: Flags<Client>,
}

pub async fn run(command: Attribute) -> Result<(), Failure> {
    match command {
        Attribute::Names(command) => names(command).await,
        Attribute::Define(command) => define::define(command).await,
    }
}

async fn names(command: Names) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let mut page_token = String::new();
    loop {
        let request = ListAttributeNamesRequest {
            tenant: session.tenant(),
            page_size: PAGE_SIZE,
            page_token,
        };
        let outcome = session.admin().list_attribute_names(request).await;
        let answer = session.answer(outcome)?;
        if session.json() {
            output::print_message(&answer)?;
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
