//! `polynym user merge` and `unmerge`.

use clap::{Args, ValueEnum};

use super::change::{Change, show};
use crate::client::Session;
use crate::client::former_user;
use crate::client::user_ref::{self, UserRef};
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::text::{attribute, identifier, user_table};
use polynym_proto::v1::unmerge_users_response::NotRestored;
use polynym_proto::v1::{
    ConflictPolicy, MergePreview, MergeUsersRequest, UnmergeUsersRequest, UnmergeUsersResponse,
};

pub const MERGE: &str = "\
Examples:
  polynym user merge --dry-run handle:joe email:joseph@example.com
  polynym user merge --conflicts fail handle:joe email:joseph@example.com";

pub const UNMERGE: &str = "\
Examples:
  polynym user unmerge handle:joe email:joseph@example.com
  polynym user unmerge 20be0ffc-314a-bd53-7a50-013a65ca76d2 5bcb4db0-05a3-b000-001e-019b8d627a80";

/// The user whose value stays if both have one.
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
    /// The user that remains: an id, or an identifier of the user.
    #[arg(value_parser = user_ref::parse)]
    primary: UserRef,
    /// The user to merge into it: an id, or an identifier of the user. The primary's state then
    /// decides whether its identities resolve, even if only this user was disabled.
    #[arg(value_parser = user_ref::parse)]
    secondary: UserRef,
    /// The user whose name, attributes and primary identities stay if both have one.
    #[arg(long, value_enum, default_value = "primary")]
    conflicts: Conflicts,
    /// Show the result without applying it.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
pub struct Unmerge {
    /// The user that has the other's identities: an id, or an identifier of the user.
    #[arg(value_parser = user_ref::parse)]
    primary: UserRef,
    /// The merged user to restore: its id, or an identifier that it had before the merge.
    #[arg(value_parser = user_ref::parse)]
    secondary: UserRef,
    /// Show the restored user, and what could not be restored, without restoring it.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    change: Change,
}

pub async fn merge(command: Merge) -> Result<(), Failure> {
    let session = Session::open(&command.change.settings).await?;
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
        request_id: command.change.request_id.unwrap_or_default(),
    };
    let outcome = session.registry().merge_users(request).await;
    let answer = session.answer(outcome)?;

    match &answer.preview {
        Some(_) if session.json() => output::print_message(&answer),
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
    preview.result.as_ref().map_or(Ok(()), user_table::print)
}

pub async fn unmerge(command: Unmerge) -> Result<(), Failure> {
    let dry_run = command.dry_run;
    let session = Session::open(&command.change.settings).await?;
    let primary_user_id = command.primary.id(&session).await?;
    let secondary_user_id = merged_id(&session, &primary_user_id, &command.secondary).await?;
    let request = UnmergeUsersRequest {
        tenant: session.tenant(),
        primary_user_id,
        secondary_user_id,
        etag: command.change.etag,
        request_id: command.change.request_id.unwrap_or_default(),
        validate_only: dry_run,
    };
    let outcome = session.registry().unmerge_users(request).await;
    let answer = session.answer(outcome)?;
    if session.json() {
        return output::print_message(&answer);
    }

    if dry_run {
        output::print("The secondary would be:\n")?;
    }
    print_unmerged(&answer)
}

/// The id of a user that was merged into the primary, who has its identifiers since.
async fn merged_id(session: &Session, primary: &str, user: &UserRef) -> Result<String, Failure> {
    let id = user.id(session).await?;
    let UserRef::Identifier(typed) = user else { return Ok(id) };
    if id != primary {
        return Ok(id);
    }
    former_user::merged_owner(session, primary, &typed.message).await.ok_or_else(|| {
        let text = printable(&typed.text);
        Failure::Other(format!(
            "no merge into {primary} that is in its history brought {text} along\n  what to do: \
             see `polynym user history {primary} --type user_merged`, and name the merged user by \
             its id"
        ))
    })
}

fn print_unmerged(answer: &UnmergeUsersResponse) -> Result<(), Failure> {
    if let Some(user) = &answer.user {
        user_table::print(user)?;
    }
    for NotRestored { field, identifier } in &answer.not_restored {
        let identifier = identifier::text(identifier.as_ref());
        let text = format!("not restored, having changed since: {} {identifier}", printable(field));
        output::print(&format!("{}\n", text.trim_end()))?;
    }

    Ok(())
}
