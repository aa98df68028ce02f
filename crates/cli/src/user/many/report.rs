//! The result of a change of many users.

use super::action::Action;
use super::apply::Outcome;
use super::targets::Targets;
use crate::client::Session;
use crate::failure::Failure;
use crate::output::{self, printable};
use polynym_presentation::state;

/// The number of users that a dry run shows.
const SHOWN: usize = 10;

/// Prints results.
pub struct Report<'a> {
    session: &'a Session,
    action: &'a Action,
}

impl<'a> Report<'a> {
    pub const fn new(session: &'a Session, action: &'a Action) -> Self {
        Self { session, action }
    }

    /// Shows what would change.
    pub fn dry_run(&self, targets: &Targets) -> Result<(), Failure> {
        let Targets { eligible, unchanged, skipped, refused } = targets;
        let (count, refused_count) = (eligible.len(), refused.len());
        let first = &eligible[..count.min(SHOWN)];
        if self.session.json() {
            let ids: Vec<_> = first.iter().map(|target| &target.user_id).collect();
            return output::print_json(&serde_json::json!({
                "dry_run": true, "changed": count, "unchanged": unchanged, "skipped": skipped,
                "failed": refused_count, "users": ids,
            }));
        }
        if !first.is_empty() {
            let mut table = output::table(["user", "name", "state"]);
            for target in first {
                table.add_row([
                    target.user_id.clone(),
                    printable(&target.display_name).into_owned(),
                    state::word(target.state).to_owned(),
                ]);
            }
            output::print_table(&table)?;
        }
        let more = match count - first.len() {
            0 => String::new(),
            more => format!(" (the first {} are shown, {more} more follow)", first.len()),
        };
        let done = self.action.done();
        let mut text =
            format!("{count} users would be {done}{more}{}", self.others(*unchanged, *skipped));
        for (user, reason) in refused.iter().take(SHOWN) {
            text += &format!("\n  not {}: {}", printable(user), printable(reason));
        }
        if refused_count > SHOWN {
            text += &format!("\n  and {} others", refused_count - SHOWN);
        }
        output::print(&format!("{text}\n"))
    }

    /// Shows what has changed. Fails if users are left.
    pub fn finish(&self, outcome: Outcome) -> Result<(), Failure> {
        let Outcome { changed, unchanged, skipped, failed, remaining, reasons, left, end } =
            outcome;
        let operation = self.session.operation_id();
        let path = left.map(|path| path.display().to_string());
        if self.session.json() {
            output::print_json(&serde_json::json!({
                "operation_id": operation, "changed": changed, "unchanged": unchanged,
                "skipped": skipped, "failed": failed, "remaining": remaining, "reasons": reasons,
                "left": path,
            }))?;
        } else {
            let done = self.action.done();
            let mut text = format!("{changed} users {done}{}", self.others(unchanged, skipped));
            if failed > 0 {
                text += &format!(", {failed} failed");
            }
            if remaining > 0 {
                text += &format!(", {remaining} not reached");
            }
            for (reason, count) in &reasons {
                text += &format!("\n  {count} {}", printable(reason));
            }
            output::print(&format!("{text}\n"))?;
        }
        if let Some(path) = &path {
            eprintln!(
                "the users that are left are in {path}: continue with --file {path} \
                 --operation-id {operation}"
            );
        }
        match end {
            Some(failure) => Err(failure),
            None if path.is_some() => Err(Failure::AlreadyReported),
            None => Ok(()),
        }
    }

    /// The users that did not need the change, and those that it does not apply to.
    fn others(&self, unchanged: usize, skipped: usize) -> String {
        let mut text = String::new();
        if unchanged > 0 {
            text += &format!(", {unchanged} were {} already", self.action.done());
        }
        if skipped > 0 {
            text += &format!(", {skipped} in other states were left out");
        }
        text
    }
}
