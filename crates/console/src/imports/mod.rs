//! Imports of files: what a session has uploaded, how each file is read, and what became of it.
//! Files are kept for a day, in this server, as long as their session.

mod inspecting;
mod job;
mod options;
mod outcome;
mod pool;
mod settings;
mod stop;
mod temp_file;
mod transferring;
mod upload;
mod uploads;

pub use inspecting::inspect;
pub use job::{Job, JobKind};
pub use options::ImportOptions;
pub use outcome::Outcome;
pub use pool::Space;
pub use settings::{ColumnSetting, Settings};
pub use stop::Stop;
pub use transferring::{Plan, transfer};
pub use upload::{Reading, Snapshot, Upload, UploadNames};
pub use uploads::{MAX_FILES, Slot, Uploads};

use crate::views::text::cut;

/// The maximum number of columns of a table.
pub const MAX_COLUMNS: usize = 1_000;
/// The maximum characters of a text that is kept to be shown.
const MAX_SHOWN_CHARS: usize = 200;

/// A text as it is shown, cut if it is long.
pub fn shown(text: &str) -> String {
    cut(text, MAX_SHOWN_CHARS)
}

/// Advice for the command line, in the words of the console.
pub fn advice(text: &str) -> String {
    const WORDS: [(&str, &str); 13] = [
        ("gunzip -c FILE | polynym import - --format csv", "unpack it first"),
        ("zstdcat FILE | polynym import - --format csv", "unpack it first"),
        ("bzcat FILE | polynym import - --format csv", "unpack it first"),
        ("xzcat FILE | polynym import - --format csv", "unpack it first"),
        ("add --encoding ", "choose the encoding "),
        ("add --locale, such as ", "choose how numbers and dates are written, such as "),
        (", --map social.PROVIDER=COLUMN", ""),
        ("or omit --phones strict", "or also take national numbers"),
        ("map it as a list, --map ", "fill in the sign between its values, as in "),
        ("--map FIELD=COLUMN,... says which is which, and --inspect proposes it", "choose one"),
        ("--map ", ""),
        ("--match ", ""),
        ("--separator ", "separator "),
    ];
    WORDS.iter().fold(text.to_owned(), |text, (own, words)| text.replace(own, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_has_no_flags() {
        let text = "byte 2 is no UTF-8; the file may be of an older program: add --encoding \
            windows-1252";
        assert!(advice(text).ends_with("choose the encoding windows-1252"));
        assert_eq!(shown(&"é".repeat(300)).chars().count(), MAX_SHOWN_CHARS + 1);
    }
}
