//! Changes as rows of a table.

use std::collections::BTreeMap;

use polynym_presentation::attribute::{PLAIN, text};
use polynym_presentation::change::{Forms, Line};
use polynym_presentation::{event, time};
use polynym_proto::v1;

/// The columns.
pub const HEADER: [&str; 11] = [
    "time",
    "caller",
    "kind",
    "user_id",
    "display_name",
    "other_user_id",
    "other_display_name",
    "changes",
    "reason",
    "operation_id",
    "request_id",
];

const FORMS: Forms =
    Forms { value: |value| text(value, PLAIN), time: |time| time::text(Some(time)) };

/// The row of a change. Users have the present names.
pub fn row(event: &v1::Event, names: &BTreeMap<String, String>) -> [String; HEADER.len()] {
    let name = |id: &str| names.get(id).cloned().unwrap_or_default();
    let set = event.change_set();
    let other = set.map(|set| set.other_user_id.clone()).unwrap_or_default();
    let lines = set.map(|set| FORMS.lines(set)).unwrap_or_default();
    [
        time::text(event.time.as_ref()),
        event.caller.clone(),
        event::word(event).to_owned(),
        event.user_id.clone(),
        name(&event.user_id),
        other.clone(),
        name(&other),
        lines.into_iter().map(change).collect::<Vec<_>>().join("; "),
        event.reason.clone(),
        event.operation_id.clone(),
        event.request_id.clone(),
    ]
}

/// A changed value, such as `display_name: Ann → Ann Berg`. What was added or removed has one side.
fn change(Line { path, before, after }: Line) -> String {
    let [before, after] = [before, after].map(Option::unwrap_or_default);
    format!("{path}: {before} → {after}")
}
