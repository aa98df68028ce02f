//! Profile URLs, by each version of the rules.

mod address;
mod known;
mod page;
mod prefix;
mod profile;
mod query;
mod site;
mod wrapper;

pub(super) use address::{canonical as second, first, is_same};
pub(super) use page::canonical;
pub(super) use prefix::{first as first_prefix, folded as prefix, second as second_prefix};
