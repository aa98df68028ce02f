//! Search: the filter language, the order of values, and the condition that a store evaluates.
//!
//! Nothing here reads a store. A [`Filter`] decides whether a user matches. An [`AccessPath`] is
//! the one condition of a filter by which a store finds users. A [`Position`] is a user's position
//! in the order of an access path; a [`PageToken`] carries it from one page to the next.

mod condition;
mod constructed;
mod element;
mod fault;
mod field;
mod filter;
pub mod folding;
mod input;
mod lead;
mod literal;
mod name;
mod order_by;
mod page_token;
mod parser;
mod range;
mod restriction;
mod scalar;
mod searched_user;
mod spelling;

#[cfg(test)]
mod tests;

pub use element::{
    MAX_NAME_WORDS, ScalarRef, derived_elements, elements, fixed_elements, scalars,
    searched_elements,
};
pub use field::Field;
pub use filter::Filter;
pub use lead::{AccessPath, Order, Position};
pub use name::TypedName;
pub use order_by::parse as parse_order_by;
pub use page_token::{PageToken, query_hash};
pub use range::Range;
pub use scalar::{Class, Scalar};
pub use searched_user::SearchedUser;
pub use spelling::{joined_umlauts, one_letter_variants, other_umlauts};
