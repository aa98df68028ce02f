//! The format of a file to import: as given, by its content, or by its name.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use clap::ValueEnum;
use polynym_import::{ExportFormat, HEAD_BYTES, guess, is_table_name};

use super::arguments::{Import, ImportFormat, TableArgs};
use crate::failure::Failure;

/// Sets the format of a file that is known by its content, and says so. A file that can be read
/// only once is not looked at.
///
/// # Errors
/// Options for CSV are given for another format.
pub fn resolve(command: &mut Import) -> Result<(), Failure> {
    let is_mapped = has_table_options(&command.table);
    if command.format.is_none() && !is_mapped {
        command.format = by_content(&command.file);
        if let Some(format) = export(command) {
            let (file, name) = (command.file.display(), format.name());
            eprintln!("{file} has {}: it is read with --format {name}", format.words());
        }
    }
    match export(command) {
        Some(format) if is_mapped => Err(Failure::Usage(format!(
            "--format {}: of the options for CSV files only --region and --encoding count; leave \
             out the others, or add --format csv to say what the columns are",
            format.name()
        ))),
        _ => Ok(()),
    }
}

/// The format of another user directory.
pub fn export(command: &Import) -> Option<ExportFormat> {
    let given = command.format?.to_possible_value()?;
    let found = ExportFormat::ALL.into_iter().find(|(_, name, _)| *name == given.get_name());
    found.map(|(format, ..)| format)
}

/// Whether the file is a table.
pub fn is_table(command: &Import) -> bool {
    let is_named = || is_table_name(&command.file);
    command.format.map_or_else(is_named, |format| format == ImportFormat::Csv)
}

/// The format of another user directory that a regular file has.
fn by_content(path: &Path) -> Option<ImportFormat> {
    if !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let mut head = Vec::new();
    let file = File::open(path).ok()?;
    file.take(HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    ImportFormat::from_str(guess(&head)?.name(), false).ok()
}

/// Whether there are options that say how to read a table, other than those that count for every
/// format.
fn has_table_options(args: &TableArgs) -> bool {
    let TableArgs {
        maps,
        map_file,
        inspect,
        encoding: _,
        separator,
        locale,
        region: _,
        phones,
        absent,
    } = args;
    let texts = [separator, locale, absent];
    *inspect
        || !maps.is_empty()
        || map_file.is_some()
        || phones.is_some()
        || texts.iter().any(|text| text.is_some())
}
