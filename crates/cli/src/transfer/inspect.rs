//! `polynym import --inspect`.

use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;

use polynym_table::{Inspection, inspect};

use super::arguments::Import;
use super::report::tally_text;
use super::{format, table};
use crate::failure::Failure;
use crate::files;
use crate::output::{self, printable};

/// The reasons of rejects that are shown.
const SHOWN_REASONS: usize = 20;

/// Prints the map file that a table needs, and on standard error what is in the table.
pub fn run(command: &Import) -> Result<(), Failure> {
    if !format::is_table(command) {
        let message = "--inspect is for CSV files: add --format csv, or import without it";
        return Err(Failure::Usage(message.to_owned()));
    }
    let given = table::given(&command.table)?;
    let path = &command.file;
    let mut file = source(path)?;
    let open = || file.rewind().and_then(|()| file.try_clone());
    let inspection = inspect(open, given).map_err(|error| files::failure(path, error))?;
    eprintln!("{}", text(&inspection)?);
    output::print(&inspection.map_file.text().map_err(Failure::Other)?)
}

/// The file, or a copy of what can be read only once.
fn source(path: &Path) -> Result<File, Failure> {
    let failure = |error: io::Error| files::failure(path, error);
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return File::open(path).map_err(failure);
    }
    let mut copy = tempfile::tempfile().map_err(failure)?;
    io::copy(&mut files::open(path).map_err(failure)?, &mut copy).map_err(failure)?;
    Ok(copy)
}

fn text(inspection: &Inspection) -> Result<String, Failure> {
    let Inspection { encoding, separator, rows, .. } = inspection;
    let mut text = format!("{encoding}, separated by {separator}, {rows} rows\n");
    let mut columns = output::table(["column", "field", "examples"]);
    for column in &inspection.columns {
        let field = if column.field.is_empty() { "-" } else { &column.field };
        let examples = column.examples.join(" | ");
        columns.add_row([&*printable(&column.name), field, &printable(&examples)]);
    }
    text += &format!("\n{columns}\n\nThe first rows:\n");
    for (line, user) in &inspection.sample {
        let shown = match user {
            Ok(mapped) => {
                let user = polynym_lines::UserLine { user: &mapped.user, internals: None };
                serde_json::to_string(&user).map_err(|error| Failure::Other(error.to_string()))?
            }
            Err(error) => format!("rejected: {error}"),
        };
        text += &format!("{line:>6}  {}\n", printable(&shown));
    }
    text += &rejects_text(inspection);
    text += &tally_text(&inspection.tally);
    Ok(text)
}

fn rejects_text(inspection: &Inspection) -> String {
    let rejected: u64 = inspection.rejects.values().map(|(count, _)| count).sum();
    let mut text = format!("\n{rejected} rows would be rejected");
    let mut reasons: Vec<_> = inspection.rejects.iter().collect();
    reasons.sort_by_key(|(_, (count, line))| (std::cmp::Reverse(*count), *line));
    for (reason, (count, line)) in reasons.iter().take(SHOWN_REASONS) {
        text += &format!("\n  {count} (line {line}) {}", printable(reason));
    }
    if reasons.len() > SHOWN_REASONS {
        text += &format!("\n  and {} other reasons", reasons.len() - SHOWN_REASONS);
    }
    if inspection.repeats.0 > 0 {
        let (count, line) = inspection.repeats;
        text += &format!(
            "\n{count} rows (first in line {line}) have an identity of an earlier row: --dry-run \
             says what becomes of them"
        );
    }
    text
}
