//! Bad input: each fault is a reject with its line, and all other lines are imported.

use std::fs;
use std::path::Path;

use super::{embedded, export, import, import_file, names_are_limited, sample};
use crate::assert_fails;
use crate::stderr;
use crate::stdout;

#[test]
fn bad_lines_are_rejected_and_others_imported() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let path_buf = folder.path().join("users.jsonl");
    let path = path_buf.to_str().unwrap();
    let owner = ["user", "create", "--identity", "email:zoe@example.com"];
    assert!(server.run(&owner).status.success());
    let many: Vec<_> =
        (0..1_000).map(|n| format!(r#"{{"identifier":{{"email":"u{n}@example.com"}}}}"#)).collect();
    let lines: [Vec<u8>; 11] = [
        br#"{"displayName":"Ada","identities":[{"identifier":{"email":"ada@example.com"}}]}"#
            .into(),
        br#"{"displayName":"#.into(),
        [b"\"", "x".repeat(5 << 20).as_bytes(), b"\""].concat(),
        b"{\"displayName\":\"\xff\"}".into(),
        br#"{"fame":1}"#.into(),
        format!(r#"{{"identities":[{}]}}"#, many.join(",")).into(),
        br#"{"displayName":"Bob","identities":[{"identifier":{"email":"ADA@example.com"}}]}"#
            .into(),
        br#"{"userId":"x"}"#.into(),
        br#"{"displayName":"Eve","identities":[{"identifier":{"handle":"eve"}}]}"#.into(),
        [
            br#"{"identities":[{"identifier":{"handle":"z"}},"#.as_slice(),
            br#"{"identifier":{"email":"Zoe@example.com"}}]}"#,
        ]
        .concat(),
        br#"{"displayName":"Cut","identities":[{"identif"#.into(),
    ];
    fs::write(path, lines.join(&b'\n')).unwrap();

    let (text, mut rejects) = import_file(&server, path, &[]);
    assert!(text.starts_with("2 imported, 0 there already, 9 lines rejected"), "{text}");
    rejects.sort_by_key(|reject| reject["line"].as_i64());
    let reasons: Vec<_> = rejects
        .iter()
        .map(|reject| (reject["line"].as_i64().unwrap(), reject["reason"].as_str().unwrap()))
        .collect();
    let invalid = "LINE_INVALID";
    let wanted = [
        (2, invalid),
        (3, invalid),
        (4, invalid),
        (5, invalid),
        (6, "LIMIT_EXCEEDED"),
        (7, "IDENTITY_TAKEN"),
        (8, "USER_ID_INVALID"),
        (10, "IDENTITY_TAKEN"),
        (11, invalid),
    ];
    assert_eq!(reasons, wanted);
    assert_eq!(rejects[5]["identity_index"], 0);
    assert_eq!(rejects[5]["original"]["displayName"], "Bob");
    assert_eq!(rejects[7]["identity_index"], 1);

    // A corrected reject is imported; the others are rejected again.
    let rejected = format!("{path}.rejects");
    let mended = fs::read_to_string(&rejected).unwrap().replace("ADA@", "bob@");
    fs::write(&rejected, mended).unwrap();
    let (text, _) = import_file(&server, &rejected, &[]);
    assert!(text.starts_with("1 imported, 0 there already, 8 lines rejected"), "{text}");
    assert_eq!(export(&server, &[]).len(), 4);
}

#[test]
fn empty_files_and_wrong_mappings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    assert_fails(&import(&server, folder.path(), &[], b""), 2, &["the file is empty"]);
    let csv =
        b"E-Mail,Login,Team,Tel\na@example.com,ada,search,(415) 555-2671\nb@example.com\n,,,\n";
    let run = |map: &str| {
        import(&server, folder.path(), &["--format", "csv", "--region", "US", "--map", map], csv)
    };
    assert_fails(&run("email=Mail"), 2, &["no such column", "E-Mail, Login"]);
    assert_fails(&run("mail=E-Mail"), 2, &["no such field"]);

    let output = run("email=E-Mail,handle=Login,attributes.team=Team,phone=Tel");
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(text.starts_with("1 imported, 0 there already, 1 lines rejected"), "{text}");
    let ada = server.run(&["resolve", "phone:+14155552671", "--json"]);
    assert!(stdout(&ada).contains("\"stringValue\":\"search\""), "{}", stdout(&ada));
}

#[test]
fn a_dry_run_checks_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let users = sample(&["--users", "200", "--dirty", "20"]);
    let dry = import(&server, folder.path(), &["--dry-run"], &users);
    assert!(stdout(&dry).contains("would be imported"), "{}", stdout(&dry));
    assert!(export(&server, &[]).is_empty());
}

