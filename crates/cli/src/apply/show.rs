//! Prints plans.

use serde_json::json;

use super::difference::Difference;
use super::plan::{Action, Step};
use super::reader::Declared;
use crate::client::Session;
use crate::failure::Failure;
use crate::output::{self, printable};

/// The outcome of printing. If the reader has closed standard output, the work goes on, and the
/// exit status is that of the work.
fn printed(outcome: Result<(), Failure>) -> Result<(), Failure> {
    match outcome {
        Err(Failure::PipeClosed) => Ok(()),
        outcome => outcome,
    }
}

/// Prints a step with its differences.
pub fn step(session: &Session, step: &Step<'_>) -> Result<(), Failure> {
    let Step { tenant, action, differences, .. } = step;
    let (word, sign, declared) = match action {
        Action::Create(declared) => ("create", '+', Some(*declared)),
        Action::Update(declared) => ("update", '~', Some(*declared)),
        Action::Delete => ("delete", '-', None),
    };
    if session.json() {
        let differences: Vec<_> = differences.iter().map(json_of).collect();
        let object = json!({ "tenant": tenant, "action": word, "differences": differences });
        return printed(output::print_json(&object));
    }
    let mut text = format!("{sign} tenant {}\n", printable(tenant));
    for difference in differences {
        let is_named = declared.is_none_or(|declared| names(declared, &difference.path));
        let note = if is_named { "" } else { " (not in the files: as in a new tenant)" };
        text += &format!("    {}{note}\n", printable(&line(difference)));
    }
    printed(output::print(&text))
}

/// Whether the files name a policy, or the list that it is in.
fn names(declared: &Declared, path: &str) -> bool {
    let list = path.split('.').next().unwrap_or_default();
    [path, list].iter().any(|name| declared.positions.contains_key(*name))
}

fn line(Difference { path, before, after }: &Difference) -> String {
    match (before, after) {
        (Some(before), Some(after)) => format!("{path}: {before} -> {after}"),
        (None, Some(after)) => format!("+ {path}: {after}"),
        (Some(before), None) => format!("- {path}: {before}"),
        (None, None) => path.clone(),
    }
}

fn json_of(Difference { path, before, after }: &Difference) -> serde_json::Value {
    json!({ "path": path, "before": before, "after": after })
}

/// The numbers of changed tenants.
#[derive(Debug)]
pub struct Summary {
    created: usize,
    updated: usize,
    deleted: usize,
    unchanged: usize,
    is_dry_run: bool,
}

impl Summary {
    /// The numbers of a plan for files with `described` tenants.
    pub fn new(steps: &[Step<'_>], described: usize, is_dry_run: bool) -> Self {
        let count = |is_counted: fn(&Action<'_>) -> bool| {
            steps.iter().filter(|step| is_counted(&step.action)).count()
        };
        let created = count(|action| matches!(action, Action::Create(_)));
        let updated = count(|action| matches!(action, Action::Update(_)));
        let deleted = count(|action| matches!(action, Action::Delete));
        let unchanged = described.saturating_sub(created + updated);
        Self { created, updated, deleted, unchanged, is_dry_run }
    }

    /// Prints the numbers.
    pub fn show(&self, session: &Session) -> Result<(), Failure> {
        let Self { created, updated, deleted, unchanged, is_dry_run } = self;
        if session.json() {
            return printed(output::print_json(&json!({
                "created": created,
                "updated": updated,
                "deleted": deleted,
                "unchanged": unchanged,
                "dryRun": is_dry_run,
            })));
        }
        let [create, update, delete] = match is_dry_run {
            true => ["to create", "to update", "to delete"],
            false => ["created", "updated", "deleted"],
        };
        printed(output::print(&format!(
            "tenants: {created} {create}, {updated} {update}, {deleted} {delete}, {unchanged} \
             unchanged\n"
        )))
    }
}
