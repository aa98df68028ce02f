//! Runs `polynym store`, and changes a database past the store.

use std::process::Output;

use mongodb::options::{DatabaseOptions, WriteConcern};
use mongodb::{Client, Database};

use crate::output::out;
use crate::server::polynym;

/// Runs `polynym store` with `arguments` on `store`.
pub fn store(arguments: &[&str], store: &str) -> Output {
    polynym(&["store"]).args(arguments).args(["--store", store]).output().unwrap()
}

/// The database that `uri` names, to write into past the store. What is read from a majority must
/// be written to one: a replica set does so unasked, the front end of a cluster does not.
pub async fn database(uri: &str) -> Database {
    let client = Client::with_uri_str(uri).await.unwrap();
    let options = DatabaseOptions::builder().write_concern(WriteConcern::majority()).build();
    client.database_with_options(client.default_database().unwrap().name(), options)
}

/// The JSON objects that a command printed.
pub fn json(output: &Output) -> Vec<serde_json::Value> {
    out(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
