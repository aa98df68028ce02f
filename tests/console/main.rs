//! The console over HTTP, as browsers without scripts use it.

mod browser;
mod bulk;
mod commands;
mod conflicts;
mod duplicates;
mod events;
mod health;
mod history;
mod importing;
mod lists;
mod merging;
mod owners;
mod policies;
mod search;
mod signing_in;
mod tenants;
mod tokens;
mod usage;
mod users;
