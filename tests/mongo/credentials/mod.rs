//! TLS, credentials and roles of MongoDB.

mod another_user;
mod connecting;
mod roles;
mod secured;
