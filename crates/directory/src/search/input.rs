//! The input of the parsers of a filter, with their counts.

use winnow::LocatingSlice;
use winnow::error::{ErrMode, ParserError};
use winnow::stream::{Location, Stateful};

use super::fault::SyntaxError;
use polynym_identifier::Rules;

/// The rest of a filter.
pub type Input<'a> = Stateful<LocatingSlice<&'a str>, State<'a>>;

/// The result of a parser.
pub type Parsed<T> = Result<T, ErrMode<SyntaxError>>;

/// The parser's rules and counts.
#[derive(Debug, Default)]
pub struct State<'a> {
    /// The rules by which identifiers are normalised.
    pub rules: &'a [Rules],
    /// The open parentheses.
    pub depth: usize,
    /// The conditions so far.
    pub conditions: usize,
}

impl<'a> ParserError<Input<'a>> for SyntaxError {
    type Inner = Self;

    fn from_input(input: &Input<'a>) -> Self {
        Self::new(input.current_token_start(), "expected something else")
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

/// An error after which no alternative is tried.
pub fn cut(at: usize, message: impl Into<String>) -> ErrMode<SyntaxError> {
    ErrMode::Cut(SyntaxError::new(at, message))
}
