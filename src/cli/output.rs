//! Printing: text, tables and JSON, to a reader who may leave at any time.

use std::borrow::Cow;
use std::io::Write;
use std::sync::OnceLock;

pub use comfy_table::Table;
use comfy_table::{ContentArrangement, presets};
use prost_reflect::{DescriptorPool, DynamicMessage};

use super::Failure;
use crate::proto;

/// Prints text as it is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Prints one JSON value on a line.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::Other(format!("cannot write JSON: {error}")))?;
    print(&(text + "\n"))
}

/// Prints `message`, which is a `polynym.v1.NAME`, on a line, in the JSON mapping of protocol buffers.
pub fn print_message(name: &str, message: &impl prost::Message) -> Result<(), Failure> {
    print_json(&value(&format!("polynym.v1.{name}"), message)?)
}

/// Prints an error as an object of its own, with what was asked for where that is one of many.
pub fn print_error(asked: Option<&str>, error: &tonic_types::Status) -> Result<(), Failure> {
    let mut object = serde_json::Map::new();
    object.extend(asked.map(|asked| ("asked".to_owned(), asked.into())));
    object.insert("error".to_owned(), value("google.rpc.Status", error)?);
    print_json(&object)
}

/// By way of a value, whose keys are in order: a message's maps have none, and the same user must print the same.
fn value(name: &str, message: &impl prost::Message) -> Result<serde_json::Value, Failure> {
    let fault = |error: String| Failure::Other(format!("cannot write JSON: {error}"));
    let descriptor = descriptors().map_err(fault)?.get_message_by_name(name);
    let descriptor = descriptor.ok_or_else(|| fault(format!("{name} is not described")))?;
    let dynamic = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice());
    let dynamic = dynamic.map_err(|error| fault(error.to_string()))?;
    serde_json::to_value(dynamic).map_err(|error| fault(error.to_string()))
}

fn descriptors() -> Result<&'static DescriptorPool, String> {
    static POOL: OnceLock<Result<DescriptorPool, String>> = OnceLock::new();
    let pool = POOL.get_or_init(|| DescriptorPool::decode(proto::DESCRIPTORS).map_err(|error| error.to_string()));
    pool.as_ref().map_err(Clone::clone)
}

/// A table with this header. On a terminal it fits the width.
pub fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header);
    table
}

/// Prints a table.
pub fn print_table(table: &Table) -> Result<(), Failure> {
    print(&format!("{table}\n"))
}

/// The text with control characters written out, so that what somebody typed cannot drive the terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    let drives = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(drives) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if drives(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn what_was_typed_cannot_drive_the_terminal() {
        assert_eq!(printable("Иван 花子"), "Иван 花子");
        assert_eq!(printable("a\u{1b}[2J\nb\u{202e}c"), "a\\u{1b}[2J\\nb\\u{202e}c");
    }
}
