//! `polynym user`.

mod duplicates;
pub mod history;
mod life;
mod merge;
mod search;

use std::time::SystemTime;

use clap::{Args, Subcommand};
use prost_types::{FieldMask, Timestamp};

use super::attribute::Attribute;
use super::client::{Session, request_id};
use super::failure::Failure;
use super::identifier::Typed;
use super::output::printable;
use super::who::Who;
use super::{attribute, identifier, output, view, who};
use crate::config::{Client, Flags};
use crate::proto::v1;
use crate::proto::v1::{CreateUserRequest, GetUserRequest, UpdateUserRequest, UpdateUserResponse};

pub const EXAMPLES: &str = "\
Examples:
  polynym user create --name 'Joe Smith' --identity email:joe@example.com --identity handle:joe
  polynym user get handle:joe
  polynym user search 'attributes.team = search'";

const CREATE_EXAMPLES: &str = "\
Examples:
  polynym user create --name 'Joe Smith' --identity email:joe@example.com --identity handle:joe \\
      --attribute team=search --attribute level:int=3 --attribute tags:list=a,b
  polynym user create --primary email:joe@example.com --verified --by 'sign-up mail'";

const GET_EXAMPLES: &str = "\
Examples:
  polynym user get 20be0ffc-314a-bd53-7a50-013a65ca76d2
  polynym user get handle:joe";

const UPDATE_EXAMPLES: &str = "\
Example:
  polynym user update handle:joe --name 'Joe E. Smith' --remove-attribute team";

#[derive(Subcommand)]
pub enum User {
    /// Register a user.
    #[command(after_help = CREATE_EXAMPLES)]
    Create(Create),
    /// Show a user.
    #[command(after_help = GET_EXAMPLES)]
    Get(Get),
    /// Change a user's name and attributes.
    #[command(after_help = UPDATE_EXAMPLES)]
    Update(Update),
    /// Find users by a filter.
    #[command(after_help = search::SEARCH)]
    Search(search::Search),
    /// List all users.
    #[command(after_help = search::LIST)]
    List(search::List),
    /// Find users who probably are the same person. Needs the role admin.
    #[command(after_help = duplicates::DUPLICATES)]
    Duplicates(duplicates::Duplicates),
    /// Show what happened to a user, the newest first. Needs the role registrar.
    #[command(after_help = history::HISTORY)]
    History(history::History),
    /// Shut a user out: its identifiers do not resolve, and stay its own.
    #[command(after_help = life::DISABLE)]
    Disable(life::Life),
    /// Let a disabled user in again.
    #[command(after_help = life::ENABLE)]
    Enable(life::Life),
    /// Delete a user, who can be restored until it is purged.
    #[command(after_help = life::DELETE)]
    Delete(life::Life),
    /// Restore a deleted user.
    #[command(after_help = life::UNDELETE)]
    Undelete(life::Undelete),
    /// Remove a user for good, after asking, and those that were merged into it.
    #[command(after_help = life::PURGE)]
    Purge(life::Purge),
    /// Make one user part of another.
    #[command(after_help = merge::MERGE)]
    Merge(merge::Merge),
    /// Undo a merge.
    #[command(after_help = merge::UNMERGE)]
    Unmerge(merge::Unmerge),
}

/// The arguments of all commands that change a user.
#[derive(Args)]
pub struct Change {
    /// Change the user only if this is its etag.
    #[arg(long, default_value = "")]
    pub etag: String,
    /// A UUID that names this call: sent again with it, the call happens once at most.
    #[arg(long, value_name = "UUID")]
    pub request_id: Option<String>,
    #[command(flatten)]
    pub settings: Flags<Client>,
}

#[derive(Args)]
pub struct Create {
    /// A name to show to people.
    #[arg(long, default_value = "")]
    name: String,
    /// An identifier that the user shall own; may be given again.
    #[arg(long = "identity", value_name = "KIND:VALUE", value_parser = identifier::parse)]
    identities: Vec<Typed>,
    /// An identifier that it shall own as the primary one of its kind; may be given again.
    /// Otherwise the first is.
    #[arg(long = "primary", value_name = "KIND:VALUE", value_parser = identifier::parse)]
    primaries: Vec<Typed>,
    /// It is verified that all these are the user's.
    #[arg(long)]
    verified: bool,
    /// The person or program that verified them.
    #[arg(long, value_name = "WHO", default_value = "", requires = "verified")]
    by: String,
    /// A further attribute of the user; can be repeated. TYPE: string, int, double, bool, time or
    /// list.
    #[arg(long = "attribute", value_name = "NAME[:TYPE]=VALUE", value_parser = attribute::parse)]
    attributes: Vec<Attribute>,
    /// A UUID that names this call: sent again with it, the call happens once at most.
    #[arg(long, value_name = "UUID")]
    request_id: Option<String>,
    #[command(flatten)]
    settings: Flags<Client>,
}

#[derive(Args)]
pub struct Get {
    /// The user: an id, or an identifier that it owns.
    #[arg(value_name = "USER", value_parser = who::parse)]
    user: Who,
    #[command(flatten)]
    settings: Flags<Client>,
}

