//! Errors of filters in output.

use prost::bytes::Bytes;
use tonic::Status;

use crate::output::printable;
use polynym_client::Error;

/// The characters of a filter to show before and after an error.
const EXCERPT_CHARS: [usize; 2] = [48, 24];

/// Adds to an error of a filter an excerpt of the filter, with a caret at the error.
pub fn with_excerpt(error: Error, filter: &str) -> Error {
    let status = error.status();
    let Some(position) = error_position(status.message()) else { return error };
    let message = format!("{}:\n{}", status.message(), excerpt(filter, position));
    let details = Bytes::copy_from_slice(status.details());
    Status::with_details(status.code(), message, details).into()
}

/// The position of the character that an error of a filter names, from 0.
fn error_position(message: &str) -> Option<usize> {
    let (_, rest) = message.strip_prefix("filter: ")?.split_once("at character ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse::<usize>().ok()?.checked_sub(1)
}

/// The part of a filter around a character, and a caret under it.
fn excerpt(filter: &str, position: usize) -> String {
    let first = position.saturating_sub(EXCERPT_CHARS[0]);
    let mut shown = filter.chars().skip(first);
    let line: String = shown.by_ref().take(position - first + EXCERPT_CHARS[1]).collect();
    let [before, after] = [first > 0, shown.next().is_some()].map(|cut| if cut { "…" } else { "" });
    let indent = " ".repeat(position - first + before.chars().count());
    format!("{before}{}{after}\n{indent}^", printable(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_filter_has_a_caret() {
        let status = Status::invalid_argument("filter: expected one of A, B at character 9");
        let shown = with_excerpt(status.into(), "state = AWAY");
        let message = "filter: expected one of A, B at character 9:\nstate = AWAY\n        ^";
        assert_eq!(shown.message(), message);
        let other = Status::invalid_argument("page_token: at character 9");
        assert_eq!(with_excerpt(other.into(), "a").message(), "page_token: at character 9");
    }

    #[test]
    fn a_long_filter_is_cut_around_its_error() {
        let text = format!("{} nothing {}", "state=ACTIVE OR ".repeat(50), "a ".repeat(50));
        let shown = excerpt(&text, 801);
        let [line, caret] = shown.lines().collect::<Vec<_>>()[..] else { panic!("{shown}") };
        assert!(line.starts_with('…') && line.ends_with('…') && line.chars().count() < 80);
        let position = caret.chars().count() - 1;
        assert!(line.chars().skip(position).collect::<String>().starts_with("nothing"), "{shown}");
    }
}
