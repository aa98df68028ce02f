//! The parser of filters: a documented part of AIP-160. OR binds tighter than AND; adjacent terms
//! are joined by AND.

use winnow::combinator::{alt, not, opt, peek};
use winnow::error::ErrMode;
use winnow::prelude::*;
use winnow::stream::{Location, Stateful};
use winnow::token::{one_of, take_while};
use winnow::{LocatingSlice, combinator};

use super::fault::SyntaxError;
use super::filter::Expression;
use super::input::{Input, Parsed, State, cut};
use super::literal::literal;
use super::restriction::{Operator, Path, conditions_of, path};
use crate::error::{Error, Invalid};
use polynym_identifier::Rules;

/// The maximum size of a filter.
const MAX_FILTER_BYTES: usize = 4_096;
/// The maximum nesting of parentheses.
const MAX_DEPTH: usize = 32;
/// The maximum number of conditions.
const MAX_CONDITIONS: usize = 100;

/// Parses a filter.
pub fn parse(text: &str, rules: &[Rules]) -> Result<Expression, Error> {
    if text.len() > MAX_FILTER_BYTES {
        let message = format!("a filter has at most 4,096 bytes, this one has {}", text.len());
        return Err(Error::invalid(Invalid::Filter, "filter", message));
    }
    let state = State { rules, ..State::default() };
    run(text, state, filter).map_err(|error| error.into_error(text))
}

/// Parses a text that is the path of a field alone.
pub fn parse_path(text: &str) -> Result<Path, SyntaxError> {
    run(text, State::default(), |input: &mut Input<'_>| {
        space(input)?;
        let path = path(input)?;
        space(input)?;
        end(input, "expected nothing after the field")?;
        Ok(path)
    })
}

fn run<'a, T>(
    text: &'a str,
    state: State<'a>,
    parser: impl FnOnce(&mut Input<'a>) -> Parsed<T>,
) -> Result<T, SyntaxError> {
    let mut input = Stateful { input: LocatingSlice::new(text), state };
    parser(&mut input).map_err(|error| match error {
        ErrMode::Backtrack(error) | ErrMode::Cut(error) => error,
        ErrMode::Incomplete(_) => SyntaxError::new(text.len(), "expected more"),
    })
}

fn filter(input: &mut Input<'_>) -> Parsed<Expression> {
    space(input)?;
    if is_next(input, combinator::eof.void()) {
        return Ok(Expression::All(Vec::new()));
    }
    let expression = expression(input)?;
    space(input)?;
    end(input, "expected AND, OR or a further condition")?;
    Ok(expression)
}

/// Sequences, joined by AND.
fn expression(input: &mut Input<'_>) -> Parsed<Expression> {
    let mut all = vec![sequence(input)?];
    while take_keyword(input, "AND")? {
        all.push(sequence(input)?);
    }
    Ok(Expression::all(all))
}

/// Adjacent factors.
fn sequence(input: &mut Input<'_>) -> Parsed<Expression> {
    let mut all = vec![factor(input)?];
    loop {
        space(input)?;
        let ends = alt((combinator::eof.void(), ')'.void(), keyword("AND")));
        if is_next(input, ends) {
            return Ok(Expression::all(all));
        }
        all.push(factor(input)?);
    }
}

/// Terms, joined by OR.
fn factor(input: &mut Input<'_>) -> Parsed<Expression> {
    let mut any = vec![term(input)?];
    while take_keyword(input, "OR")? {
        any.push(term(input)?);
    }
    Ok(Expression::any(any))
}

fn term(input: &mut Input<'_>) -> Parsed<Expression> {
    space(input)?;
    let is_not = opt(alt((keyword("NOT"), '-'.void()))).parse_next(input)?.is_some();
    space(input)?;
    let inner =
        if opt('(').parse_next(input)?.is_some() { composite(input)? } else { restriction(input)? };
    Ok(if is_not { Expression::Not(Box::new(inner)) } else { inner })
}

/// The rest of a group, after its opening parenthesis.
fn composite(input: &mut Input<'_>) -> Parsed<Expression> {
    let at = input.current_token_start() - 1;
    if input.state.depth == MAX_DEPTH {
        return Err(cut(
            at,
            format!("a filter has at most {MAX_DEPTH} levels of parentheses: another"),
        ));
    }
    input.state.depth += 1;
    let inner = expression(input)?;
    space(input)?;
    if opt(')').parse_next(input)?.is_none() {
        return Err(cut(input.current_token_start(), "expected AND, OR, a condition or )"));
    }
    input.state.depth -= 1;
    Ok(inner)
}

/// A field, an operator and a value.
fn restriction(input: &mut Input<'_>) -> Parsed<Expression> {
    let at = input.current_token_start();
    if input.state.conditions == MAX_CONDITIONS {
        return Err(cut(at, format!("a filter has at most {MAX_CONDITIONS} conditions: another")));
    }
    input.state.conditions += 1;
    let path = path(input)?;
    space(input)?;
    let operator_at = input.current_token_start();
    let expected = "expected one of =, !=, <, <=, >, >= and :";
    let operator = opt(operator).parse_next(input)?.ok_or_else(|| cut(operator_at, expected))?;
    space(input)?;
    let value = literal(input)?;
    let parts = conditions_of(path, (operator_at, operator), &value, input.state.rules);
    let (is_not, conditions) = parts.map_err(ErrMode::Cut)?;
    let all = Expression::all(conditions.into_iter().map(Expression::Is).collect());
    Ok(if is_not { Expression::Not(Box::new(all)) } else { all })
}

fn operator(input: &mut Input<'_>) -> Parsed<Operator> {
    alt((
        "<=".value(Operator::AtMost),
        ">=".value(Operator::AtLeast),
        "!=".value(Operator::Differs),
        "=".value(Operator::Equals),
        "<".value(Operator::Less),
        ">".value(Operator::Greater),
        ":".value(Operator::Has),
    ))
    .parse_next(input)
}

fn space(input: &mut Input<'_>) -> Parsed<()> {
    take_while(0.., char::is_whitespace).void().parse_next(input)
}

fn end(input: &mut Input<'_>, expected: &str) -> Parsed<()> {
    let at = input.current_token_start();
    match is_next(input, combinator::eof.void()) {
        true => Ok(()),
        false => Err(cut(at, expected)),
    }
}

/// A keyword of the language.
fn keyword<'a>(word: &'static str) -> impl Parser<Input<'a>, (), ErrMode<SyntaxError>> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    (word, not(one_of(is_word))).void()
}

/// Consumes a keyword if it comes next.
fn take_keyword(input: &mut Input<'_>, word: &'static str) -> Parsed<bool> {
    space(input)?;
    Ok(opt(keyword(word)).parse_next(input)?.is_some())
}

fn is_next<'a>(
    input: &mut Input<'a>,
    parser: impl Parser<Input<'a>, (), ErrMode<SyntaxError>>,
) -> bool {
    peek(parser).parse_next(input).is_ok()
}
