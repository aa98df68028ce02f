//! The progress and the result of an import.

use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::rejects::Rejects;
use crate::failure::Failure;
use crate::output;
use polynym_proto::v1::import_users_response::Progress;

const BAR: &str = "{bar:30} {percent}%  {msg}  {eta} left";
const SPINNER: &str = "{spinner}  {msg}";

/// A progress bar; hidden unless standard error is a terminal.
pub struct Bar {
    bar: ProgressBar,
    started: Instant,
}

impl Bar {
    /// The bar of a file. Without a known size, it shows only the rate.
    pub fn new(file: &Path) -> Self {
        let metadata = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file);
        let (bar, template) = match metadata {
            Some(metadata) => (ProgressBar::new(metadata.len()), BAR),
            None => (ProgressBar::new_spinner(), SPINNER),
        };
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self { bar: bar.with_style(style), started: Instant::now() }
    }

    /// Shows the progress.
    pub fn set(&self, progress: &Progress, bytes: u64) {
        let seconds = self.started.elapsed().max(Duration::from_millis(1)).as_secs_f64();
        let rate = progress.lines as f64 / seconds;
        self.bar.set_position(bytes);
        self.bar.set_message(format!("{} lines, {rate:.0}/s", progress.lines));
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The result of an import.
pub struct Summary<'a> {
    pub progress: Progress,
    /// Lines that were rejected before they were sent.
    pub rejected_here: i64,
    pub rejects: &'a Rejects,
    pub dry_run: bool,
    pub json: bool,
}

impl Summary<'_> {
    /// Prints the result. Fails if lines were rejected.
    pub fn print(&self) -> Result<(), Failure> {
        let Progress { created, existing, skipped, orphans, .. } = self.progress;
        let rejected = self.progress.rejected + self.rejected_here;
        let has_rejects = rejected > 0 || skipped > 0 || orphans > 0;
        let path = self.rejects.path().display().to_string();
        if self.json {
            let file = has_rejects.then_some(&path);
            output::print_json(&serde_json::json!({
                "created": created, "existing": existing, "rejected": rejected,
                "skipped_identities": skipped, "orphans": orphans, "rejects": file,
                "dry_run": self.dry_run,
            }))?;
        } else {
            let verb = if self.dry_run { "would be imported" } else { "imported" };
            let mut text = format!("{created} {verb}, {existing} there already");
            if has_rejects {
                text += &format!(", {rejected} lines rejected");
                if skipped > 0 {
                    text += &format!(", {skipped} identities passed over");
                }
                if orphans > 0 {
                    text += &format!(", {orphans} merged users without their primary");
                }
                text += &format!(": see {path}");
            }
            output::print(&format!("{text}\n"))?;
        }
        if has_rejects { Err(Failure::AlreadyReported) } else { Ok(()) }
    }
}
