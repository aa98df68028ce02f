//! Cells as other programs leave them, and rows about one person.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{embedded, import_file};
use crate::support::output::{stderr, stdout};
use crate::support::server::{Server, polynym};

/// Writes a file. Returns its path.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The counts of an import.
fn import(server: &Server, path: &str, arguments: &[&str]) -> Value {
    let output = server.run(&[&["import", path, "--json"], arguments].concat());
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

fn user(server: &Server, identity: &str) -> String {
    let output = server.run(&["resolve", identity, "--json"]);
    assert!(output.status.success(), "{identity}: {}", stderr(&output));
    stdout(&output)
}

#[test]
fn cells_of_other_programs_are_read_or_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let rows = "email,phone,region,attributes.level:int,attributes.share:double,\
        attributes.since:time,handle\n\
        a@example.com,030 1234567,NULL,3.0,0.5,0000-00-00,ann,, \n\
        b@example.com,,,\"4,750\",,,bob\n\
        c@example.com,,,,\"4,750\",,cleo\n\
        d@example.com,,,,,,1047.0\n\
        e@example.com,,,,,,eve,x\n";
    let path = file(folder.path(), "people.csv", rows);
    let (text, rejects) = import_file(&server, &path, &["--region", "DE"]);
    assert!(text.starts_with("1 imported, 0 there already, 4 lines rejected"), "{text}");
    for part in ["of attributes.since:time had 0000-00-00, which", "1 cells of region had NULL"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let parts = ["4750 or 4.750? add --locale", "add --locale", "made a number", "this row has 8"];
    for (reject, part) in rejects.iter().zip(parts) {
        assert!(reject["message"].as_str().unwrap().contains(part), "{part}: {reject}");
    }
    let found = user(&server, "email:a@example.com");
    assert!(found.contains("+49301234567") && found.contains("\"intValue\":\"3\""), "{found}");
    assert!(!found.contains("since"), "{found}");

    let again = import(&server, &path, &["--region", "DE", "--locale", "en"]);
    assert_eq!((&again["created"], &again["rejected"]), (&2.into(), &2.into()), "{again}");
    let words = json!([
        { "column": "attributes.since:time", "word": "0000-00-00", "cells": 1 },
        { "column": "region", "word": "NULL", "cells": 1 },
    ]);
    assert_eq!((&again["absent_words"], &again["absent_cells"]), (&words, &2.into()));
}

#[test]
fn an_error_of_a_spreadsheet_removes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let first = "handle,attributes.team\njoe,search\nann,web\n";
    let first = file(folder.path(), "first.csv", first);
    assert_eq!(import(&server, &first, &[])["created"], 2);
    let second = "handle,attributes.team\njoe,#REF!\nann,NULL\n";
    let second = file(folder.path(), "second.csv", second);
    let updated = import(&server, &second, &["--on-existing", "update"]);
    assert_eq!((&updated["existing"], &updated["changed"]), (&2.into(), &0.into()), "{updated}");
    let replaced = import(&server, &second, &["--on-existing", "replace"]);
    assert_eq!((&replaced["rejected"], &replaced["changed"]), (&1.into(), &1.into()));
    assert!(user(&server, "handle:joe").contains("search"));
    assert!(!user(&server, "handle:ann").contains("web"));
}

/// The rows are more than a batch, and more than one batch is in flight.
#[test]
fn of_rows_about_one_person_the_later_wins() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let mut rows = "email,attributes.n:int\n".to_owned();
    for n in 0..1_200 {
        rows += &format!("{}{}@Example.com,{n}\n", ["p", "P"][n / 3 % 2], n % 3);
    }
    rows += "x@example.com,1\nx@example.com,2\nx@example.com,1\n";
    let path = file(folder.path(), "updates.csv", &rows);
    let counts = import(&server, &path, &["--on-existing", "update"]);
    assert_eq!((&counts["created"], &counts["rejected"]), (&4.into(), &0.into()), "{counts}");
    for (email, n) in [("p0", 1_197), ("p1", 1_198), ("p2", 1_199), ("x", 1)] {
        let found = user(&server, &format!("email:{email}@example.com"));
        assert!(found.contains(&format!("\"intValue\":\"{n}\"")), "{email}: {found}");
    }

    let mut rows = "email,attributes.row\n".to_owned();
    (0..300).for_each(|n| rows += &format!("q{n}@example.com,first\nq{n}@example.com,second\n"));
    let path = file(folder.path(), "new.csv", &rows);
    let counts = import(&server, &path, &[]);
    assert_eq!(counts["reasons"]["IDENTITY_TAKEN"], 300, "{counts}");
    assert_eq!(stdout(&server.run(&["user", "count", "attributes.row = \"first\""])), "300\n");
}

/// A file that can be read only once is understood as well as another.
#[test]
fn the_whole_of_a_pipe_decides_on_a_column() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = "number,name\n".to_owned();
    (1..1_500).for_each(|n| rows += &format!("{n},Jo\n"));
    rows += "007,Ann\n";
    let path = file(folder.path(), "numbers.csv", &rows);
    let inspect = |file: &str, input: &str| {
        let mut command = polynym(&["import", file, "--format", "csv", "--inspect"]);
        let output = command.stdin(fs::File::open(input).unwrap()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let map = inspect(&path, "/dev/null");
    assert!(map.contains("\"attributes.number\" = \"number\""), "{map}");
    assert_eq!(inspect("-", &path), map);
}

#[test]
fn a_filling_file_leaves_what_users_have() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let first = "handle,display_name,email,attributes.team\njoe,Joe,joe@example.com,\nann,,,web\n";
    let first = file(folder.path(), "first.csv", first);
    assert_eq!(import(&server, &first, &[])["created"], 2);
    let second = "handle,display_name,email,attributes.team\n\
        joe,Joseph,joe@work.example,search\nann,Ann,ann@example.com,ads\nbob,Bob,,\n";
    let second = file(folder.path(), "second.csv", second);
    let fill = ["--on-existing", "fill", "--match", "handle"];
    let dry = import(&server, &second, &[&fill[..], &["--dry-run"]].concat());
    let filled = import(&server, &second, &fill);
    for counts in [&dry, &filled] {
        assert_eq!((&counts["changed"], &counts["created"]), (&2.into(), &1.into()), "{counts}");
    }
    let joe = user(&server, "handle:joe");
    assert!(joe.contains("\"displayName\":\"Joe\"") && joe.contains("search"), "{joe}");
    assert!(!joe.contains("work.example"), "{joe}");
    let ann = user(&server, "email:ann@example.com");
    assert!(ann.contains("\"displayName\":\"Ann\"") && ann.contains("web"), "{ann}");
    let again = import(&server, &second, &fill);
    assert_eq!((&again["changed"], &again["existing"]), (&0.into(), &3.into()), "{again}");
}
