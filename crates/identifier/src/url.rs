//! Profile URLs, by each version of the rules.

mod address;
mod known;
mod page;
mod page_kind;
mod prefix;
mod profile;
mod query;
mod scheme;
mod site;
mod sites;
mod subpage;
mod wrapper;

pub(super) use address::{canonical as second, first, is_same};
pub(super) use page::{canonical, third};
pub(super) use prefix::{
    first as first_prefix, folded as prefix, second as second_prefix, third as third_prefix,
};
