//! The console over HTTP, as browsers without scripts use it.

mod browser;
mod importing;
mod history;
mod lists;
mod owners;
mod commands;
mod duplicates;
mod merging;
mod search;
mod signing_in;
mod users;
