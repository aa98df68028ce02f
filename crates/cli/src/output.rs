//! Prints text, tables and JSON to standard output, whose reader may close it at any time.

pub mod confirm;

use std::borrow::Cow;
use std::io::Write;

pub use comfy_table::Table;
use comfy_table::{ColumnConstraint, ContentArrangement, Row, Width, presets};
use locality_uuid::LocalityId;
use prost::Name;

use super::failure::Failure;
use polynym_lines::{escaped, is_terminal_control, json};
use polynym_proto::google::rpc;

/// The width of an id with the padding of its cell.
const ID_WIDTH: u16 = 38;

/// Prints text.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Prints a JSON value in one line.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(write_failure)?;
    print(&(escaped(&text) + "\n"))
}

/// Prints a message as JSON in one line.
pub fn print_message(message: &impl Name) -> Result<(), Failure> {
    print_json(&json::from_message(message).map_err(write_failure)?)
}

/// Prints a message, including fields with default values.
pub fn print_message_with_defaults(message: &impl Name) -> Result<(), Failure> {
    print_json(&json::with_defaults(message).map_err(write_failure)?)
}

/// Prints an error as a JSON object, with the item it belongs to, if there are several.
pub fn print_error(asked: Option<&str>, error: &rpc::Status) -> Result<(), Failure> {
    let mut object = serde_json::Map::new();
    object.extend(asked.map(|asked| ("asked".to_owned(), asked.into())));
    let json = json::from_message(error).map_err(write_failure)?;
    object.insert("error".to_owned(), json);
    print_json(&object)
}

/// The failure of writing JSON.
pub fn write_failure(error: impl ToString) -> Failure {
    Failure::Other(format!("cannot write JSON: {}", error.to_string()))
}

/// A table with this header, which fits the width of a terminal.
pub fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header);
    table
}

/// Prints a table.
pub fn print_table(table: &Table) -> Result<(), Failure> {
    print(&format!("{}\n", with_unbroken_ids(table)))
}

/// The table with each id on one line, so that it can be copied, on terminals of any width.
fn with_unbroken_ids(original: &Table) -> Table {
    let mut table = original.clone();
    let rows: Vec<_> = table.header().into_iter().chain(table.row_iter()).cloned().collect();
    for (n, column) in table.column_iter_mut().enumerate() {
        let has_id = |row: &Row| {
            row.cell_iter().nth(n).is_some_and(|cell| cell.content().lines().any(is_id))
        };
        if rows.iter().any(has_id) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(ID_WIDTH)));
        }
    }
    table
}

fn is_id(text: &str) -> bool {
    text.parse::<LocalityId>().is_ok()
}

/// Names users that are missing in an answer.
pub fn warn_unreadable(ids: &[String]) {
    for id in ids {
        eprintln!("user {} cannot be read, and is missing", printable(id));
    }
}

/// The text with terminal controls escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_terminal_control) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| {
        if is_terminal_control(c) { c.escape_default().to_string() } else { c.to_string() }
    };
    Cow::Owned(text.chars().map(escape).collect())
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn text_has_no_terminal_controls() {
        assert_eq!(printable("Иван 花子"), "Иван 花子");
        assert_eq!(printable("a\u{1b}[2J\nb\u{202e}c"), "a\\u{1b}[2J\\nb\\u{202e}c");
        assert_eq!(printable("a\u{9b}2J\u{200b}b"), "a\\u{9b}2J\\u{200b}b");
        assert_eq!(printable("👩\u{200d}🔬 می\u{200c}خواهم"), "👩\u{200d}🔬 می\u{200c}خواهم");
    }

    #[test]
    fn ids_are_unbroken_in_a_narrow_table() {
        let id = "20be0ffc-314a-bd53-7a50-013a65ca76d2";
        let mut narrow = super::table(["asked for", "user", "identities"]);
        narrow.set_width(60).add_row([
            "a long text that takes up room",
            id,
            "email:joe@example.com",
        ]);
        assert!(super::with_unbroken_ids(&narrow).to_string().contains(id));
    }
}
