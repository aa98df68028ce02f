//! `polynym user duplicates`.

use clap::Args;
use indicatif::ProgressBar;
use tonic::Request;

use crate::client::Session;
use crate::config::{Client, Flags};
use crate::failure::Failure;
use crate::output::{self, printable};
use polynym_proto::v1::find_duplicates_response::{Evidence, Pair, Progress};
use polynym_proto::v1::{DuplicateReason, FindDuplicatesRequest};

pub const DUPLICATES: &str = "\
Examples:
  polynym user duplicates --min-score 70
  polynym user duplicates --tenant acme --limit 100000 --json

Each pair has a score from 1 to 99, the reasons with what both share, and the ids and names of the
users; the highest come first.
`polynym user merge --dry-run ID ID` shows what merging two users would do.";

#[derive(Args)]
pub struct Duplicates {
    /// The minimum score of a pair, up to 100.
    #[arg(long, value_name = "SCORE", default_value_t = 50,
        value_parser = clap::value_parser!(i32).range(1..=100))]
    min_score: i32,
    /// The maximum number of pairs, up to 100,000: the highest scores.
    #[arg(long, value_name = "N", default_value_t = 1_000,
        value_parser = clap::value_parser!(i32).range(1..))]
    limit: i32,
    #[command(flatten)]
    settings: Flags<Client>,
}

pub async fn run(command: Duplicates) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let (tenant, min_score, max_pairs) = (session.tenant(), command.min_score, command.limit);
    // Without a deadline: the time depends on the number of users.
    let request = Request::new(FindDuplicatesRequest { tenant, min_score, max_pairs });
    let mut answers = session.answer(session.admin().find_duplicates(request).await)?;
    let (mut progress, mut pairs) = (Progress::default(), 0);
    // Shown only if standard error is a terminal.
    let spinner = ProgressBar::new_spinner();
    while let Some(answer) = answers.message().await.map_err(|error| session.failure(error))? {
        if let Some(now) = answer.progress {
            spinner.set_message(format!("{} users, {} comparisons", now.users, now.compared));
            spinner.tick();
            progress = now;
        }
        if let Some(pair) = &answer.pair {
            spinner.finish_and_clear();
            print(&session, pair)?;
            pairs += 1;
        }
    }

    spinner.finish_and_clear();
    summarize(&progress, pairs);
    Ok(())
}

fn print(session: &Session, pair: &Pair) -> Result<(), Failure> {
    if session.json() {
        return output::print_message(pair);
    }
    let reasons: Vec<_> = pair.evidence.iter().map(reason_with_values).collect();
    let line = |id: &str, name: &str| match name {
        "" => format!("   {}\n", printable(id)),
        name => format!("   {} {}\n", printable(id), printable(name)),
    };
    let a = line(&pair.user_id_a, &pair.display_name_a);
    let b = line(&pair.user_id_b, &pair.display_name_b);
    output::print(&format!("{:>2} {}\n{a}{b}", pair.score, reasons.join(", ")))
}

/// The reason with the values that match.
fn reason_with_values(evidence: &Evidence) -> String {
    let reason = reason(evidence);
    let (a, b) = (printable(&evidence.value_a), printable(&evidence.value_b));
    match a == b {
        true if a.is_empty() => reason,
        true => format!("{reason} ({a})"),
        false => format!("{reason} ({a}, {b})"),
    }
}

/// The reason in words.
fn reason(evidence: &Evidence) -> String {
    let kind = printable(&evidence.kind);
    match evidence.reason() {
        DuplicateReason::Unspecified => "a reason unknown to this program".to_owned(),
        DuplicateReason::SameMailbox => "same mailbox".to_owned(),
        DuplicateReason::SimilarEmail => "similar email".to_owned(),
        DuplicateReason::IdentityInAttribute => format!("{kind} in an attribute of the other"),
        DuplicateReason::SameAttribute => format!("same {kind} in attributes"),
        DuplicateReason::HeldIdentity => format!("{kind} held for the other"),
        DuplicateReason::LookalikeHandle => "look-alike handles".to_owned(),
        DuplicateReason::NearHandle => "same name and near handles".to_owned(),
        DuplicateReason::SameName => "same name".to_owned(),
        DuplicateReason::SameNameAndAttribute => "same name and attribute".to_owned(),
    }
}

fn summarize(progress: &Progress, pairs: usize) {
    let &Progress { users, capped, unreadable, .. } = progress;
    match pairs {
        0 => eprintln!("no duplicates among {users} users"),
        1 => eprintln!("1 pair among {users} users"),
        _ => eprintln!("{pairs} pairs among {users} users"),
    }
    if unreadable > 0 {
        eprintln!("{unreadable} users cannot be read, and are missing");
    }
    if capped > 0 {
        eprintln!(
            "{capped} values are shared by more than 50 users: only 50 of each were compared"
        );
    }
}
