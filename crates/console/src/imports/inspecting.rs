//! Reading a file: its form, its columns, its first rows, and what is wrong with the others.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use polynym_import::{Lines, Unreadable};
use polynym_lines::Parsed;
use polynym_proto::v1::User;
use polynym_table::{Inspection, MapFile, ValueType};

use super::job::Job;
use super::settings::Settings;
use super::upload::{Reading, SampleRow, Upload};
use super::{MAX_COLUMNS, advice, shown};
use crate::views::UserView;

/// The rows that are shown.
const SHOWN_ROWS: usize = 10;
/// The identities and attributes of a row that are shown.
const SHOWN_VALUES: usize = 12;
/// The reasons that are told apart, and shown.
const MAX_REASONS: usize = 100;
const SHOWN_REASONS: usize = 20;
/// The bytes of the names of all columns.
const MAX_NAME_BYTES: usize = 64 << 10;

/// Reads a file by these settings, or guesses them if they have no columns, and ends the work.
pub async fn inspect(
    upload: Arc<Upload>,
    job: Arc<Job>,
    settings: Settings,
    types: BTreeMap<String, ValueType>,
) {
    let (read_upload, stop, given) = (upload.clone(), job.stop.clone(), settings.clone());
    let read = tokio::task::spawn_blocking(move || {
        if read_upload.is_table {
            let open = || Ok(read_upload.file.reader(stop.clone()));
            table(open, given, &read_upload.snapshot().names, types)
        } else {
            lines(read_upload.file.reader(stop)).map(|reading| (given, Vec::new(), reading))
        }
    });
    let outcome = read.await.unwrap_or_else(|error| Err(error.to_string()));
    upload.update(|state| {
        (state.dry_run, state.import) = (None, None);
        match outcome {
            Ok((settings, names, reading)) => {
                (state.settings, state.names) = (settings, names);
                state.reading = Some(Ok(Arc::new(reading)));
            }
            Err(error) => {
                // The columns stay, so that the form can be corrected.
                state.settings = settings;
                state.reading = Some(Err(shown(&advice(&error))));
            }
        }
    });
    job.end();
}

fn table<R: Read>(
    open: impl FnMut() -> io::Result<R>,
    settings: Settings,
    names: &[String],
    types: BTreeMap<String, ValueType>,
) -> Result<(Settings, Vec<String>, Reading), String> {
    let is_guess = settings.columns.is_empty();
    let file = settings.map_file(names);
    if !is_guess && file.map.is_empty() {
        return Err("every column is ignored: choose a field for at least one".to_owned());
    }
    let mut given = file.given()?;
    given.options.types = types;
    let inspection = polynym_table::inspect(open, given)?;
    let names: Vec<_> = inspection.columns.iter().map(|column| column.name.clone()).collect();
    if names.len() > MAX_COLUMNS || names.iter().map(String::len).sum::<usize>() > MAX_NAME_BYTES {
        return Err(format!(
            "a table has at most {MAX_COLUMNS} columns here, with names of 64 KiB in all: remove \
             columns, or use `polynym import`"
        ));
    }
    let columns = settings.columns.clone();
    let proposed = inspection.map_file.clone();
    let proposed = MapFile { phones: file.phones, absent: file.absent, ..proposed };
    let mut found = Settings::of(&proposed, &names);
    found.separator = settings.separator;
    if !is_guess {
        found.columns = columns;
    }
    Ok((found, names, reading(inspection)))
}

fn reading(inspection: Inspection) -> Reading {
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
    }
}

/// Reads lines of JSON.
fn lines(reader: impl Read) -> Result<Reading, String> {
    let mut lines = Lines::new(BufReader::with_capacity(256 << 10, reader));
    let mut reading = Reading { encoding: "UTF-8".to_owned(), ..Reading::default() };
    let mut reasons: HashMap<String, (u64, i64)> = HashMap::new();
    while let Some((number, line, _)) = lines.next_line().map_err(|error| error.to_string())? {
        let row = match line.parse() {
            Ok((_, Parsed::Skipped)) => continue,
            Ok((_, Parsed::Request(request))) => row(number, &request.user.unwrap_or_default()),
            Err(Unreadable { message, .. }) => {
                SampleRow { line: number, error: shown(&message), ..SampleRow::default() }
            }
        };
        reading.rows += 1;
        if !row.error.is_empty() {
            reading.rejected += 1;
            let is_known = reasons.contains_key(&row.error) || reasons.len() < MAX_REASONS;
            let reason = if is_known { row.error.clone() } else { "other".to_owned() };
            reasons.entry(reason).or_insert((0, number)).0 += 1;
        }
        if reading.sample.len() < SHOWN_ROWS {
            reading.sample.push(row);
        }
    }
    if reading.rows == 0 {
        return Err("the file is empty".to_owned());
    }
    reading.reasons = sorted(reasons.into_iter());
    Ok(reading)
}

/// A row as it is shown.
fn row(line: i64, user: &User) -> SampleRow {
    let view = UserView::of(user);
    let identities = view.identities.iter().take(SHOWN_VALUES);
    let attributes = view.attributes.iter().take(SHOWN_VALUES);
    SampleRow {
        line,
        name: shown(&view.name),
        identities: identities.map(|identity| shown(&identity.value)).collect(),
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
