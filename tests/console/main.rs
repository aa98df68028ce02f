//! The console over HTTP, as browsers without scripts use it.

mod browser;
mod bulk;
mod commands;
mod conflicts;
mod duplicates;
mod history;
mod importing;
mod lists;
mod merging;
mod owners;
mod search;
mod signing_in;
mod users;
