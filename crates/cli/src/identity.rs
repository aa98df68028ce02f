//! `polynym identity`.

mod owners;

use clap::{Args, Subcommand};

use super::client::Session;
use super::client::user_ref::{self, UserRef};
use super::failure::Failure;
use super::output::{self, Table, printable};
use super::text::identifier::{self, IdentifierArg};
use super::user::change::{self, Change};
use crate::config::{ChangeClient, Client, Flags};
use polynym_proto::v1::{
    CheckIdentityRequest, CheckIdentityResponse, LinkIdentityRequest, MoveIdentityRequest,
    NormalizeIdentityRequest, NormalizeIdentityResponse, ReleaseHoldRequest,
    ReplaceIdentityRequest, UnlinkIdentityRequest, VerifyIdentityRequest,
};

pub const EXAMPLES: &str = "\
Examples:
  polynym identity link handle:joe phone:+14155552671
  polynym identity normalize 'phone/US:(415) 555-2671'";

const LINK: &str = "\
Examples:
  polynym identity link handle:joe email:joe@example.org --verified --by 'sign-up mail'
  polynym identity link handle:joe social:github/583231 --display octocat";
const UNLINK: &str = "Example:\n  polynym identity unlink handle:joe email:joe@example.org";
const REPLACE: &str =
    "Example:\n  polynym identity replace email:joe@example.org handle:joe handle:joseph";
const MOVE: &str =
    "Example:\n  polynym identity move handle:joe handle:joseph social:github/583231";
const VERIFY: &str =
    "Example:\n  polynym identity verify handle:joe email:joe@example.org --by 'sign-up mail'";
const CHECK: &str = "\
Examples:
  polynym identity check handle:joe
  polynym identity check handle:joe --user email:joe@example.com

Exit status: 0 the identifier can be linked; 1 it cannot, or the call failed.";
const RELEASE: &str = "Example:\n  polynym identity release handle:joe";
const NORMALIZE: &str = "Example:\n  polynym identity normalize email:Joe.Smith@Exämple.COM";

#[derive(Subcommand)]
pub enum Identity {
    /// Link an identity to a user.
    #[command(after_help = LINK)]
    Link(Link),
    /// Unlink an identity from a user.
    #[command(after_help = UNLINK)]
    Unlink(Unlink),
    /// Replace an identity by a new one, in one step.
    #[command(after_help = REPLACE)]
    Replace(Replace),
    /// Move an identity from one user to another, in one step.
    #[command(after_help = MOVE)]
    Move(Move),
    /// Mark an identity as verified, or as not verified.
    #[command(after_help = VERIFY)]
    Verify(Verify),
    /// Check whether an identifier can be linked.
    #[command(after_help = CHECK)]
    Check(Check),
    /// Show the normalised form of an identifier, and the rules that apply.
    #[command(after_help = NORMALIZE)]
    Normalize(Normalize),
    /// Show who owns an identifier and who owned it before, newest first.
    #[command(after_help = owners::OWNERS)]
    Owners(owners::Owners),
    /// Release the hold on an identifier, so that other users can link it.
    #[command(after_help = RELEASE)]
    Release(Release),
}

