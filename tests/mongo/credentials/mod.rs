//! TLS, credentials and roles of MongoDB.

mod connecting;
mod roles;
mod secured;
