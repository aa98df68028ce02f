//! The stores from outside: `polynym store init`, `status` and `verify`, on a folder and on real servers.

#![allow(clippy::unwrap_used, reason = "where a test cannot go on, it has failed")]

#[path = "support/mongo/mod.rs"]
mod servers;
#[path = "support/users.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod users;

#[path = "store_cli/init.rs"]
mod init;