#[derive(Args)]
pub struct Link {
    /// The user: an id, or an identifier of the user.
    #[arg(value_name = "USER", value_parser = user_ref::parse)]
    user: UserRef,
    /// The identifier.
    #[arg(value_parser = identifier::parse)]
    identifier: IdentifierArg,
    /// The display name of a social account.
    #[arg(long, value_name = "NAME", default_value = "")]
    display: String,
    /// Mark the identity as verified.
    #[arg(long)]
    verified: bool,
    /// The person or program that verified it.
    #[arg(long, value_name = "WHO", default_value = "", requires = "verified")]
    by: String,
    /// Make it the primary identity of its kind.
    #[arg(long)]
    primary: bool,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
pub struct Unlink {
    /// The user: an id, or an identifier of the user.
    #[arg(value_name = "USER", value_parser = user_ref::parse)]
    user: UserRef,
    /// The identifier.
    #[arg(value_parser = identifier::parse)]
    identifier: IdentifierArg,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
pub struct Replace {
    /// The user: an id, or an identifier of the user.
    #[arg(value_name = "USER", value_parser = user_ref::parse)]
    user: UserRef,
    /// The identifier to unlink.
    #[arg(value_parser = identifier::parse)]
    old: IdentifierArg,
    /// The identifier to link instead.
    #[arg(value_parser = identifier::parse)]
    new: IdentifierArg,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
pub struct Move {
    /// The current owner: an id, or an identifier of the user.
    #[arg(value_parser = user_ref::parse)]
    from: UserRef,
    /// The new owner: an id, or an identifier of the user.
    #[arg(value_parser = user_ref::parse)]
    to: UserRef,
    /// The identifier.
    #[arg(value_parser = identifier::parse)]
    identifier: IdentifierArg,
    /// Show the result without applying it.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
pub struct Verify {
    /// The user: an id, or an identifier of the user.
    #[arg(value_name = "USER", value_parser = user_ref::parse)]
    user: UserRef,
    /// The identifier.
    #[arg(value_parser = identifier::parse)]
    identifier: IdentifierArg,
    /// The person or program that verified it.
    #[arg(long, value_name = "WHO", default_value = "", conflicts_with = "revoke")]
    by: String,
    /// Mark the identity as not verified.
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
pub struct Normalize {
    /// The identifier.
    #[arg(value_parser = identifier::parse)]
    identifier: IdentifierArg,
    #[command(flatten)]
    settings: Flags<Client>,
}

#[derive(Args)]
pub struct Check {
    /// The identifier.
    #[arg(value_parser = identifier::parse)]
    identifier: IdentifierArg,
    /// The user to link it to, for whom held identifiers are available: an id, or an identifier of
    /// the user.
    #[arg(long, value_name = "USER", value_parser = user_ref::parse)]
    user: Option<UserRef>,
    #[command(flatten)]
    settings: Flags<Client>,
}

#[derive(Args)]
pub struct Release {
    /// The identifier.
    #[arg(value_parser = identifier::parse)]
    identifier: IdentifierArg,
    /// A UUID that identifies this call, so that a retry takes effect at most once.
    #[arg(long, value_name = "UUID")]
    request_id: Option<String>,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

pub async fn run(command: Identity) -> Result<(), Failure> {
    match command {
        Identity::Link(command) => link(command).await,
        Identity::Unlink(command) => unlink(command).await,
        Identity::Replace(command) => replace(command).await,
        Identity::Move(command) => move_to(command).await,
        Identity::Verify(command) => verify(command).await,
        Identity::Check(command) => check(command).await,
        Identity::Normalize(command) => normalize(command).await,
        Identity::Owners(command) => owners::run(command).await,
        Identity::Release(command) => release(command).await,
    }
}

async fn link(command: Link) -> Result<(), Failure> {
    let session = Session::open(&command.change.settings).await?;
    let request = LinkIdentityRequest {
        tenant: session.tenant(),
        user_id: command.user.id(&session).await?,
        identifier: Some(command.identifier.message),
        verified: command.verified,
        verified_by: command.by,
        primary: command.primary,
        display: command.display,
        etag: command.change.etag,
        request_id: command.change.request_id.unwrap_or_default(),
    };
    let outcome = session.registry().link_identity(request).await;
    change::show(&session, session.answer(outcome)?.user)
}

async fn unlink(command: Unlink) -> Result<(), Failure> {
    let session = Session::open(&command.change.settings).await?;
    let request = UnlinkIdentityRequest {
        tenant: session.tenant(),
        user_id: command.user.id(&session).await?,
        identifier: Some(command.identifier.message),
        etag: command.change.etag,
        request_id: command.change.request_id.unwrap_or_default(),
    };
    let outcome = session.registry().unlink_identity(request).await;
    change::show(&session, session.answer(outcome)?.user)
}

async fn replace(command: Replace) -> Result<(), Failure> {
    let session = Session::open(&command.change.settings).await?;
    let request = ReplaceIdentityRequest {
        tenant: session.tenant(),
        user_id: command.user.id(&session).await?,
        old_identifier: Some(command.old.message),
        new_identifier: Some(command.new.message),
        etag: command.change.etag,
        request_id: command.change.request_id.unwrap_or_default(),
    };
    let outcome = session.registry().replace_identity(request).await;
    change::show(&session, session.answer(outcome)?.user)
}

async fn move_to(command: Move) -> Result<(), Failure> {
    let session = Session::open(&command.change.settings).await?;
    let request = MoveIdentityRequest {
        tenant: session.tenant(),
        from_user_id: command.from.id(&session).await?,
        to_user_id: command.to.id(&session).await?,
        identifier: Some(command.identifier.message),
        etag: command.change.etag,
        request_id: command.change.request_id.unwrap_or_default(),
        validate_only: command.dry_run,
    };
    let outcome = session.registry().move_identity(request).await;
    change::show(&session, session.answer(outcome)?.user)
}

async fn verify(command: Verify) -> Result<(), Failure> {
    let session = Session::open(&command.change.settings).await?;
    let request = VerifyIdentityRequest {
        tenant: session.tenant(),
        user_id: command.user.id(&session).await?,
        identifier: Some(command.identifier.message),
        verified: !command.revoke,
        verified_by: command.by,
        etag: command.change.etag,
        request_id: command.change.request_id.unwrap_or_default(),
    };
    let outcome = session.registry().verify_identity(request).await;
    change::show(&session, session.answer(outcome)?.user)
}

async fn release(command: Release) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = ReleaseHoldRequest {
        tenant: session.tenant(),
        identifier: Some(command.identifier.message),
        request_id: command.request_id.unwrap_or_default(),
    };
    let answer = session.answer(session.admin().release_hold(request).await)?;
    session.show(&answer, |answer| {
        let name = identifier::text(answer.identifier.as_ref());
        output::print(&format!("{name} is held no longer\n"))
    })
}

async fn check(command: Check) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let user_id = match command.user {
        Some(user) => user.id(&session).await?,
        None => String::new(),
    };
    let request = CheckIdentityRequest {
        tenant: session.tenant(),
        identifier: Some(command.identifier.message),
        user_id,
    };
    let answer = session.answer(session.directory().check_identity(request).await)?;
    if session.json() {
        output::print_message_with_defaults(&answer)?;
    } else {
        output::print_table(&verdict(&answer))?;
    }

