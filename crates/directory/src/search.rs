//! Search: the filter language, the order of values, and what a store evaluates of a filter.
//!
//! Nothing here reads a store. A [`Filter`] decides for any user whether it matches. A [`Lead`] is
//! the one condition of it that a store finds users by. A [`Position`] is a place in the order of a
//! lead, and a [`PageToken`] carries it from one page to the next.

mod condition;
mod element;
mod fault;
mod field;
mod filter;
mod input;
mod lead;
mod literal;
mod order_by;
mod page_token;
mod parser;
mod range;
mod restriction;
mod scalar;
pub(crate) mod sealed;
mod searched_user;

#[cfg(test)]
mod tests;

pub use element::{ScalarRef, elements, fixed_elements, scalars};
pub use field::Field;
pub use filter::Filter;
pub use lead::{Lead, Order, Position};
pub use order_by::parse as parse_order_by;
pub use page_token::{PageToken, query_hash};
pub use range::Range;
pub use scalar::{Class, Scalar};
pub use searched_user::SearchedUser;
