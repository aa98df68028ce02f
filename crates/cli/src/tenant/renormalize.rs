//! `polynym renormalize`.

use clap::Args;

use crate::client::Session;
use crate::config::{ChangeClient, Flags};
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::text::identifier;
use polynym_proto::v1::renormalize_response::Problem;
use polynym_proto::v1::{RenormalizeRequest, RenormalizeResponse};

pub const EXAMPLES: &str = "\
Examples:
  polynym renormalize --dry-run
  polynym renormalize --tenant acme";

#[derive(Args)]
pub struct Renormalize {
    /// Show collisions and errors without applying the change.
    #[arg(long)]
    dry_run: bool,
    /// Continue an interrupted run, with the token that it printed.
    #[arg(long, value_name = "TOKEN", default_value = "")]
    from: String,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

pub async fn run(command: Renormalize) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let (tenant, validate_only, page_token) = (session.tenant(), command.dry_run, command.from);
    // Without a deadline: the time depends on the number of users.
    let request = RenormalizeRequest { tenant, validate_only, page_token };
    let mut answers = session.answer(session.admin().renormalize(request).await)?;
    let mut last = RenormalizeResponse::default();
    loop {
        match answers.message().await {
            Ok(Some(answer)) => {
                print(&session, &answer)?;
                last = answer;
            }
            Ok(None) => break,
            Err(error) => {
                eprintln!("interrupted: continue with --from {}", printable(&last.page_token));
                return Err(session.failure(error));
            }
        }
    }

    if !session.json() {
        let moved = if command.dry_run { "would be moved" } else { "were moved" };
        let RenormalizeResponse { users, moved: count, failed, kept, .. } = last;
        output::print(&format!("{users} users, {count} identities {moved}, {failed} cannot be\n"))?;
        if kept > 0 {
            let text = "which the new rules reject, keep their form and their rules";
            output::print(&format!("{kept} identities, {text}\n"))?;
        }
    }

    if last.failed > 0 { Err(Failure::AlreadyReported) } else { Ok(()) }
}

fn print(session: &Session, answer: &RenormalizeResponse) -> Result<(), Failure> {
    if session.json() {
        return output::print_message(answer);
    }
    for problem in &answer.problems {
        let Problem { user_id, identifier, reason, message, .. } = problem;
        let (user, reason, message) = (printable(user_id), printable(reason), printable(message));
        let about = match identifier {
            Some(identifier) => format!("{user} {}", identifier::text(Some(identifier))),
            None => user.into_owned(),
        };
        output::print(&format!("{about}: {reason}, {message}\n"))?;
        if !problem.other_user_id.is_empty() {
            let other = identifier::text(problem.other_identifier.as_ref());
            output::print(&format!("  {} {other}\n", printable(&problem.other_user_id)))?;
        }
    }
    Ok(())
}
