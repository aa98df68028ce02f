//! The input of the parsers of a filter, with their counts.

use winnow::LocatingSlice;
use winnow::error::{ErrMode, ParserError};
use winnow::stream::{Location, Stateful};

use super::fault::Fault;
use polynym_identifier::Rules;

/// The rest of a filter.
pub type Input<'a> = Stateful<LocatingSlice<&'a str>, State<'a>>;

/// The result of a parser.
pub type Parsed<T> = Result<T, ErrMode<Fault>>;

/// The parser's counts.
#[derive(Debug, Default)]
pub struct State<'a> {
    /// The rules by which identifiers are normalised.
    pub rules: &'a [Rules],
    /// The open parentheses.
    pub depth: usize,
    /// The conditions so far.
    pub terms: usize,
}

impl<'a> ParserError<Input<'a>> for Fault {
    type Inner = Self;

    fn from_input(input: &Input<'a>) -> Self {
        Self::new(input.current_token_start(), "expected something else")
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

/// A fault that no alternative mends.
pub fn cut(at: usize, message: impl Into<String>) -> ErrMode<Fault> {
    ErrMode::Cut(Fault::new(at, message))
}
