//! Printing: text, tables and JSON, to a reader who may leave at any time.

use std::borrow::Cow;
use std::io::Write;
use std::sync::OnceLock;

pub use comfy_table::Table;
use comfy_table::{ColumnConstraint, ContentArrangement, Row, Width, presets};
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};

use super::failure::Failure;
use crate::proto;
use locality_uuid::LocalityId;

/// An id with the space on its sides.
const ID_WIDTH: u16 = 38;

/// Prints text as it is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Prints one JSON value on a line.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value)
        .map_err(|error| Failure::Other(format!("cannot write JSON: {error}")))?;
    print(&(escaped(&text) + "\n"))
}

/// Prints `message`, which is a `polynym.v1.NAME`, on a line, in the JSON mapping of protocol
/// buffers.
pub fn print_message(name: &str, message: &impl prost::Message) -> Result<(), Failure> {
    print_json(&value(&format!("polynym.v1.{name}"), message)?)
}

/// The same, with fields that have their default values.
pub fn print_whole_message(name: &str, message: &impl prost::Message) -> Result<(), Failure> {
    let options = SerializeOptions::new().skip_default_fields(false);
    print_json(&value_with(&format!("polynym.v1.{name}"), message, &options)?)
}

/// Prints an error as an object of its own, with what was asked for where that is one of many.
pub fn print_error(asked: Option<&str>, error: &proto::google::rpc::Status) -> Result<(), Failure> {
    let mut object = serde_json::Map::new();
    object.extend(asked.map(|asked| ("asked".to_owned(), asked.into())));
    object.insert("error".to_owned(), value("google.rpc.Status", error)?);
    print_json(&object)
}

fn value(name: &str, message: &impl prost::Message) -> Result<serde_json::Value, Failure> {
    value_with(name, message, &SerializeOptions::new())
}

/// By way of a value, whose keys are in order: a message's maps have none, and the same user must
/// print the same.
fn value_with(
    name: &str,
    message: &impl prost::Message,
    options: &SerializeOptions,
) -> Result<serde_json::Value, Failure> {
    let fault = |error: String| Failure::Other(format!("cannot write JSON: {error}"));
    let descriptor = descriptors().map_err(fault)?.get_message_by_name(name);
    let descriptor = descriptor.ok_or_else(|| fault(format!("{name} is not described")))?;
    let dynamic = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice());
    let dynamic = dynamic.map_err(|error| fault(error.to_string()))?;
    let value = dynamic.serialize_with_options(serde_json::value::Serializer, options);
    value.map_err(|error| fault(error.to_string()))
}

fn descriptors() -> Result<&'static DescriptorPool, String> {
    static POOL: OnceLock<Result<DescriptorPool, String>> = OnceLock::new();
    let pool = POOL.get_or_init(|| {
        DescriptorPool::decode(proto::DESCRIPTORS).map_err(|error| error.to_string())
    });
    pool.as_ref().map_err(Clone::clone)
}

/// A table with this header. On a terminal it fits the width.
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
    print(&format!("{}\n", whole_ids(table)))
}

/// The table in which, however narrow the terminal is, an id stays on one line, where it can be
/// copied.
fn whole_ids(table: &Table) -> Table {
    let mut table = table.clone();
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

/// JSON with the characters escaped that could drive a terminal: outside its strings there are
/// none.
fn escaped(json: &str) -> Cow<'_, str> {
    if !json.contains(drives) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match drives(c) {
            true => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}"))),
            false => escaped.push(c),
        }
    }

    Cow::Owned(escaped)
}

/// Whether a character moves or turns what a terminal shows, or hides in it: control characters,
/// marks of direction, and formatting that shows nothing and has no part in writing words, as
/// joiners have.
fn drives(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}'
        )
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// The text with control characters escaped, so that data cannot drive the terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(drives) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if drives(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

#[cfg(test)]
mod tests {
    use super::{escaped, printable};

    #[test]
    fn what_was_typed_cannot_drive_the_terminal() {
        assert_eq!(printable("Иван 花子"), "Иван 花子");
        assert_eq!(printable("a\u{1b}[2J\nb\u{202e}c"), "a\\u{1b}[2J\\nb\\u{202e}c");
        assert_eq!(printable("a\u{9b}2J\u{200b}b"), "a\\u{9b}2J\\u{200b}b");
        assert_eq!(printable("👩\u{200d}🔬 می\u{200c}خواهم"), "👩\u{200d}🔬 می\u{200c}خواهم");
    }

    #[test]
    fn json_with_escapes_says_the_same() {
        let text = "a\u{9b}2J\u{200b}b\u{202e}\u{e0041}é\n";
        let json = serde_json::to_string(text).unwrap();
        assert!(escaped(&json).is_ascii() || !escaped(&json).contains(super::drives));
        assert_eq!(serde_json::from_str::<String>(&escaped(&json)).unwrap(), text);
    }

    #[test]
    fn ids_stay_whole_in_a_narrow_table() {
        let id = "20be0ffc-314a-bd53-7a50-013a65ca76d2";
        let mut narrow = super::table(["asked for", "user", "identities"]);
        narrow.set_width(60).add_row([
            "a long text that takes room of its own",
            id,
            "email:joe@example.com",
        ]);
        assert!(super::whole_ids(&narrow).to_string().contains(id));
    }
}
