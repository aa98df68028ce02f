//! Files that are malformed, huge, deeply nested or cut off: no panic, no endless loop, bounded
//! memory, and errors with a position.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use polynym_exports::{ExportFormat, Notes, ReadOptions, guess, open};
use proptest::prelude::*;

const FILES: [(ExportFormat, &[u8]); 8] = [
    (ExportFormat::Keycloak, include_bytes!("../../../tests/data/exports/keycloak.json")),
    (ExportFormat::Firebase, include_bytes!("../../../tests/data/exports/firebase.json")),
    (ExportFormat::Auth0, include_bytes!("../../../tests/data/exports/auth0.json")),
    (ExportFormat::Kratos, include_bytes!("../../../tests/data/exports/kratos.json")),
    (ExportFormat::Okta, include_bytes!("../../../tests/data/exports/okta.csv")),
    (ExportFormat::Entra, include_bytes!("../../../tests/data/exports/entra.csv")),
    (ExportFormat::Ldif, include_bytes!("../../../tests/data/exports/people.ldif")),
    (ExportFormat::Vcard, include_bytes!("../../../tests/data/exports/cards.vcf")),
];

/// What became of a file.
#[derive(Debug, Default)]
struct Outcome {
    users: usize,
    /// The line and the reason of each user that could not be read.
    rejects: Vec<(i64, String)>,
    /// Why the rest could not be read.
    error: Option<String>,
    notes: Notes,
}

/// Reads a whole file.
fn read(format: ExportFormat, text: impl AsRef<[u8]>) -> Outcome {
    let bytes = text.as_ref();
    let mut outcome = Outcome::default();
    let mut users = match open(format, bytes, &ReadOptions::default()) {
        Ok(users) => users,
        Err(error) => return Outcome { error: Some(error), ..outcome },
    };
    for n in 0.. {
        assert!(n <= bytes.len(), "{format:?}: more users than bytes");
        match users.next_user() {
            Ok(Some(entry)) => match entry.user {
                Ok(_) => outcome.users += 1,
                Err(reason) => outcome.rejects.push((entry.line, reason)),
            },
            Ok(None) => break,
            Err(error) => {
                outcome.error = Some(error);
                break;
            }
        }
    }
    outcome.notes = users.notes().clone();
    outcome
}

/// A line of LDIF or of a card, or a part of one.
const LINE: &str =
    "(dn|uid|BEGIN|END|VERSION|TEL)?(;a=\"?)?(::|:<|:)?(VCARD|3.0|YQ==|é)?(\r?\n)?[ \t]?";

proptest! {
    #[test]
    fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        guess(&bytes);
        FILES.iter().for_each(|(format, _)| drop(read(*format, &bytes)));
    }

    #[test]
    fn any_signs_of_json_end(text in r#"[\[\]{}",:\\ \n1ausersidtraits]{0,300}"#) {
        guess(text.as_bytes());
        FILES.iter().take(4).for_each(|(format, _)| drop(read(*format, &text)));
    }

    #[test]
    fn any_lines_end(lines in proptest::collection::vec(LINE, 0..12)) {
        let text = lines.concat();
        guess(text.as_bytes());
        FILES.iter().skip(4).for_each(|(format, _)| drop(read(*format, &text)));
    }

    /// A file with a changed, a lost or a doubled part.
    #[test]
    fn damaged_files_end(
        n in 0..FILES.len(),
        from in 0_usize..4_000,
        length in 0_usize..200,
        bytes in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let (format, file) = FILES[n];
        let from = from % file.len();
        let to = (from + length).min(file.len());
        let damaged = [&file[..from], &bytes, &file[to..]].concat();
        guess(&damaged);
        let (found, whole) = (read(format, &damaged), read(format, file));
        // What is put in may be a few users, not many.
        prop_assert!(found.users + found.rejects.len() <= whole.users + bytes.len() + 1);
    }
}

#[test]
fn files_that_were_cut_off_say_so() {
    for (format, file) in FILES {
        let file = file.trim_ascii_end();
        let whole = read(format, file);
        assert!(whole.error.is_none() && whole.rejects.is_empty(), "{whole:?}");
        // Between two users of the others nobody sees it.
        let is_list = [ExportFormat::Keycloak, ExportFormat::Firebase, ExportFormat::Kratos]
            .contains(&format);
        for end in (1..file.len() - 2).step_by(7) {
            let cut = read(format, &file[..end]);
            let is_told = cut.error.is_some() || !cut.rejects.is_empty();
            assert!(is_told || !is_list, "{format:?} {end}");
            assert!(cut.users <= whole.users, "{format:?} {end}");
        }
    }
    let cut = read(ExportFormat::Keycloak, "{\n\"users\": [\n{\"id\": \"a\"");
    assert!(cut.error.unwrap().starts_with("the file ends in line 3, before its end"));
    let cut = read(ExportFormat::Vcard, "BEGIN:VCARD\nVERSION:4.0\nFN:A");
    assert!(cut.rejects[0].1.contains("no END:VCARD"));
}

