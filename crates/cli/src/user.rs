//! `polynym user`.

pub mod change;
mod count;
mod duplicates;
pub mod find;
pub mod history;
mod lifecycle;
mod many;
mod merge;
mod search;

use std::time::SystemTime;

use clap::{Args, Subcommand};
use prost_types::{FieldMask, Timestamp};

use super::client::Session;
use super::client::former_user::{deletion_note, merge_note};
use super::client::user_ref::{self, UserRef};
use super::failure::Failure;
use super::output;
use super::text::attribute::{self, AttributeArg};
use super::text::identifier::{self, IdentifierArg};
use super::text::user_table;
use crate::config::{ChangeClient, Client, Flags};
use change::{Change, show};
use many::{Action, Subject};
use polynym_proto::v1;
use polynym_proto::v1::bulk_action::Attributes;
use polynym_proto::v1::{CreateUserRequest, GetUserRequest, State, UpdateUserRequest};

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
Examples:
  polynym user update handle:joe --name 'Joe E. Smith' --remove-attribute team
  polynym user set --filter 'attributes.team = \"search\"' --attribute team=find --dry-run";

#[derive(Subcommand)]
pub enum User {
    /// Register a user.
    #[command(after_help = CREATE_EXAMPLES)]
    Create(Create),
    /// Show a user.
    #[command(after_help = GET_EXAMPLES)]
    Get(Get),
    /// Change the name and attributes of a user, or of many.
    #[command(after_help = UPDATE_EXAMPLES, visible_alias = "set")]
    Update(Update),
    /// Search users by a filter.
    #[command(after_help = search::SEARCH)]
    Search(search::Search),
    /// Count the users that a filter matches.
    #[command(after_help = count::COUNT)]
    Count(count::Count),
    /// List all users.
    #[command(after_help = search::LIST)]
    List(search::List),
    /// Find users who are probably the same person. Needs the role admin.
    #[command(after_help = duplicates::DUPLICATES)]
    Duplicates(duplicates::Duplicates),
    /// Show the history of a user, newest first. Needs the role viewer.
    #[command(after_help = history::HISTORY)]
    History(history::History),
    /// Disable users: they keep their identifiers, which do not resolve.
    #[command(after_help = lifecycle::DISABLE)]
    Disable(lifecycle::Lifecycle),
    /// Enable disabled users.
    #[command(after_help = lifecycle::ENABLE)]
    Enable(lifecycle::Lifecycle),
    /// Delete users, who can be restored until they are purged.
    #[command(after_help = lifecycle::DELETE)]
    Delete(lifecycle::Lifecycle),
    /// Restore a deleted user.
    #[command(after_help = lifecycle::UNDELETE)]
    Undelete(lifecycle::Lifecycle),
    /// Permanently remove a user, and the users merged into it, after a confirmation.
    #[command(after_help = lifecycle::PURGE)]
    Purge(lifecycle::Purge),
    /// Merge one user into another.
    #[command(after_help = merge::MERGE)]
    Merge(merge::Merge),
    /// Undo a merge.
    #[command(after_help = merge::UNMERGE)]
    Unmerge(merge::Unmerge),
}

#[derive(Args)]
pub struct Create {
    /// The display name.
    #[arg(long, default_value = "")]
    name: String,
    /// An identifier of the user; can be repeated.
    #[arg(long = "identity", value_name = "KIND:VALUE", value_parser = identifier::parse)]
    identities: Vec<IdentifierArg>,
    /// An identifier that is the primary one of its kind, by default the first; can be repeated.
    #[arg(long = "primary", value_name = "KIND:VALUE", value_parser = identifier::parse)]
    primaries: Vec<IdentifierArg>,
    /// Mark all identities as verified.
    #[arg(long)]
    verified: bool,
    /// The person or program that verified them.
    #[arg(long, value_name = "WHO", default_value = "", requires = "verified")]
    by: String,
    /// An attribute of the user; can be repeated. TYPE: string, int, double, bool, time or list.
    #[arg(long = "attribute", value_name = "NAME[:TYPE]=VALUE", value_parser = attribute::parse)]
    attributes: Vec<AttributeArg>,
    /// A UUID that identifies this call, so that a retry takes effect at most once.
    #[arg(long, value_name = "UUID")]
    request_id: Option<String>,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

#[derive(Args)]
pub struct Get {
    /// The user: an id, or an identifier of the user.
    #[arg(value_name = "USER", value_parser = user_ref::parse)]
    user: UserRef,
    #[command(flatten)]
    settings: Flags<Client>,
}

#[derive(Args)]
#[group(id = "change", required = true, multiple = true, args = ["name", "attributes", "remove"])]
pub struct Update {
    #[command(flatten)]
    subject: Subject,
    /// The new name.
    #[arg(long)]
    name: Option<String>,
    /// An attribute to set; can be repeated. TYPE: string, int, double, bool, time or list.
    #[arg(long = "attribute", value_name = "NAME[:TYPE]=VALUE", value_parser = attribute::parse)]
    attributes: Vec<AttributeArg>,
    /// An attribute to remove; can be repeated.
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
        User::Count(command) => count::count(command).await,
        User::List(command) => search::list(command).await,
        User::Duplicates(command) => duplicates::run(command).await,
        User::History(command) => history::run(command).await,
        User::Disable(command) => lifecycle::disable(command).await,
        User::Enable(command) => lifecycle::enable(command).await,
        User::Delete(command) => lifecycle::delete(command).await,
        User::Undelete(command) => lifecycle::undelete(command).await,
        User::Purge(command) => lifecycle::purge(command).await,
        User::Merge(command) => merge::merge(command).await,
        User::Unmerge(command) => merge::unmerge(command).await,
    }
}

