//! Values as they are written in a filter.

use winnow::combinator::{alt, opt};
use winnow::prelude::*;
use winnow::stream::Location;
use winnow::token::{any, one_of, take_while};

use super::fault::SyntaxError;
use super::input::{Input, Parsed, cut};
use super::scalar::Scalar;
use crate::timestamp::{Timestamp, parse_time};

/// A value as written.
#[derive(Debug)]
pub struct Literal {
    /// Its offset in bytes.
    pub at: usize,
    /// The text, without quotes, escapes and a `*` at its start or end.
    pub text: String,
    /// Whether it is in quotes.
    pub quoted: bool,
    /// Whether it ends in a `*` that is not escaped.
    pub prefix: bool,
    /// Whether it starts with a `*` that is not escaped, and something follows.
    pub suffix: bool,
}

/// The value after an operator.
pub fn literal(input: &mut Input<'_>) -> Parsed<Literal> {
    let at = input.current_token_start();
    let mark: Option<char> = opt(one_of(['"', '\''])).parse_next(input)?;
    if let Some(mark) = mark {
        return quoted_literal(input, at, mark);
    }

    let text: &str = take_while(0.., is_bare).parse_next(input)?;
    let (start, prefix) = match text.strip_suffix('*') {
        Some(start) => (start, true),
        None => (text, false),
    };
    let (middle, suffix) = match start.strip_prefix('*').filter(|_| !prefix) {
        Some(end) => (end, true),
        None => (start, false),
    };
    if let Some(star) = middle.find('*') {
        return Err(cut(at + star + usize::from(suffix), STAR_RULE));
    }
    if middle.is_empty() && !prefix {
        return Err(cut(at, "expected a value"));
    }
    Ok(Literal { at, text: middle.to_owned(), quoted: false, prefix, suffix })
}

const STAR_RULE: &str = "a * can only be the first or the last character of a value, not both (a \
    plain one is written \\* in quotes); found one";

/// Whether a value without quotes can have this character.
fn is_bare(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, '(' | ')' | '"' | '\'' | '=' | '<' | '>' | '!' | ',' | '\\')
}

/// The rest of a quoted text, after its opening mark.
fn quoted_literal(input: &mut Input<'_>, at: usize, mark: char) -> Parsed<Literal> {
    let mut text = String::new();
    let (mut first, mut last) = (None, None);
    loop {
        let here = input.current_token_start();
        let Some(c) = opt(any).parse_next(input)? else {
            return Err(cut(at, "expected a closing quotation mark after the one"));
        };
        if c == mark {
            // A lone star is the end of an empty text.
            let (suffix, prefix) = match text.is_empty() {
                true => (false, first.or(last).is_some()),
                false => (first.is_some(), last.is_some()),
            };
            return Ok(Literal { at, text, quoted: true, prefix, suffix });
        }
        if let Some(last) = last {
            return Err(cut(last, STAR_RULE));
        }
        match c {
            '*' if text.is_empty() && first.is_none() => first = Some(here),
            '*' if first.is_some() => return Err(cut(here, STAR_RULE)),
            '*' => last = Some(here),
            '\\' => match opt(alt((one_of(['\\', '"', '\'', '*']),))).parse_next(input)? {
                Some(plain) => text.push(plain),
                None => return Err(cut(here, "expected one of \\\\, \\\", \\' and \\*")),
            },
            c => text.push(c),
        }
    }
}

impl Literal {
    /// Whether this is a lone `*`, which matches any value.
    pub fn is_any(&self) -> bool {
        !self.quoted && self.prefix && self.text.is_empty()
    }

    /// The value for a field without a type: if it is not quoted, a number, a bool or a time if it
    /// parses as one; else a text.
    pub fn scalar(&self) -> Result<Scalar, SyntaxError> {
        let text = || Scalar::String(self.text.clone());
        if self.quoted {
            return Ok(text());
        }
        if let Ok(yes) = self.text.parse() {
            return Ok(Scalar::Bool(yes));
        }
        if let Some(time) = parse_time(&self.text) {
            return Ok(Scalar::Time(time));
        }

        let digits = self.text.trim_start_matches(['-', '+']);
        if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return Ok(text());
        }
        match (self.text.parse(), self.text.parse::<f64>()) {
            (Ok(number), _) => Ok(Scalar::Int(number)),
            (_, Ok(number)) if number.is_finite() && !is_whole(digits) => {
                Ok(Scalar::Double(number))
            }
            (_, Ok(_)) => Err(SyntaxError::new(self.at, "expected a number of 64 bits")),
            _ => Ok(text()),
        }
    }

    /// The values for a field of times: a time, or the times of a day in UTC.
    pub fn times(&self) -> Result<[Timestamp; 2], SyntaxError> {
        let expected = "expected a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31";
        let instant = parse_time(&self.text).map(|time| [time, time]);
        let is_whole = !self.prefix && !self.suffix;
        instant
            .or_else(|| day(&self.text))
            .filter(|_| is_whole)
            .ok_or_else(|| SyntaxError::new(self.at, expected))
    }
}

/// The first and the last time of a day in UTC.
fn day(text: &str) -> Option<[Timestamp; 2]> {
    let first = parse_time(&format!("{text}T00:00:00Z"))?;
    let last = Timestamp::from_millis(first.as_millis() + DAY_MILLIS - 1);
    Some([first, last])
}

/// The milliseconds of a day: times are compared to the millisecond.
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;

fn is_whole(digits: &str) -> bool {
    digits.bytes().all(|b| b.is_ascii_digit())
}