#[cfg(unix)]
#[test]
fn rejects_can_go_to_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let (link, target) = (folder.path().join("link"), folder.path().join("target"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let arguments = ["--rejects", link.to_str().unwrap()];
    import(&server, folder.path(), &arguments, b"{\"displayName\":\"Ada\"}\n");
    assert!(link.is_symlink() && !target.exists(), "nothing was rejected");
    import(&server, folder.path(), &arguments, b"{}x\n");
    assert!(link.is_symlink() && fs::read_to_string(&target).unwrap().contains("LINE_INVALID"));
}

#[test]
fn dirty_users_are_imported_without_bad_identities() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let users = sample(&["--users", "500", "--dirty", "30", "--attributes", "20"]);
    let arguments = ["--on-conflict", "skip-identity", "--ids", "sequential"];
    let output = import(&server, folder.path(), &arguments, &users);
    let text = stdout(&output);
    assert!(text.contains("identities passed over"), "{text}");
    let imported = export(&server, &[]);
    import(&server, folder.path(), &arguments, &users);
    assert_eq!(export(&server, &[]), imported, "the same file again");
}

#[test]
fn a_name_beyond_the_limit_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    names_are_limited(&server, folder.path().join("names.jsonl").to_str().unwrap());
}

#[test]
fn bad_rows_are_rejected_and_others_imported() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let owner = ["user", "create", "--identity", "email:ada@example.com"];
    assert!(server.run(&owner).status.success());
    let path_buf = folder.path().join("users.csv");
    let path = path_buf.to_str().unwrap();
    let rows: [Vec<u8>; 9] = [
        b"Mail,Level,Unknown".into(),
        b"one@example.com,1,x".into(),
        b"\xff@example.com,2,x".into(),
        [b"big@example.com,3,", "x".repeat(5 << 20).as_bytes()].concat(),
        b"two@example.com,many,x".into(),
        b"ADA@example.com,5,x".into(),
        b"three@example.com,6,x,another".into(),
        b"four@example.com,7,\"a quote".into(),
        b"that is never closed".into(),
    ];
    fs::write(path, rows.join(&b'\n')).unwrap();
    let map = ["--map", "email=Mail,attributes.level:int=Level"];
    let (text, mut rejects) = import_file(&server, path, &map);
    rejects.sort_by_key(|reject| reject["line"].as_i64());
    let reasons: Vec<_> =
        rejects.iter().map(|reject| (reject["line"].as_i64(), reject["reason"].as_str())).collect();
    let invalid = Some("LINE_INVALID");
    let lines = [3, 4, 5, 6, 7, 8];
    let wanted = lines.map(|line| match line {
        6 => (Some(line), Some("IDENTITY_TAKEN")),
        _ => (Some(line), invalid),
    });
    assert_eq!(reasons, wanted, "{text}");
    assert!(rejects[5]["message"].as_str().unwrap().contains("quote"), "{}", rejects[5]);
    assert!(text.starts_with("1 imported"), "{text}");
    assert_eq!(export(&server, &[]).len(), 2);
}

