//! Files of customers as Excel and other programs write them: inspected, imported, and mended.

use std::fs;
use std::path::Path;

use encoding_rs::WINDOWS_1252;

use super::embedded;
use crate::support::output::{stderr, stdout};
use crate::support::server::{Server, polynym};

/// The rows of a file.
const ROWS: usize = 300;

/// A country: its name in the file, and a number of its own in national form.
type Country = (&'static str, fn(usize) -> String);

/// The form of a file.
struct Form {
    header: [&'static str; 9],
    countries: [Country; 5],
    yes_and_no: [&'static str; 2],
    encode: fn(&str) -> Vec<u8>,
}

fn windows(text: &str) -> Vec<u8> {
    WINDOWS_1252.encode(text).0.into_owned()
}

fn utf_16(text: &str) -> Vec<u8> {
    format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn utf_8(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

const GERMAN_NUMBER: fn(usize) -> String = |n| format!("030 {}", 2_000_000 + n);
const AUSTRIAN_NUMBER: fn(usize) -> String = |n| format!("01 {}", 5_120_000 + n);
const SWISS_NUMBER: fn(usize) -> String = |n| format!("044 6{:06}", 680_000 + n);
const FRENCH_NUMBER: fn(usize) -> String = |n| format!("06 12 {:02} {:02} 78", n / 100, n % 100);
const SPANISH_NUMBER: fn(usize) -> String = |n| format!("612 34 {:04}", n);

fn german() -> Form {
    Form {
        header: [
            "Kundennr.",
            "Vorname",
            "Nachname",
            "E-Mail",
            "Telefon",
            "Land",
            "Umsatz",
            "Kunde seit",
            "Newsletter",
        ],
        countries: [
            ("Deutschland", GERMAN_NUMBER),
            ("Österreich", AUSTRIAN_NUMBER),
            ("Schweiz", SWISS_NUMBER),
            ("Frankreich", FRENCH_NUMBER),
            ("Spanien", SPANISH_NUMBER),
        ],
        yes_and_no: ["ja", "nein"],
        encode: windows,
    }
}

fn french() -> Form {
    Form {
        header: [
            "N° client",
            "Prénom",
            "Nom",
            "Courriel",
            "Portable",
            "Pays",
            "Chiffre",
            "Depuis",
            "Infos",
        ],
        countries: [
            ("Allemagne", GERMAN_NUMBER),
            ("Autriche", AUSTRIAN_NUMBER),
            ("Suisse", SWISS_NUMBER),
            ("France", FRENCH_NUMBER),
            ("Espagne", SPANISH_NUMBER),
        ],
        yes_and_no: ["oui", "non"],
        encode: utf_16,
    }
}

fn spanish() -> Form {
    Form {
        header: [
            "Cliente",
            "Nombre",
            "Apellidos",
            "Correo electrónico",
            "Móvil",
            "País",
            "Ventas",
            "Desde",
            "Boletín",
        ],
        countries: [
            ("Alemania", GERMAN_NUMBER),
            ("Austria", AUSTRIAN_NUMBER),
            ("Suiza", SWISS_NUMBER),
            ("Francia", FRENCH_NUMBER),
            ("España", SPANISH_NUMBER),
        ],
        yes_and_no: ["sí", "no"],
        encode: utf_8,
    }
}

impl Form {
    /// A file with two emails in every tenth cell, 3 % of rows that are wrong, and 2 % that have
    /// the email of an earlier row.
    fn file(&self) -> Vec<u8> {
        let mut lines = vec![self.header.join(";")];
        for n in 0..ROWS {
            let (country, number) = self.countries[n % self.countries.len()];
            let email = match n {
                _ if n % 100 < 2 => format!("nobody@@{n}.example.com"),
                _ if n % 100 == 2 => "N/A@".to_owned(),
                _ if n % 100 > 97 => format!("Person{}@Example.com", n - 50),
                _ if n % 10 == 5 => format!("person{n}@example.com, p.{n}@example.org"),
                _ => format!("person{n}@example.com"),
            };
            let answer = self.yes_and_no[n % 2];
            let (first, last) =
                (["José", "Zoë", "Jürgen"][n % 3], ["Müller", "NULL", "Peña"][n % 3]);
            lines.push(format!(
                "{n:05};{first};{last};{email};{};{country};{}.{:03},50;{:02}.12.2021;{answer}",
                number(n),
                n % 7,
                n,
                1 + n % 28,
            ));
        }
        lines.push(";; ;;;;;;".to_owned());
        (self.encode)(&lines.join("\r\n"))
    }
}

/// The numbers of an import's answer.
fn counts(output: &std::process::Output) -> serde_json::Value {
    serde_json::from_str(&stdout(output)).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

fn inspected(folder: &Path, name: &str) -> (String, String) {
    let output = polynym(&["import", name, "--inspect"]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    (stdout(&output), stderr(&output))
}

fn imported(server: &Server, folder: &Path, name: &str) -> serde_json::Value {
    let mut command = polynym(&["import", name, "--map-file", "map.toml", "--json"]);
    let command = command.current_dir(folder).env("POLYNYM_SERVER", &server.url);
    counts(&command.output().unwrap())
}

/// The bad rows of the first import, mended as in a spreadsheet, go in; then all rows are there.
fn goes_in(form: &Form) {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    fs::write(folder.path().join("customers.csv"), form.file()).unwrap();
    let (map, shown) = inspected(folder.path(), "customers.csv");
    assert!(shown.contains("semicolon") && shown.contains("9 rows would be rejected"), "{shown}");
    fs::write(folder.path().join("map.toml"), map).unwrap();

    let first = imported(&server, folder.path(), "customers.csv");
    assert_eq!(first["created"], ROWS - 15, "{first}");
    assert_eq!(first["reasons"]["IDENTIFIER_INVALID"], 9, "{first}");
    assert_eq!(first["reasons"]["IDENTITY_TAKEN"], 6, "{first}");
    assert_eq!(first["national_phones"]["ES"], ROWS / 5, "{first}");
    assert_eq!(first["absent_cells"], ROWS / 3, "{first}");

    // Of two rows with one email, either is rejected.
    let rejects = fs::read_to_string(folder.path().join("customers.rejects.csv")).unwrap();
    assert_eq!(rejects.matches(form.header[3]).count(), 16, "each reject names its column");
    let mended = rejects.replace("@@", "@").replace("N/A@", "").replace("erson", "ended");
    fs::write(folder.path().join("mended.csv"), mended).unwrap();
    let second = imported(&server, folder.path(), "mended.csv");
    assert_eq!((&second["created"], &second["rejected"]), (&15.into(), &0.into()), "{second}");

    let again = imported(&server, folder.path(), "mended.csv");
    assert_eq!((&again["created"], &again["existing"]), (&0.into(), &15.into()), "{again}");
    let found = server.run(&["resolve", "email:p.5@example.org", "phone:+34612340004", "--json"]);
    let found = stdout(&found);
    for part in ["Jürgen Peña", "\"boolValue\":false", "2021-12-06T00:00:00Z", "5005.5"] {
        assert!(found.contains(part), "{part}: {found}");
    }
}

#[test]
fn a_german_file_of_excel_goes_in() {
    goes_in(&german());
}

#[test]
fn a_french_file_of_excel_goes_in() {
    goes_in(&french());
}

#[test]
fn a_spanish_file_goes_in() {
    goes_in(&spanish());
}

#[test]
fn other_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    for (bytes, part) in [
        (&b"PK\x03\x04[Content_Types].xml"[..], "save the sheet as CSV"),
        (b"\x1f\x8b\x08", "gunzip"),
        (b"a,b\n1,2\n", "--inspect proposes it"),
        (b"email,email\na@example.com,b@example.com\n", "columns 1 and 2 have this name"),
    ] {
        let path = folder.path().join("file.csv");
        fs::write(&path, bytes).unwrap();
        let output = server.run(&["import", path.to_str().unwrap()]);
        assert!(stderr(&output).contains(part), "{part}: {}", stderr(&output));
    }
}

/// A tenant that does not exist is one error for all lines.
#[test]
fn a_missing_tenant_is_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    for (name, text, part) in [
        ("file.csv", "email\na@example.com\n", "there is no tenant nobody"),
        (
            "file.jsonl",
            "{\"displayName\":\"Ada\"}\n{\"displayName\":\"Bob\"}\n",
            "TENANT_NOT_FOUND",
        ),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let output = server.run(&["import", path.to_str().unwrap(), "--tenant", "nobody"]);
        assert!(!output.status.success());
        assert_eq!(stderr(&output).matches(part).count(), 1, "{}", stderr(&output));
    }
    let files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    let rejects = files.filter(|name| name.to_str().unwrap().contains("rejects"));
    assert_eq!(rejects.count(), 0);
}

#[test]
fn a_table_and_another_tenant_get_the_same_users() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    for (name, team) in [("ada", "core"), ("bob", "core"), ("cleo", "web")] {
        let identities = [format!("email:{name}@example.com"), format!("handle:{name}")];
        let [email, handle] = identities.each_ref().map(String::as_str);
        let attribute = format!("team={team}");
        let create = ["user", "create", "--identity", email, "--identity", handle];
        let create = [&create[..], &["--name", name, "--attribute", &attribute]].concat();
        let output = server.run(&create);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let path = folder.path().join("core.csv").to_str().unwrap().to_owned();
    let columns = ["--columns", "display_name,email,handle,attributes.team"];
    let filter = ["--filter", "attributes.team = \"core\""];
    let export = [&["export", "--output", &path][..], &columns, &filter].concat();
    let output = server.run(&export);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);

    assert_eq!(stdout(&server.run(&["user", "count", "attributes.team = \"core\""])), "2\n");
    for tenant in ["one", "two"] {
        assert!(server.run(&["tenant", "set", "--tenant", tenant, "--create"]).status.success());
    }
    let output = server.run(&["import", &path, "--tenant", "one"]);
    assert!(stdout(&output).starts_with("2 imported"), "{}", stderr(&output));
    let whole = folder.path().join("all.jsonl").to_str().unwrap().to_owned();
    assert!(server.run(&["export", "--output", &whole]).status.success());
    let output = server.run(&["import", &whole, "--tenant", "two", "--any-tenant", "--new-ids"]);
    assert!(stdout(&output).starts_with("3 imported"), "{}", stderr(&output));
    for (tenant, identity) in [("one", "handle:ada"), ("two", "email:cleo@example.com")] {
        let found = server.run(&["resolve", identity, "--tenant", tenant, "--json"]);
        assert!(found.status.success(), "{tenant}: {}", stderr(&found));
    }
}

#[test]
fn people_of_one_name_are_imported_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let path = folder.path().join("names.csv").to_str().unwrap().to_owned();
    let rows = ["display_name", "Jo Smith", "Jo Smith", "Eva Lee", "Jo Smith"].join("\n");
    fs::write(&path, rows).unwrap();
    assert!(stdout(&server.run(&["import", &path])).starts_with("4 imported"));
    let again = stdout(&server.run(&["import", &path]));
    assert!(again.starts_with("0 imported, 4 there already"), "{again}");
    assert_eq!(stdout(&server.run(&["user", "count"])), "4\n");
}
