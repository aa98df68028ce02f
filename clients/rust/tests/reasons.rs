//! The constants for the reasons of errors are those of docs/api.md.

use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../../docs/api.md");
const CONSTANTS: &str = include_str!("../src/reasons.rs");

#[test]
fn each_documented_reason_has_a_constant() {
    let (_, errors) = DOCUMENT.split_once("## Errors").unwrap();
    let rows = errors.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|line| line.split('|').nth(2));
    let documented: BTreeSet<_> =
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let constants = CONSTANTS.lines().filter_map(|line| line.strip_prefix("pub const "));
    let named = constants.map(|line| {
        let (name, value) = line.split_once(": &str = ").unwrap();
        assert_eq!(value, format!("\"{name}\";"));
        name
    });
    assert_eq!(named.collect::<BTreeSet<_>>(), documented);
}
