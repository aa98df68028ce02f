//! Mutations: one transaction each, or one for many.

pub mod batch;
pub mod batch_statements;
pub mod claims;
pub mod commit_gate;
pub mod mutate;
pub mod recovery;
pub mod statements;
pub mod tenants;
pub mod visibility;
