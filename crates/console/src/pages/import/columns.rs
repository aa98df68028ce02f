//! The form for the columns of a table.

use polynym_import::Counts;

use crate::imports::{ColumnSetting, Reading, Settings, Snapshot, shown};

/// The columns of a page, and of one that shows a result, too.
const PAGE_SIZE: usize = 25;
const SHORT_PAGE_SIZE: usize = 10;
/// The words for no value that are shown.
const MAX_WORDS: usize = 20;
/// The encodings to choose from.
pub const ENCODINGS: [&str; 9] = [
    "UTF-8",
    "windows-1252",
    "ISO-8859-15",
    "windows-1250",
    "windows-1251",
    "UTF-16LE",
    "UTF-16BE",
    "macintosh",
    "Shift_JIS",
];
/// The separators to choose from.
pub const SEPARATORS: [&str; 4] = ["comma", "semicolon", "tab", "|"];

/// The columns of a page.
pub struct Columns {
    pub rows: Vec<ColumnRow>,
    pub count: usize,
    /// The number of columns with a field.
    pub used: usize,
    /// The first column of the next page.
    pub next: Option<usize>,
    /// The first column of the previous page.
    pub previous: Option<usize>,
}

/// A column.
pub struct ColumnRow {
    pub index: usize,
    pub name: String,
    pub examples: String,
    pub setting: ColumnSetting,
}

impl Columns {
    /// The columns from this one on.
    pub fn of(state: &Snapshot, from: usize) -> Self {
        let count = state.settings.columns.len();
        let from = from.min(count);
        let reading = state.reading.as_ref().and_then(|read| read.as_ref().ok());
        let has_result = state.dry_run.is_some() || state.import.is_some();
        let page_size = if has_result { SHORT_PAGE_SIZE } else { PAGE_SIZE };
        let example = |n: usize| reading.and_then(|reading| reading.examples.get(n));
        let row = |(index, (name, setting)): (usize, (&String, &ColumnSetting))| ColumnRow {
            index,
            name: shown(name),
            examples: example(index).cloned().unwrap_or_default(),
            setting: setting.clone(),
        };
        let columns = state.names.iter().zip(&state.settings.columns).enumerate();
        let next = Some(from + page_size).filter(|next| *next < count);
        let previous = (from > 0).then(|| from.saturating_sub(page_size));
        let used = state.settings.columns.iter().filter(|own| !own.choice.is_empty()).count();
        let rows = columns.skip(from).take(page_size).map(row).collect();
        Self { rows, count, used, next, previous }
    }
}

/// The fields by which a line can find its user.
pub fn keys(settings: &Settings, is_table: bool) -> Vec<String> {
    if !is_table {
        return ["email", "handle", "phone", "url"].map(str::to_owned).into();
    }
    let key = |setting: &ColumnSetting| match (&*setting.choice, setting.choice.split_once(':')) {
        ("email" | "handle" | "phone" | "url", _) => Some(setting.choice.clone()),
        ("social" | "attributes", _) => Some(format!("{}.{}", setting.choice, setting.name)),
        (_, Some((kind, _))) => Some(format!("{kind}.{}", setting.name)),
        _ => None,
    };
    let mut keys: Vec<_> = settings.columns.iter().filter_map(key).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// How a table was read in other than the plain way, in sentences.
pub fn remarks(reading: &Reading) -> Vec<String> {
    let tally = &reading.tally;
    let mut remarks = Vec::new();
    let (repeats, line) = reading.repeats;
    if repeats > 0 {
        remarks.push(format!(
            "{repeats} rows, the first in line {line}, have an email, a phone number or another \
             identity of an earlier row: the check says what becomes of them."
        ));
    }
    for (region, count) in &tally.national {
        let by_row = tally.national_by_row.get(region).copied().unwrap_or_default();
        let region = if region.is_empty() { "no country" } else { region };
        let guess = match reading.is_region_guessed {
            true => ", which is a guess: choose another country above if it is wrong",
            false => "",
        };
        let counts = [(by_row, ""), (count.saturating_sub(by_row), guess)];
        for (count, guess) in counts.into_iter().filter(|(count, _)| *count > 0) {
            remarks.push(format!(
                "{count} phone numbers in national form are read as of {region}{guess}."
            ));
        }
    }
    if tally.without_prefix > 0 {
        remarks.push(format!(
            "{} of them lack the national prefix, and may be of another country.",
            tally.without_prefix
        ));
    }
    for ((column, word), count) in tally.absent.iter().take(MAX_WORDS) {
        let (column, word) = (shown(column), shown(word));
        remarks.push(format!("{count} cells of {column} have {word}, which is no value."));
    }
    let notes = &reading.notes;
    remarks.extend(listed(&notes.secrets).map(|own| format!("Refused as secrets: {own}")));
    remarks.extend(listed(&notes.left_out).map(|own| format!("Not imported: {own}")));
    remarks.extend(listed(&notes.kept).map(|own| format!("Kept as attributes: {own}")));
    remarks
}

/// The counts in one text; none if there are none.
fn listed(counts: &Counts) -> Option<String> {
    let names = counts.iter().take(MAX_WORDS).map(|(name, count)| format!("{count} {name}"));
    let names: Vec<_> = names.collect();
    (!names.is_empty()).then(|| names.join(", "))
}
