//! The filter of templates for words.

use std::fmt::Display;

use askama::Values;
use askama::filters::Safe;

use super::marks::Words;

/// The filter for an expression that is words, such as a state.
#[askama::filter_fn]
pub fn words<T: Display>(text: T, _: &dyn Values) -> askama::Result<Safe<Words<T>>> {
    Ok(Safe(Words { text, context: "" }))
}

/// The filter for the verb of a sentence about a change.
#[askama::filter_fn]
pub fn verb<T: Display>(text: T, _: &dyn Values) -> askama::Result<Safe<Words<T>>> {
    Ok(Safe(Words { text, context: "[verb] " }))
}
