//! Reading a file: its form, its columns, its first rows, and what is wrong with the others.

use std::collections::HashMap;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use polynym_import::{ExportFormat, Lines, Notes, ReadOptions, Unreadable};
use polynym_lines::Parsed;
use polynym_proto::v1::User;
use polynym_table::{Definitions, Inspection, MapFile, Meanings, SpecialValues};

use super::job::Job;
use super::kept_mappings::KeptMappings;
use super::settings::Settings;
use super::upload::{Reading, SampleRow, Snapshot, SpecialValue, Upload};
use super::{MAX_COLUMNS, advice, shown};
use crate::views::UserView;
use crate::views::identity::canonical_value;

/// The rows that are shown.
const SHOWN_ROWS: usize = 10;
/// The identities and attributes of a row that are shown.
const SHOWN_VALUES: usize = 12;
/// The reasons that are told apart, and shown.
const MAX_REASONS: usize = 100;
const SHOWN_REASONS: usize = 20;
/// The values without a meaning that are shown.
const SHOWN_SPECIAL: usize = 30;
/// The bytes of the names of all columns.
const MAX_NAME_BYTES: usize = 64 << 10;

/// Reads a file by these settings, and ends the work. Without columns in the settings, it has those
/// that the browser kept from a file with the same header, or else guesses them.
pub async fn inspect(
    upload: Arc<Upload>,
    job: Arc<Job>,
    settings: Settings,
    definitions: Definitions,
    kept: KeptMappings,
) {
    read(&upload, &job, settings, definitions, kept).await;
    job.end();
}

/// Reads a file by these settings, as a part of the work on it.
pub async fn read(
    upload: &Arc<Upload>,
    job: &Arc<Job>,
    settings: Settings,
    definitions: Definitions,
    kept: KeptMappings,
) {
    let (read_upload, stop, given) = (upload.clone(), job.stop.clone(), settings.clone());
    let read = tokio::task::spawn_blocking(move || {
        if read_upload.is_table {
            let open = || Ok(read_upload.file.reader(stop.clone()));
            table_by(open, given, &read_upload.snapshot(), &definitions, &kept)
        } else {
            let reader = read_upload.file.reader(stop);
            let read = match read_upload.export {
                Some(format) => export(format, reader),
                None => lines(reader),
            };
            read.map(|reading| ((given, Vec::new(), reading), false))
        }
    });
    let outcome = read.await.unwrap_or_else(|error| Err(error.to_string()));
    upload.update(|state| {
        (state.dry_run, state.import) = (None, None);
        match outcome {
            Ok(((settings, names, reading), is_kept)) => {
                (state.settings, state.names, state.is_kept) = (settings, names, is_kept);
                state.reading = Some(Ok(Arc::new(reading)));
            }
            Err(error) => {
                // The columns stay, so that the form can be corrected.
                state.settings = settings;
                state.reading = Some(Err(shown(&advice(&error))));
            }
        }
    });
}

/// How a table is read, the names of its columns, and its content.
type TableRead = (Settings, Vec<String>, Reading);

/// Reads a table. Returns whether its columns are those that the browser kept.
fn table_by<R: Read>(
    mut open: impl FnMut() -> io::Result<R>,
    given: Settings,
    state: &Snapshot,
    definitions: &Definitions,
    kept: &KeptMappings,
) -> Result<(TableRead, bool), String> {
    let is_guess = given.columns.is_empty();
    let (is_kept, read) = (state.is_kept, table(&mut open, given, &state.names, definitions)?);
    let (found, names, _) = &read;
    let Some(own) = kept.of_columns(names).filter(|_| is_guess) else {
        return Ok((read, is_kept && !is_guess));
    };
    let form = Settings::of(&own.file, names);
    let (encoding, separator) = (found.encoding.clone(), found.separator.clone());
    let again = table(&mut open, Settings { encoding, separator, ..form }, names, definitions);
    Ok(again.map_or((read, false), |again| (again, true)))
}

fn table<R: Read>(
    open: impl FnMut() -> io::Result<R>,
    settings: Settings,
    names: &[String],
    definitions: &Definitions,
) -> Result<TableRead, String> {
    let is_guess = settings.columns.is_empty();
    let file = settings.map_file(names);
    if !is_guess && file.map.is_empty() {
        return Err("every column is ignored: choose a field for at least one".to_owned());
    }
    let mut given = file.given()?;
    given.options.definitions.clone_from(definitions);
    let inspection = polynym_table::inspect(open, given)?;
    let names: Vec<_> = inspection.columns.iter().map(|column| column.name.clone()).collect();
    if names.len() > MAX_COLUMNS || names.iter().map(String::len).sum::<usize>() > MAX_NAME_BYTES {
        return Err(format!(
            "a table has at most {MAX_COLUMNS} columns here, with names of 64 KiB in all: remove \
             columns"
        ));
    }
    let columns = settings.columns.clone();
    let proposed = inspection.map_file.clone();
    let proposed = MapFile { phones: file.phones, absent: file.absent, ..proposed };
    let mut found = Settings::of(&proposed, &names);
    found.separator = settings.separator;
    let guessed = std::mem::replace(&mut found.values, settings.values);
    for (column, own) in guessed.into_iter().filter(|_| is_guess) {
        found.values.entry(column).or_insert(own);
    }
    if !is_guess {
        found.columns = columns;
    }
    let mut reading = reading(inspection, &found);
    reading.is_region_guessed = settings.region.is_empty() && !found.region.is_empty();
    Ok((found, names, reading))
}

