//! Profile URLs.

mod address;
mod known;
mod page;
mod page_kind;
mod prefix;
mod query;
mod scheme;
mod site;
mod sites;
mod subpage;
mod wrapper;

pub(super) use address::is_same;
pub(super) use page::canonical;
pub(super) use prefix::folded as prefixes;