#[test]
fn wrong_users_do_not_hide_others() {
    let text = r#"[{"id": "a", "traits": {}},
{"id": 1},
7,
{"id": "b", "id": "c"},
{"id": "d", "traits": {}}]"#;
    let found = read(ExportFormat::Kratos, text);
    assert_eq!((found.users, found.error), (2, None));
    let lines: Vec<_> = found.rejects.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 3, 4]);
    assert!(found.rejects[2].1.contains("\"id\" occurs twice"), "{:?}", found.rejects);
    let found = read(ExportFormat::Ldif, "dn: uid=a\nuid: a\n\nuid b\n\ndn: uid=c\nuid: c\n");
    assert_eq!((found.users, found.rejects[0].0), (2, 4));
    assert!(found.rejects[0].1.contains("line 4: a line of LDIF is NAME: VALUE"));
    let found = read(ExportFormat::Auth0, "{\"user_id\":\n{\"user_id\":\"auth0|1\"}\n");
    assert_eq!((found.users, found.rejects[0].0), (1, 1));
    let old = "BEGIN:VCARD\nVERSION:2.1\nN;CHARSET=UTF-8:Lee;Ann\nEND:VCARD\n";
    assert!(read(ExportFormat::Vcard, old).rejects[0].1.contains("vCard 2.1 is not read"));
}

#[test]
fn errors_have_a_position_and_advice() {
    for (format, text, wanted) in [
        (ExportFormat::Keycloak, "", "line 1: a list or an object of JSON is missing"),
        (ExportFormat::Keycloak, "{\"realm\": \"a\"}", "--users realm_file"),
        (ExportFormat::Keycloak, "{\"users\": [{}\n{}]}", "line 2: a comma or ] is missing"),
        (
            ExportFormat::Keycloak,
            "{\"users\": []}\nx",
            "line 2: a list or an object of JSON is missing",
        ),
        (ExportFormat::Firebase, "{\"users\" []}", "line 1: a colon is missing"),
        (ExportFormat::Vcard, "\nhello", "line 2: a card begins with BEGIN:VCARD"),
        (ExportFormat::Entra, "mail,name\na@example.com,A\n", "a column userPrincipalName"),
        (ExportFormat::Auth0, "\u{1f}\u{8b}", "not JSON, counted from"),
    ] {
        let found = read(format, text);
        let reject = found.rejects.first().map(|(_, reason)| reason.clone());
        let error = found.error.or(reject).unwrap();
        assert!(error.contains(wanted), "{format:?} {text}: {error}");
    }
    let packed = read(ExportFormat::Auth0, b"\x1f\x8b\x08\0\0");
    assert!(packed.error.unwrap().contains("gunzip -c FILE | polynym import - --format auth0"));
}

#[test]
fn depth_and_size_of_a_user_are_bounded() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let text = format!("[{{\"id\":\"a\",\"traits\":{deep}}},{{\"id\":\"b\",\"traits\":{{}}}}]");
    let found = read(ExportFormat::Kratos, text);
    assert_eq!((found.users, found.rejects.len()), (1, 1));
    let long = "x".repeat(5 << 20);
    let text = format!("[{{\"id\":\"{long}\"}},{{\"id\":\"b\",\"traits\":{{}}}}]");
    let found = read(ExportFormat::Kratos, text);
    assert_eq!(found.users, 1);
    assert!(found.rejects[0].1.contains("at most 4 MiB"), "{:?}", found.rejects[0].1);
    let objects = "{\"a\":".repeat(50) + "1" + &"}".repeat(50);
    let text = format!("[{{\"id\":\"a\",\"traits\":{objects}}}]");
    let found = read(ExportFormat::Kratos, text);
    assert_eq!((found.users, found.notes.left_out.iter().count()), (1, 1));
    let text = format!("dn: uid=a\nuid: a\njpegPhoto:: {long}\n\ndn: uid=b\nuid: b\n");
    let found = read(ExportFormat::Ldif, text);
    assert_eq!((found.users, found.rejects.len()), (1, 1));
    assert!(found.rejects[0].1.contains("line 3 is too long"), "{:?}", found.rejects[0].1);
    let folded = format!("{}\n ", "x".repeat(1 << 20)).repeat(5);
    let found = read(ExportFormat::Ldif, format!("dn: uid=a\nuid: a\njpegPhoto:: {folded}\n"));
    assert_eq!((found.users, found.notes.left_out.get("jpegPhoto")), (1, 1));
}