fn reading(inspection: Inspection, settings: &Settings) -> Reading {
    let examples = inspection.columns.iter().map(|column| shown(&column.examples.join(" | ")));
    let sample = inspection.sample.iter().map(|(line, user)| match user {
        Ok(mapped) => row(*line, &mapped.user),
        Err(error) => {
            SampleRow { line: *line, error: shown(&advice(error)), ..SampleRow::default() }
        }
    });
    Reading {
        encoding: inspection.encoding.to_owned(),
        separator: inspection.separator.clone(),
        examples: examples.collect(),
        rows: inspection.rows,
        rejected: inspection.rejects.values().map(|(count, _)| count).sum(),
        sample: sample.collect(),
        reasons: sorted(inspection.rejects.into_iter()),
        tally: inspection.tally,
        notes: Notes::default(),
        is_region_guessed: false,
        repeats: inspection.repeats,
        kinds: inspection.values.iter().map(|own| (own.column.clone(), own.kind)).collect(),
        values: special(inspection.values, &settings.values),
    }
}

/// The values that are not understood, the most frequent first, before those with a meaning.
fn special(found: Vec<SpecialValues>, meanings: &Meanings) -> Vec<SpecialValue> {
    let of_column = |own: SpecialValues| {
        let (column, kind) = (own.column, own.kind);
        own.rows.into_iter().map(move |(value, rows)| {
            let column = column.clone();
            SpecialValue { column, kind, value, rows }
        })
    };
    let mut values: Vec<_> = found.into_iter().flat_map(of_column).collect();
    let has_meaning = |value: &SpecialValue| {
        meanings.get(&value.column).is_some_and(|own| own.contains_key(&value.value))
    };
    values.sort_by_key(|value| (has_meaning(value), std::cmp::Reverse(value.rows)));
    values.truncate(SHOWN_SPECIAL);
    values
}

/// Reads lines of JSON.
fn lines(reader: impl Read) -> Result<Reading, String> {
    let mut lines = Lines::new(BufReader::with_capacity(256 << 10, reader));
    let mut reading = Counting::default();
    while let Some((number, line, _)) = lines.next_line().map_err(|error| error.to_string())? {
        reading.add(match line.parse() {
            Ok((_, Parsed::Skipped)) => continue,
            Ok((_, Parsed::Request(request))) => row(number, &request.user.unwrap_or_default()),
            Err(Unreadable { message, .. }) => unreadable(number, &message),
        });
    }
    reading.finish("UTF-8")
}

/// Reads the export of another user directory.
fn export(format: ExportFormat, reader: impl Read) -> Result<Reading, String> {
    let mut users = polynym_import::open(format, reader, &ReadOptions::default())?;
    let mut reading = Counting::default();
    while let Some(entry) = users.next_user()? {
        reading.add(match entry.user {
            Ok(user) => row(entry.line, &user),
            Err(message) => unreadable(entry.line, &message),
        });
    }
    reading.reading.notes = users.notes().clone();
    reading.finish(format.words())
}

/// The content of a file that is no table, so far.
#[derive(Default)]
struct Counting {
    reading: Reading,
    reasons: HashMap<String, (u64, i64)>,
}

impl Counting {
    fn add(&mut self, row: SampleRow) {
        let (reading, reasons) = (&mut self.reading, &mut self.reasons);
        reading.rows += 1;
        if !row.error.is_empty() {
            reading.rejected += 1;
            let is_known = reasons.contains_key(&row.error) || reasons.len() < MAX_REASONS;
            let reason = if is_known { row.error.clone() } else { "other".to_owned() };
            reasons.entry(reason).or_insert((0, row.line)).0 += 1;
        }
        if reading.sample.len() < SHOWN_ROWS {
            reading.sample.push(row);
        }
    }

    /// Fails if the file has nothing.
    fn finish(mut self, encoding: &str) -> Result<Reading, String> {
        if self.reading.rows == 0 {
            return Err("the file is empty".to_owned());
        }
        encoding.clone_into(&mut self.reading.encoding);
        self.reading.reasons = sorted(self.reasons.into_iter());
        Ok(self.reading)
    }
}

fn unreadable(line: i64, message: &str) -> SampleRow {
    SampleRow { line, error: shown(&advice(message)), ..SampleRow::default() }
}

/// A row as it is shown.
fn row(line: i64, user: &User) -> SampleRow {
    let view = UserView::of(user);
    let identities = user.identities.iter().take(SHOWN_VALUES);
    let attributes = view.attributes.iter().take(SHOWN_VALUES);
    SampleRow {
        line,
        name: shown(&view.name),
        identities: identities
            .map(|own| shown(&canonical_value(own.identifier.as_ref())))
            .collect(),
        attributes: attributes
            .map(|attribute| (shown(&attribute.name), shown(&attribute.value)))
            .collect(),
        error: String::new(),
    }
}

/// The most frequent reasons.
fn sorted(reasons: impl Iterator<Item = (String, (u64, i64))>) -> Vec<(String, u64, i64)> {
    let reasons = reasons.map(|(reason, (count, line))| (shown(&advice(&reason)), count, line));
    let mut reasons: Vec<_> = reasons.collect();
    reasons.sort_by_key(|(_, count, line)| (std::cmp::Reverse(*count), *line));
    reasons.truncate(SHOWN_REASONS);
    reasons
}
