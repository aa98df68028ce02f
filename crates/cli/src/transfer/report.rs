//! The progress and the result of an import.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;
use crate::output::{self, printable};
use polynym_import::{Counts, Notes};
use polynym_proto::v1::import_users_response::Progress;
use polynym_table::Tally;

const BAR: &str = "{bar:30} {percent}%  {msg}  {eta} left";
/// The columns and words for no value that are shown.
const MAX_WORDS: usize = 20;
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
    /// The number of rejects by reason.
    pub reasons: BTreeMap<String, u64>,
    /// The file of rejects.
    pub rejects: &'a Path,
    /// How a table was read.
    pub tally: Tally,
    /// The data that were left out of the export of another user directory.
    pub notes: Notes,
    /// The id of the import in the history.
    pub operation_id: &'a str,
    /// The first changes of a dry run, in words.
    pub changes: String,
    pub dry_run: bool,
    pub json: bool,
}

impl Summary<'_> {
    /// Prints the result. Fails if lines were rejected.
    pub fn print(&self) -> Result<(), Failure> {
        let Progress { created, restored, changed, .. } = self.progress;
        if self.json {
            output::print_json(&self.value())?;
        } else {
            output::print(&format!("{}\n", self.text()))?;
            if !self.dry_run && created + restored + changed > 0 {
                eprintln!("`polynym undo {}` undoes it", self.operation_id);
            }
        }
        if self.has_rejects() { Err(Failure::AlreadyReported) } else { Ok(()) }
    }

    const fn rejected(&self) -> i64 {
        self.progress.rejected + self.rejected_here
    }

    const fn has_rejects(&self) -> bool {
        self.rejected() > 0 || self.progress.skipped > 0 || self.progress.orphans > 0
    }

    fn value(&self) -> serde_json::Value {
        let Progress { created, restored, changed, existing, skipped, orphans, .. } = self.progress;
        let file = self.has_rejects().then(|| self.rejects.display().to_string());
        serde_json::json!({
            "created": created, "restored": restored, "changed": changed,
            "existing": existing, "rejected": self.rejected(),
            "skipped_identities": skipped, "orphans": orphans, "rejects": file,
            "dry_run": self.dry_run, "operation_id": self.operation_id,
            "reasons": self.reasons,
            "international_phones": self.tally.international,
            "national_phones": self.tally.national,
            "phones_without_prefix": self.tally.without_prefix,
            "absent_cells": self.tally.absent.values().sum::<u64>(),
            "absent_words": absent_words(&self.tally),
            "refused_secrets": counts(&self.notes.secrets),
            "left_out": counts(&self.notes.left_out),
            "kept_as_attributes": counts(&self.notes.kept),
        })
    }

    fn text(&self) -> String {
        let Progress { created, restored, changed, existing, skipped, orphans, .. } = self.progress;
        let verb = if self.dry_run { "would be " } else { "" };
        let mut text = format!("{}{created} {verb}imported", self.changes);
        if restored > 0 {
            text += &format!(", {restored} {verb}restored");
        }
        if changed > 0 {
            text += &format!(", {changed} {verb}changed");
        }
        text += &format!(", {existing} there already");
        if self.has_rejects() {
            text += &format!(", {} lines rejected", self.rejected());
            if skipped > 0 {
                text += &format!(", {skipped} identities passed over");
            }
            if orphans > 0 {
                text += &format!(", {orphans} merged users without their primary");
            }
            text += &format!(": see {}", self.rejects.display());
        }
        for (reason, count) in &self.reasons {
            text += &format!("\n  {count} {reason}");
        }
        text + &tally_text(&self.tally) + &notes_text(&self.notes)
    }
}

/// What was read in other than the plain way, in lines that each begin with a line break.
pub fn tally_text(tally: &Tally) -> String {
    let mut text = String::new();
    for (region, count) in &tally.national {
        let as_region = if region.is_empty() { "without a region" } else { region };
        text += &format!("\n{count} phone numbers in national form were read as of {as_region}");
    }
    if tally.without_prefix > 0 {
        let count = tally.without_prefix;
        text += &format!(
            "\n{count} of them lack the national prefix, and may be of another country: \
             --map region=COLUMN has each row's, --phones strict rejects them"
        );
    }
    for ((column, word), count) in tally.absent.iter().take(MAX_WORDS) {
        let (column, word) = (printable(column), printable(word));
        text += &format!("\n{count} cells of {column} had {word}, which is no value");
    }
    match tally.absent.len() {
        0 => {}
        1..=MAX_WORDS => text += ": --absent '' keeps such words",
        all => text += &format!("\nand {} more such columns and words", all - MAX_WORDS),
    }
    text
}

/// The data that were left out, in lines that each begin with a line break.
fn notes_text(notes: &Notes) -> String {
    let mut text = String::new();
    for (words, counts) in [
        ("refused, since Polynym signs nobody in", &notes.secrets),
        ("not imported", &notes.left_out),
        ("kept as attributes, since they are no valid identifiers", &notes.kept),
    ] {
        let names = counts.iter().map(|(name, count)| format!("{count} {}", printable(name)));
        let names: Vec<_> = names.collect();
        if !names.is_empty() {
            text += &format!("\n{words}: {}", names.join(", "));
        }
    }
    text
}

/// Numbers by name, as an object.
fn counts(counts: &Counts) -> serde_json::Value {
    counts.iter().map(|(name, count)| (name.to_owned(), serde_json::Value::from(count))).collect()
}

/// The words for no value in each column.
fn absent_words(tally: &Tally) -> Vec<serde_json::Value> {
    let words = tally.absent.iter();
    words
        .map(|((column, word), cells)| {
            serde_json::json!({ "column": column, "word": word, "cells": cells })
        })
        .collect()
}