    if answer.available { Ok(()) } else { Err(Failure::AlreadyReported) }
}

fn verdict(answer: &CheckIdentityResponse) -> Table {
    let mut table = output::table(["identifier", &identifier::text(answer.identifier.as_ref())]);
    table.add_row(["available", if answer.available { "yes" } else { "no" }]);
    if !answer.available {
        table.add_row(["why not", &printable(&answer.reason)]);
    }
    if let Some(until) = &answer.held_until {
        table.add_row(["held until", &until.to_string()]);
    }
    table
}

async fn normalize(command: Normalize) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let request = NormalizeIdentityRequest {
        tenant: session.tenant(),
        identifier: Some(command.identifier.message),
    };
    let answer = session.answer(session.directory().normalize_identity(request).await)?;
    session.show(&answer, |answer| output::print_table(&normalized(answer)))
}

fn normalized(answer: &NormalizeIdentityResponse) -> Table {
    let mut table = output::table(["identifier", &identifier::text(answer.identifier.as_ref())]);
    table.add_row(["key", &printable(&answer.key)]);
    if !answer.skeleton.is_empty() {
        table.add_row(["skeleton", &printable(&answer.skeleton)]);
    }
    table.add_row(["rules version", &answer.rules_version.to_string()]);
    for change in &answer.changes {
        let step = format!("{} → {}", printable(&change.before), printable(&change.after));
        table.add_row([&format!("rule {}", printable(&change.rule)), &step]);
    }
    table
}