#[derive(Args)]
#[group(id = "change", required = true, multiple = true, args = ["name", "attributes", "remove"])]
pub struct Update {
    /// The user: an id, or an identifier that it owns.
    #[arg(value_name = "USER", value_parser = who::parse)]
    user: Who,
    /// The new name.
    #[arg(long)]
    name: Option<String>,
    /// An attribute to set; may be given again. TYPE: string, int, double, bool, time or list.
    #[arg(long = "attribute", value_name = "NAME[:TYPE]=VALUE", value_parser = attribute::parse)]
    attributes: Vec<Attribute>,
    /// An attribute to remove; may be given again.
    #[arg(long = "remove-attribute", value_name = "NAME")]
    remove: Vec<String>,
    #[command(flatten)]
    change: Change,
}

pub async fn run(command: User) -> Result<(), Failure> {
    match command {
        User::Create(command) => create(command).await,
        User::Get(command) => get(command).await,
        User::Update(command) => update(command).await,
        User::Search(command) => search::search(command).await,
        User::List(command) => search::list(command).await,
        User::Duplicates(command) => duplicates::run(command).await,
        User::History(command) => history::run(command).await,
        User::Disable(command) => life::disable(command).await,
        User::Enable(command) => life::enable(command).await,
        User::Delete(command) => life::delete(command).await,
        User::Undelete(command) => life::undelete(command).await,
        User::Purge(command) => life::purge(command).await,
        User::Merge(command) => merge::merge(command).await,
        User::Unmerge(command) => merge::unmerge(command).await,
    }
}

async fn create(command: Create) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let verify_time = command.verified.then(|| Timestamp::from(SystemTime::now()));
    let identity = |(typed, primary): (Typed, bool)| v1::Identity {
        identifier: Some(typed.message),
        primary,
        verify_time,
        verified_by: command.by.clone(),
        ..Default::default()
    };
    let primaries = command.primaries.into_iter().map(|typed| (typed, true));
    let identities = primaries.chain(command.identities.into_iter().map(|typed| (typed, false)));
    let user = v1::User {
        display_name: command.name,
        identities: identities.map(identity).collect(),
        attributes: command.attributes.into_iter().map(|a| (a.name, a.value)).collect(),
        ..Default::default()
    };
    let request_id = request_id(command.request_id.as_deref());
    let request = CreateUserRequest {
        tenant: session.tenant(),
        user: Some(user),
        request_id: request_id.clone(),
    };
    let send = |request| {
        let mut registry = session.registry();
        async move { registry.create_user(request).await }
    };
    let answer = session.mutate(&request_id, request, send).await?;

    show(&session, answer.user)
}

async fn get(command: Get) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let user_id = command.user.id(&session).await?;
    let request = GetUserRequest { tenant: session.tenant(), user_id, read_mask: None };
    let answer = session.answer(session.directory().get_user(session.request(request)).await)?;
    if session.json() {
        return output::print_message("GetUserResponse", &answer);
    }

    let user = answer.user.unwrap_or_default();
    if !answer.merged_from.is_empty() {
        eprintln!(
            "{} was merged into {}",
            printable(&answer.merged_from),
            printable(&user.user_id)
        );
    }

    view::print_user(&user)
}

async fn update(command: Update) -> Result<(), Failure> {
    check(&command)?;
    let session = Session::open(&command.change.settings).await?;
    let request_id = request_id(command.change.request_id.as_deref());
    let request = UpdateUserRequest {
        tenant: session.tenant(),
        update_mask: Some(FieldMask { paths: mask(&command) }),
        user: Some(v1::User {
            user_id: command.user.id(&session).await?,
            etag: command.change.etag,
            display_name: command.name.unwrap_or_default(),
            attributes: command.attributes.into_iter().map(|a| (a.name, a.value)).collect(),
            ..Default::default()
        }),
        request_id: request_id.clone(),
    };
    let send = |request| {
        let mut registry = session.registry();
        async move { registry.update_user(request).await }
    };
    let answer = session.mutate(&request_id, request, send).await?;

    show(&session, answer.user)
}

/// An attribute is set or removed, not both.
fn check(command: &Update) -> Result<(), Failure> {
    let both = command
        .attributes
        .iter()
        .map(|attribute| &attribute.name)
        .find(|name| command.remove.contains(name));
    match both {
        Some(name) => Err(Failure::Usage(format!(
            "--attribute sets {name}, and --remove-attribute removes it"
        ))),
        None => Ok(()),
    }
}

/// The update mask: an attribute that it lists and that has no value is removed.
fn mask(command: &Update) -> Vec<String> {
    let set = command.attributes.iter().map(|attribute| &attribute.name);
    let attributes = set.chain(&command.remove).map(|name| format!("attributes.{name}"));
    let name = command.name.iter().map(|_| "display_name".to_owned());
    name.chain(attributes).collect()
}

/// Shows the answer to a mutation; all of them have the user, and nothing else.
pub fn show(session: &Session, user: Option<v1::User>) -> Result<(), Failure> {
    if session.json() {
        return output::print_message("UpdateUserResponse", &UpdateUserResponse { user });
    }
    view::print_user(&user.unwrap_or_default())
}
