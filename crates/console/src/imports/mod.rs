//! Imports of files: what a session has uploaded, how each file is read, and what became of it.
//! Files are kept for a day, in this server, as long as their session.

mod inspecting;
mod job;
mod kept_mappings;
mod options;
mod outcome;
mod pool;
mod reasons;
mod settings;
mod stop;
mod temp_file;
mod transferring;
mod upload;
mod uploads;

pub use inspecting::inspect;
pub use job::{Job, JobKind};
pub use kept_mappings::{KeptMappings, MAX_NAME_CHARS};
pub use options::ImportOptions;
pub use outcome::Outcome;
pub use pool::Space;
pub use reasons::words;
pub use settings::{ColumnSetting, Settings};
pub use stop::Stop;
pub use transferring::{Plan, read_and_check, transfer};
pub use upload::{Reading, Snapshot, SpecialValue, Upload, UploadNames};
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

/// Advice for the command line, in the words of the console, without the names of rules.
pub fn advice(text: &str) -> String {
    const WORDS: [(&str, &str); 13] = [
        ("gunzip -c FILE | polynym import - --format csv", "unpack it first"),
        ("zstdcat FILE | polynym import - --format csv", "unpack it first"),
        ("bzcat FILE | polynym import - --format csv", "unpack it first"),
        ("xzcat FILE | polynym import - --format csv", "unpack it first"),
        ("add --encoding ", "choose the encoding "),
        (
            "day or month first? add --locale, such as ",
            "day or month first? choose how numbers and dates are written, such as ",
        ),
        ("add --locale, such as ", "choose how numbers and dates are written, such as "),
        (
            "map its column as an account, --map social.PROVIDER=COLUMN",
            "map its column as an account",
        ),
        (
            "write it with + and its calling code, or omit --phones strict",
            "write it with + and its calling code, or also take national numbers",
        ),
        ("--map FIELD=COLUMN,... says which is which, and --inspect proposes it", "choose one"),
        ("--map ", ""),
        ("--match ", ""),
        ("--separator ", "separator "),
    ];
    let text = without_rule(&of_list(text));
    let text = WORDS.iter().fold(text, |text, (own, words)| text.replace(own, words));
    if !text.contains("--") {
        return text;
    }
    text.split(' ').filter(|word| !word.starts_with("--")).collect::<Vec<_>>().join(" ")
}

/// Advice to map a column as a list, in the words of the console.
fn of_list(text: &str) -> String {
    const LIST: &str = "the cell has several values: map it as a list, --map '";
    let parts = text.split_once(LIST).and_then(|(before, rest)| {
        let (field, after) = rest.split_once("=COLUMN'")?;
        Some((before, field.split_once('[')?.1.trim_end_matches(']'), after))
    });
    parts.map_or_else(
        || text.to_owned(),
        |(before, sign, after)| {
            format!(
                "{before}the cell has several values: type {sign} as the separator of several \
                 values of the column{after}"
            )
        },
    )
}

/// A text without the name of the rule that a value breaks: `rule email-at-repeated; `, or
/// `rule email-at-repeated at character 3; `.
fn without_rule(text: &str) -> String {
    let parts = text.split_once(": rule ").and_then(|(before, rest)| {
        let (rule, after) = rest.split_once("; ")?;
        let name = rule.split_once(" at character ").map_or(rule, |(name, _)| name);
        (!name.contains(' ')).then_some((before, after))
    });
    parts.map_or_else(|| text.to_owned(), |(before, after)| format!("{before}: {after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_has_no_flags() {
        let text = "byte 2 is no UTF-8; the file may be of an older program: add --encoding \
            windows-1252";
        assert!(advice(text).ends_with("choose the encoding windows-1252"));
        assert_eq!(advice("add --other x to it"), "add x to it");
        let several = "the cell has several values: map it as a list, --map 'email[,]=COLUMN'";
        assert!(
            advice(several).ends_with("type , as the separator of several values of the column")
        );
        let rule = "not a valid email: rule email-at-repeated; keep only one @";
        assert_eq!(advice(rule), "not a valid email: keep only one @");
        let rule = rule.replace(';', " at character 3;");
        assert_eq!(advice(&rule), "not a valid email: keep only one @");
        assert_eq!(shown(&"é".repeat(300)).chars().count(), MAX_SHOWN_CHARS + 1);
    }
}
