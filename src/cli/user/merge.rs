//! `polynym user merge` and `unmerge`.

use clap::{Args, ValueEnum};

use super::{Change, show};
use crate::cli::client::{Session, request_id};
use crate::cli::failure::Failure;
use crate::cli::output::printable;
use crate::cli::who::Who;
use crate::cli::{attribute, identifier, output, view, who};
use crate::proto::v1::unmerge_users_response::NotRestored;
use crate::proto::v1::{
    ConflictPolicy, MergePreview, MergeUsersRequest, UnmergeUsersRequest, UnmergeUsersResponse,
};

pub const MERGE: &str = "\
Examples:
  polynym user merge --dry-run handle:joe email:joseph@example.com
  polynym user merge --conflicts fail handle:joe email:joseph@example.com";

pub const UNMERGE: &str = "\
Example:
  polynym user unmerge 20be0ffc-314a-bd53-7a50-013a65ca76d2 5bcb4db0-05a3-b000-001e-019b8d627a80";

/// Whose value stays where both users have one of their own.
#[derive(Clone, Copy, ValueEnum)]
enum Conflicts {
    /// The primary's.
    Primary,
    /// The secondary's.
    Secondary,
    /// Neither: refuse to merge.
    Fail,
}

#[derive(Args)]
pub struct Merge {
    /// The user who stays: an id, or an identifier that it owns.
    #[arg(value_parser = who::parse)]
    primary: Who,
    /// The user who becomes part of it, likewise. Its identities resolve as the primary's state
    /// says: where only this one is disabled, they are let in again.
    #[arg(value_parser = who::parse)]
    secondary: Who,
    /// Whose name, attribute or mark of a primary identity stays where both have one of their own.
    #[arg(long, value_enum, default_value = "primary")]
    conflicts: Conflicts,
    /// Tell what would move and what would go, and do nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
pub struct Unmerge {
    /// The user who has the other's identities now: an id, or an identifier that it owns.
    #[arg(value_parser = who::parse)]
    primary: Who,
    /// The id of the user who is to be one of its own again: its identifiers lead to the other.
    secondary: String,
    /// Show the secondary as it would be, and what could not be restored, and do nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    change: Change,
}

pub async fn merge(command: Merge) -> Result<(), Failure> {
    let session = Session::open(&command.change.settings).await?;
    let request_id = request_id(command.change.request_id.as_deref());
    let policy = match command.conflicts {
        Conflicts::Primary => ConflictPolicy::PrimaryWins,
        Conflicts::Secondary => ConflictPolicy::SecondaryWins,
        Conflicts::Fail => ConflictPolicy::Fail,
    };
    let request = MergeUsersRequest {
        tenant: session.tenant(),
        primary_user_id: command.primary.id(&session).await?,
        secondary_user_id: command.secondary.id(&session).await?,
        conflict_policy: policy.into(),
        validate_only: command.dry_run,
        etag: command.change.etag,
        request_id: request_id.clone(),
    };
    let send = |request| {
        let mut registry = session.registry();
        async move { registry.merge_users(request).await }
    };
    let answer = session.mutate(&request_id, request, send).await?;

    match &answer.preview {
        Some(_) if session.json() => output::print_message("MergeUsersResponse", &answer),
        Some(preview) => print_preview(preview),
        None => show(&session, answer.user),
    }
}

fn print_preview(preview: &MergePreview) -> Result<(), Failure> {
    let mut table = output::table(["what", "stays", "goes"]);
    for identity in &preview.moved {
        table.add_row([
            "moves".to_owned(),
            identifier::text(identity.identifier.as_ref()),
            String::new(),
        ]);
    }

    for conflict in &preview.conflicts {
        let [kept, dropped] =
            [&conflict.kept, &conflict.dropped].map(|value| value.as_ref().map(attribute::text));
        let field = printable(&conflict.field).into_owned();
        table.add_row([field, kept.unwrap_or_default(), dropped.unwrap_or_default()]);
    }

    output::print_table(&table)?;
    output::print("The result would be:\n")?;
    preview.result.as_ref().map_or(Ok(()), view::print_user)
}

pub async fn unmerge(command: Unmerge) -> Result<(), Failure> {
    let dry_run = command.dry_run;
    let session = Session::open(&command.change.settings).await?;
    let request_id = request_id(command.change.request_id.as_deref());
    let request = UnmergeUsersRequest {
        tenant: session.tenant(),
        primary_user_id: command.primary.id(&session).await?,
        secondary_user_id: command.secondary,
        etag: command.change.etag,
        request_id: request_id.clone(),
        validate_only: dry_run,
    };
    let send = |request| {
        let mut registry = session.registry();
        async move { registry.unmerge_users(request).await }
    };
    let answer = session.mutate(&request_id, request, send).await?;
    if session.json() {
        return output::print_message("UnmergeUsersResponse", &answer);
    }

    if dry_run {
        output::print("The secondary would be:\n")?;
    }
    print_unmerged(&answer)
}

fn print_unmerged(answer: &UnmergeUsersResponse) -> Result<(), Failure> {
    if let Some(user) = &answer.user {
        view::print_user(user)?;
    }
    for NotRestored { field, identifier } in &answer.not_restored {
        let identifier = identifier::text(identifier.as_ref());
        output::print(
            format!("not restored, having changed since: {} {identifier}", printable(field))
                .trim_end(),
        )?;
        output::print("\n")?;
    }

    Ok(())
}
