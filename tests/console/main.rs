//! The console over HTTP, as browsers without scripts use it.

mod browser;
mod commands;
mod history;
mod importing;
mod lists;
mod owners;
mod duplicates;
mod merging;
mod search;
mod signing_in;
mod users;
