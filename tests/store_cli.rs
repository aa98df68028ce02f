//! The stores from outside: `polynym store init`, `status` and `verify`, on a folder and on real
//! servers.

mod attributes;
mod clock;
mod damage;
mod folder;
mod histories;
mod init;
mod keys;
mod mongo;
mod moving;

use std::process::Output;

use mongodb::options::{DatabaseOptions, WriteConcern};
use mongodb::{Client, Database};

use crate::server::polynym;

/// Runs `polynym store` with `arguments` on `store`.
fn store(arguments: &[&str], store: &str) -> Output {
    polynym(&["store"]).args(arguments).args(["--store", store]).output().unwrap()
}

/// The database that `uri` names, to write into past the store. What is read from a majority must
/// be written to one: a replica set does so unasked, the front end of a cluster does not.
async fn database(uri: &str) -> Database {
    let client = Client::with_uri_str(uri).await.unwrap();
    let options = DatabaseOptions::builder().write_concern(WriteConcern::majority()).build();
    client.database_with_options(client.default_database().unwrap().name(), options)
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The JSON objects that a command printed.
fn json(output: &Output) -> Vec<serde_json::Value> {
    out(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
