//! Events in output.

use crate::output::printable;
use polynym_presentation::attribute;
use polynym_presentation::change::{Forms, HOLD, Line};
use polynym_proto::v1::ChangeSet;

const FORMS: Forms =
    Forms { value: |value| attribute::text(value, attribute::PLAIN), time: ToString::to_string };

/// The reason of an event and the id of its operation, as far as they are given, one per line.
pub fn purpose_lines(reason: &str, operation_id: &str) -> Vec<String> {
    let parts = [("reason", reason), ("operation", operation_id)];
    let given = parts.into_iter().filter(|(_, text)| !text.is_empty());
    given.map(|(name, text)| format!("{name}: {}", printable(text))).collect()
}

/// The changes, one per line: `+` for an addition, `-` for a removal.
pub fn lines(changes: &ChangeSet) -> Vec<String> {
    let other = Some(&changes.other_user_id).filter(|id| !id.is_empty());
    other
        .map(|id| format!("with user {}", printable(id)))
        .into_iter()
        .chain(changes.redacted.then(|| "values of a purged user were removed".to_owned()))
        .chain(FORMS.lines(changes).iter().map(line))
        .collect()
}

fn line(Line { path, before, after }: &Line) -> String {
    let text = match (before, after) {
        (None, Some(after)) => format!("+ {path} {after}"),
        (Some(before), None) => format!("- {path} {before}"),
        (Some(before), Some(after)) => format!("  {path} {before} -> {after}"),
        (None, None) => String::new(),
    };
    printable(&text).into_owned()
}

/// The changes of a user by an import, as fields with their values before and after.
pub fn cells(changes: &ChangeSet) -> impl Iterator<Item = (String, String, String)> {
    let lines = FORMS.lines(changes).into_iter().filter(|line| line.path != HOLD);
    let text = Option::unwrap_or_default;
    lines.map(move |line| (line.path, text(line.before), text(line.after)))
}
