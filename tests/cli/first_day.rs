//! The commands of docs/first-day.md print what the page shows.

use std::path::Path;

use crate::support::doc_examples::{parse, shell};
use crate::support::output::{stderr, stdout};
use crate::support::server::Server;

const SCRIPT: &str = "tests/data/customers.py";

#[test]
fn the_first_day_is_as_described() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = Server::start(&["--create", "--store", &store]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/first-day.md")).unwrap();
    let examples = parse("docs/first-day.md", &page);
    assert!(examples.len() > 12, "the page has few examples");
    for example in examples {
        let command = example.command.replace(SCRIPT, root.join(SCRIPT).to_str().unwrap());
        let output = shell(&format!("cd '{}' && {command}", folder.path().display()), &server.url);
        let shown = stdout(&output);
        assert_eq!(shown, example.output, "{}: {}", example.position, stderr(&output));
    }
}
