//! Tables of texts that spreadsheets would compute: no written cell is a formula, and an import of
//! an export changes nobody.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::embedded;
use crate::support::output::{stderr, stdout};
use crate::support::server::Server;

/// Texts that programs read as something else.
const HOSTILE: [&str; 16] = [
    "=1+1",
    "'=1+1",
    "''=1+1",
    "+A1",
    "-2+3",
    "@SUM(A1)",
    "＝1+1",
    "\t=1",
    "x;=1+1",
    "x,=1+1|=2",
    "\n=1+1\n",
    "\"=1+1",
    "NULL",
    "'N/A",
    "007",
    "'s-Hertogenbosch",
];

/// Users with hostile texts in every part that a table has.
fn users() -> String {
    let line = |(n, text): (usize, &&str)| {
        json!({
            "displayName": text.trim(),
            "identities": [
                { "identifier": { "email": format!("={n}+1@example.com") } },
                { "identifier": { "email": format!("-{n}+3@example.com") } },
                { "identifier": { "phone": { "number": format!("+3461234{n:04}") } } },
                { "identifier": { "social": { "provider": "x", "subject": format!("={n}") } } },
            ],
            "attributes": {
                "note": { "stringValue": text },
                "level": { "intValue": format!("-{n}") },
                "share": { "doubleValue": 0.5 },
                "since": { "timeValue": "2021-12-04T10:00:00.5Z" },
                "tags": { "listValue": { "values": ["=a", "NULL"] } },
                "empty": { "stringValue": "" },
            },
        })
        .to_string()
    };
    HOSTILE.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

const COLUMNS: &str = "user_id,display_name,state,email,phone,social.x,attributes.note,\
    attributes.level,attributes.share,attributes.since,attributes.tags,attributes.empty";

/// Fails if a program finds a formula, by whatever sign it separates cells.
fn assert_shown(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap().trim_start_matches('\u{feff}');
    for part in text.split([',', ';', '\t', '|', '\r', '\n']) {
        let shown = part.trim_start_matches([' ', '"']);
        assert!(!shown.starts_with(['=', '＝']) && !shown.starts_with("@SUM"), "{part:?}");
        assert!(!shown.starts_with("-2+3") && !shown.starts_with("+A1"), "{part:?}");
    }
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

/// The counts of an import.
fn import(server: &Server, arguments: &[&str]) -> Value {
    let output = server.run(&[&["import", "--json"], arguments].concat());
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

#[test]
fn an_import_of_an_export_changes_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let [lines, table] = ["users.jsonl", "users.csv"].map(|name| path(folder.path(), name));
    fs::write(&lines, users()).unwrap();
    assert_eq!(import(&server, &[&lines])["created"], HOSTILE.len());
    for filter in [&[][..], &["--filter", "state = ACTIVE"]] {
        let export = ["export", "--output", &table, "--columns", COLUMNS];
        let output = server.run(&[&export[..], filter].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        assert_shown(&fs::read(&table).unwrap());
        for on_existing in ["update", "replace"] {
            let counts = import(&server, &[&table, "--on-existing", on_existing]);
            assert_eq!(counts["existing"], HOSTILE.len(), "{counts}");
            assert_eq!(counts["changed"], 0, "{counts}");
        }
    }
    let found = stdout(&server.run(&["resolve", "email:=4+1@example.com", "--json"]));
    assert!(found.contains("\"displayName\":\"-2+3\""), "{found}");
}

#[test]
fn changes_and_rejects_have_no_formulas() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let names = ["users.jsonl", "new.csv", "changes.csv", "new.rejects.csv"];
    let [lines, table, changes, rejects] = names.map(|name| path(folder.path(), name));
    fs::write(&lines, users()).unwrap();
    assert_eq!(import(&server, &[&lines])["created"], HOSTILE.len());
    let rows = "attributes.=x;email;attributes.note;state\n\
        =2+2;-1+3@example.com;=3+3;\n\
        =2+2;new@@example.com;'=1+1;active\n\
        =2+2;-2+3@example.com;x;=4+4\n";
    fs::write(&table, rows).unwrap();
    let update = [&*table, "--on-existing", "update"];
    let dry = import(&server, &[&update[..], &["--dry-run", "--changes", &changes]].concat());
    assert_eq!((&dry["changed"], &dry["rejected"]), (&1.into(), &2.into()), "{dry}");
    let text = fs::read_to_string(&changes).unwrap();
    assert!(text.contains(",''=1+1,'=3+3\n") && text.contains(",attributes.=x,,'=2+2"), "{text}");
    assert_shown(text.as_bytes());

    let text = fs::read_to_string(&rejects).unwrap();
    assert_shown(text.as_bytes());
    assert!(text.contains(";attributes.=x;email;") && text.contains(";'=4+4: the state"), "{text}");
    // The mended rows are what they were without the apostrophes.
    fs::write(&rejects, text.replace("@@", "@").replace(";'=4+4\r\n", ";\r\n")).unwrap();
    let mended = import(&server, &[&rejects, "--on-existing", "update"]);
    assert_eq!((&mended["created"], &mended["changed"]), (&1.into(), &1.into()), "{mended}");
    let found = stdout(&server.run(&["resolve", "email:new@example.com", "--json"]));
    for part in ["\"note\":{\"stringValue\":\"=1+1\"}", "\"=x\":{\"stringValue\":\"=2+2\"}"] {
        assert!(found.contains(part), "{part}: {found}");
    }
}