#[test]
fn rows_are_counted_by_any_line_break() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let path_buf = folder.path().join("users.csv");
    let path = path_buf.to_str().unwrap();
    let map = ["--map", "email=Mail,attributes.note=Name"];
    let files = [
        "Mail,Name\nana@example.com,Ana\r\n\r\nwrong,Bo\rcleo@example.com,\"C\nleo\"\r\nbad,D",
        "Mail,Name\rana@example.com,Ana\r\rwrong,Bo\rcleo@example.com,\"C\nleo\"\rbad,D\r",
    ];
    let windows = files[1].replace('\r', "\r\n");
    let files = [files[0], files[1], &windows];
    for (n, text) in files.iter().enumerate() {
        fs::write(path, text).unwrap();
        let (printed, mut rejects) = import_file(&server, path, &map);
        rejects.sort_by_key(|reject| reject["line"].as_i64());
        let lines: Vec<_> = rejects.iter().map(|reject| reject["line"].as_i64()).collect();
        assert_eq!(lines, [Some(4), Some(7)], "{text:?}: {printed}");
        let imported = if n == 0 { "2 imported" } else { "0 imported, 2 there already" };
        assert!(printed.starts_with(imported), "{text:?}: {printed}");
    }
}

#[test]
fn marks_of_direction_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let path_buf = folder.path().join("users.jsonl");
    let path = path_buf.to_str().unwrap();
    let line = |more: &str| {
        format!("{{\"attributes\":{{\"note\":{{\"stringValue\":\"a\u{202e}b\"}}}}{more}}}\n")
    };
    let lines = line("") + &line(",\"fame\":1");
    fs::write(path, lines).unwrap();
    let (text, rejects) = import_file(&server, path, &[]);
    assert!(text.starts_with("1 imported"), "{text}");
    let note = &rejects[0]["original"]["attributes"]["note"]["stringValue"];
    assert_eq!(note, "a\u{202e}b");
    let texts =
        [export(&server, &[]).join(""), fs::read_to_string(format!("{path}.rejects")).unwrap()];
    for text in texts {
        assert!(text.contains("\\u202e") && !text.contains('\u{202e}'), "{text}");
    }
}

#[test]
fn no_file_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (users, rejects, other) = (at("users.jsonl"), at("users.jsonl.rejects"), at("other"));
    fs::write(&users, "{\"displayName\":\"Ada\"}\n").unwrap();
    fs::write(&other, "mine").unwrap();
    let refused = server.run(&["import", &users, "--rejects", &users]);
    assert_fails(&refused, 2, &["the file to import"]);
    let imported = server.run(&["import", &users, "--rejects", &other]);
    assert!(imported.status.success(), "{}", stderr(&imported));
    assert_eq!(fs::read_to_string(&other).unwrap(), "mine");

    // Earlier rejects remain while there is nothing to import, and are removed once all is
    // imported.
    fs::write(&rejects, "half mended").unwrap();
    fs::rename(&users, at("away")).unwrap();
    assert!(!server.run(&["import", &users]).status.success());
    assert_eq!(fs::read_to_string(&rejects).unwrap(), "half mended");
    fs::rename(at("away"), &users).unwrap();
    assert!(server.run(&["import", &users]).status.success());
    assert!(!Path::new(&rejects).exists());

    // A failed export keeps the last one.
    let exported = at("export.jsonl");
    assert!(server.run(&["export", "--output", &exported]).status.success());
    let whole = fs::read_to_string(&exported).unwrap();
    assert!(whole.contains("Ada"));
    let failed = server.run(&["export", "--output", &exported, "--tenant", "nobody"]);
    assert!(!failed.status.success());
    assert_eq!(fs::read_to_string(&exported).unwrap(), whole);
}

