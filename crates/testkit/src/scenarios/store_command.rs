//! Runs `polynym store`, and opens its database directly.

use std::process::Output;

use mongodb::options::{DatabaseOptions, WriteConcern};
use mongodb::{Client, Database};

use crate::output::{stderr, stdout};
use crate::server::polynym;

/// Runs `polynym store` with `arguments` on `store`.
pub fn store(arguments: &[&str], store: &str) -> Output {
    polynym(&["store"]).args(arguments).args(["--store", store]).output().unwrap()
}

/// The database of `uri`, for writes past the store. Majority reads need majority writes, which are
/// the default on a replica set but not on the front end of a cluster.
pub async fn database(uri: &str) -> Database {
    let client = Client::with_uri_str(uri).await.unwrap();
    let options = DatabaseOptions::builder().write_concern(WriteConcern::majority()).build();
    client.database_with_options(client.default_database().unwrap().name(), options)
}

/// The JSON objects that a command printed.
pub fn json(output: &Output) -> Vec<serde_json::Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The words and users of the findings of `store verify`.
pub fn findings(arguments: &[&str], name: &str) -> Vec<(String, String)> {
    let output = store(&[&["verify", "--json"], arguments].concat(), name);
    let mut lines = json(&output);
    let totals = lines.pop().unwrap_or_else(|| panic!("{}", stderr(&output)));
    assert_eq!(totals["findings"], lines.len());
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    lines.iter().map(|line| (text(&line["finding"]), text(&line["user"]))).collect()
}