async fn create(command: Create) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let verify_time = command.verified.then(|| Timestamp::from(SystemTime::now()));
    let identity = |(identifier, primary): (IdentifierArg, bool)| v1::Identity {
        identifier: Some(identifier.message),
        primary,
        verify_time,
        verified_by: command.by.clone(),
        ..Default::default()
    };
    let primaries = command.primaries.into_iter().map(|identifier| (identifier, true));
    let others = command.identities.into_iter().map(|identifier| (identifier, false));
    let user = v1::User {
        display_name: command.name,
        identities: primaries.chain(others).map(identity).collect(),
        attributes: command.attributes.into_iter().map(|a| (a.name, a.value)).collect(),
        ..Default::default()
    };
    let request = CreateUserRequest {
        tenant: session.tenant(),
        user: Some(user),
        request_id: command.request_id.unwrap_or_default(),
    };
    let outcome = session.registry().create_user(request).await;
    show(&session, session.answer(outcome)?.user)
}

async fn get(command: Get) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let user_id = command.user.id_of_any(&session).await?;
    let request = GetUserRequest { tenant: session.tenant(), user_id, read_mask: None };
    let answer = session.answer(session.directory().get_user(request).await)?;
    if session.json() {
        return output::print_message(&answer);
    }

    let user = answer.user.unwrap_or_default();
    if !answer.merged_from.is_empty() {
        eprintln!("{}", merge_note(&session, &answer.merged_from, &user.user_id).await);
    }
    if user.state() == State::Deleted {
        eprintln!("{}", deletion_note(&session, &user).await);
    }

    user_table::print(&user)
}

async fn update(command: Update) -> Result<(), Failure> {
    check(&command)?;
    let Some(user) = command.subject.one() else {
        if command.name.is_some() {
            let message = "--name is of one user: leave it out";
            return Err(Failure::Usage(message.to_owned()));
        }
        let set = command.attributes.into_iter().map(|a| (a.name, a.value)).collect();
        let action = Action::Attributes(Attributes { set, remove: command.remove });
        return many::run(command.subject, command.change.of_many()?, action).await;
    };
    let session = Session::open(&command.change.settings).await?;
    let request = UpdateUserRequest {
        tenant: session.tenant(),
        update_mask: Some(FieldMask { paths: mask(&command) }),
        user: Some(v1::User {
            user_id: user.id(&session).await?,
            etag: command.change.etag,
            display_name: command.name.unwrap_or_default(),
            attributes: command.attributes.into_iter().map(|a| (a.name, a.value)).collect(),
            ..Default::default()
        }),
        request_id: command.change.request_id.unwrap_or_default(),
    };
    let outcome = session.registry().update_user(request).await;
    show(&session, session.answer(outcome)?.user)
}

/// Fails if the same attribute is set and removed.
fn check(command: &Update) -> Result<(), Failure> {
    let mut names = command.attributes.iter().map(|attribute| &attribute.name);
    match names.find(|name| command.remove.contains(name)) {
        Some(name) => Err(Failure::Usage(format!(
            "--attribute sets {name}, and --remove-attribute removes it"
        ))),
        None => Ok(()),
    }
}

/// The update mask. An attribute in the mask without a value is removed.
fn mask(command: &Update) -> Vec<String> {
    let set = command.attributes.iter().map(|attribute| &attribute.name);
    let attributes = set.chain(&command.remove).map(|name| format!("attributes.{name}"));
    let name = command.name.iter().map(|_| "display_name".to_owned());
    name.chain(attributes).collect()
}