#[test]
fn empty_rows_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let run = |csv: &[u8]| {
        import(&server, folder.path(), &["--format", "csv", "--map", "email=Mail"], csv)
    };
    let output = run(b"Mail,Team\n,\n\"\",\"\"\nada@example.com,search\n,,\n,,x\n");
    assert_eq!(output.status.code(), Some(1), "the last row has three cells");
    assert!(stdout(&output).starts_with("1 imported, 0 there already, 1 lines rejected"));
    assert_eq!(export(&server, &[]).len(), 1);
    // An unclosed quote swallows rows: none of them counts as imported.
    let names = ["bob", "eve", "mia", "zoe"].iter().zip(["\"a", "b", "\"c", "d"]);
    let rows = names.map(|(name, team)| format!("{name}@example.com,{team}\n"));
    let rows = format!("Mail,Team\n{}", rows.collect::<String>());
    let output = run(rows.as_bytes());
    assert!(stdout(&output).starts_with("1 imported, 0 there already, 1 lines rejected"));
    assert_eq!(export(&server, &[]).len(), 2);
    assert_fails(&run(b"Mail,\"Team"), 1, &["inside a quoted cell of its first row"]);
    assert_fails(&run(b""), 1, &["the file is empty"]);
}

/// A file has no histories, so an import has no former owners.
#[test]
fn an_import_has_no_former_owners() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (embedded(folder.path(), "old"), embedded(folder.path(), "new"));
    assert!(old.run(&["user", "create", "--identity", "email:ada@example.com"]).status.success());
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let path_buf = folder.path().join("users.jsonl");
    let file = path_buf.to_str().unwrap();
    assert!(old.run(&["export", "--output", file]).status.success());
    assert!(new.run(&["import", file]).status.success());
    let before = ["resolve", "email:ada@example.com", "--as-of", "1d"];
    assert_fails(&new.run(&before), 1, &["use a later time"]);
    assert!(new.run(&["resolve", "email:ada@example.com"]).status.success());
}

#[test]
fn a_line_with_a_key_twice_is_rejected_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let path = folder.path().join("users.jsonl");
    let lines = [
        r#"{"displayName":"Ann","displayName":"Eve"}"#,
        r#"{"displayName":"Ann","display_name":"Eve"}"#,
        r#"{"attributes":{"a":{"intValue":"1"},"a":{"intValue":"2"}}}"#,
    ];
    fs::write(&path, lines.join("\n")).unwrap();
    let mut path = path.to_str().unwrap().to_owned();
    for _ in 0..2 {
        let (text, rejects) = import_file(&server, &path, &[]);
        assert!(text.starts_with("0 imported, 0 there already, 3 lines rejected"), "{text}");
        assert!(rejects.iter().all(|reject| {
            reject["reason"] == "LINE_INVALID"
                && reject["message"].as_str().unwrap().contains("twice")
        }));
        path.push_str(".rejects");
    }
    assert!(export(&server, &[]).is_empty());
}

/// Times without an offset are rejected in every form of input.
#[test]
fn times_without_an_offset_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let csv = folder.path().join("users.csv").to_str().unwrap().to_owned();
    fs::write(
        &csv,
        "email,since\nada@example.com,2026-01-31T12:00:00\nbob@example.com,2026-01-31T12:00:00Z\n",
    )
    .unwrap();
    let map = ["--map", "email=email,attributes.since:time=since"];
    let (text, rejects) = import_file(&server, &csv, &map);
    assert!(text.starts_with("1 imported, 0 there already, 1 lines rejected"), "{text}");
    assert_eq!(rejects[0]["line"], 2);

    let jsonl = folder.path().join("users.jsonl").to_str().unwrap().to_owned();
    let line = |time: &str, attribute: &str| {
        let attributes = format!(r#"{{"a":{{"timeValue":"{attribute}"}}}}"#);
        format!(r#"{{"createTime":"{time}","attributes":{attributes}}}"#)
    };
    let (good, bad) = ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00");
    fs::write(&jsonl, [line(good, good), line(bad, good), line(good, bad)].join("\n")).unwrap();
    let (text, rejects) = import_file(&server, &jsonl, &[]);
    assert!(text.starts_with("1 imported, 0 there already, 2 lines rejected"), "{text}");
    let message = rejects[0]["message"].as_str().unwrap();
    assert!(message.contains("Z or an offset"), "{message}");
}
