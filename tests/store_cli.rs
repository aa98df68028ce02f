//! The stores from outside: `polynym store init`, `status` and `verify`, on a folder and on real servers.

#![allow(clippy::unwrap_used, reason = "where a test cannot go on, it has failed")]

#[path = "support/server.rs"]
mod server;
#[path = "support/mongo/mod.rs"]
mod servers;
#[path = "support/users.rs"]
mod users;

#[path = "store_cli/damage.rs"]
mod damage;
#[path = "store_cli/folder.rs"]
mod folder;
#[path = "store_cli/init.rs"]
mod init;
#[path = "store_cli/mongo.rs"]
mod mongo;
#[path = "store_cli/moving.rs"]
mod moving;

use std::process::Output;

use mongodb::options::{DatabaseOptions, WriteConcern};
use mongodb::{Client, Database};
use server::polynym;

/// Runs `polynym store` with `arguments` on `store`.
fn store(arguments: &[&str], store: &str) -> Output {
    polynym(&["store"]).args(arguments).args(["--store", store]).output().unwrap()
}

/// The database that `uri` names, to write into past the store. What is read from a majority must be written to one: a
/// replica set does so unasked, the front end of a cluster does not.
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
