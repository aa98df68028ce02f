//! The console over HTTP, as browsers without scripts use it.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]
#![allow(
    clippy::too_many_lines,
    clippy::cognitive_complexity,
    reason = "a test follows one scenario from beginning to end"
)]

mod audit;
mod browser;
mod bulk;
mod callers;
mod commands;
mod conflicts;
mod connections;
mod cursors;
mod deliveries;
mod duplicates;
mod events;
mod figures;
mod filters;
mod health;
mod history;
mod home;
mod importing;
mod languages;
mod lists;
mod merging;
mod messages;
mod namesakes;
mod oidc;
mod owners;
mod policies;
mod search;
mod signing_in;
mod strangers;
mod tenants;
mod tokens;
mod usage;
mod users;
