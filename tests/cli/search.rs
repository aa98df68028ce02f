//! `polynym user search` and `polynym user list`.

use super::{assert_fails, json, stderr, stdout};
use crate::server::Server;

#[test]
fn users_are_searched_and_listed() {
    let server = Server::start(&["--sample"]);
    for (name, team) in [("Zoe", "x"), ("Yann", "x"), ("Xu", "y")] {
        let team = format!("--attribute=hidden-team={team}");
        let output = server.run(&["user", "create", "--name", name, &team]);
        assert!(output.status.success(), "{}", stderr(&output));
    }

    let found = server.run(&["user", "search", "attributes.hidden-team = x", "--json"]);
    let mut names: Vec<_> =
        json(&found).iter().map(|user| user["displayName"].as_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["Yann", "Zoe"]);

    let ordered = ["--order-by", "display_name", "--explain"];
    let found =
        server.run(&[&["user", "search", "attributes.hidden-team:*"][..], &ordered].concat());
    let text = stdout(&found);
    assert!(text.find("Xu") < text.find("Yann") && text.find("Yann") < text.find("Zoe"), "{text}");
    assert!(text.contains("display_name in (-, -)") && text.contains("users read"), "{text}");
    assert_eq!(stderr(&found), "");
}

#[test]
fn a_list_continues_from_its_token() {
    let server = Server::start(&["--sample"]);
    let all = json(&server.run(&["user", "list", "--limit", "0", "--json"]));
    let first = server.run(&["user", "list", "--limit", "2", "--json"]);
    assert_eq!(json(&first), all[..2]);
    let hint = stderr(&first);
    let token = hint.trim().rsplit(' ').next().unwrap();
    let rest = server.run(&["user", "list", "--limit", "0", "--json", "--page-token", token]);
    assert_eq!(json(&rest), all[2..]);
}

#[test]
fn no_match_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = Server::start(&["--store", &store]);
    let output = server.run(&["user", "create", "--name", "María", "--attribute=Ort=Kiel"]);
    assert!(output.status.success(), "{}", stderr(&output));
    for filter in ["attributes.ort = Kiel", "display_name = maria"] {
        let found = server.run(&["user", "search", filter]);
        let counted = server.run(&["user", "count", filter]);
        assert!(found.status.success() && stdout(&found).is_empty());
        assert_eq!((stderr(&found), stdout(&counted)), (stderr(&counted), "0\n".to_owned()));
        assert!(stderr(&found).starts_with("no user matches: no user has "), "{}", stderr(&found));
    }
    let found = server.run(&["user", "search", "attributes.ort:*"]);
    assert!(stderr(&found).contains("there is attributes.Ort"), "{}", stderr(&found));
}

#[test]
fn people_are_found_by_what_is_typed() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = Server::start(&["--store", &store]);
    for (name, email) in [
        ("山田太郎", "email:taro@example.com"),
        ("김우진", "email:woojin@example.com"),
        ("Anne-Marie Duval", "email:anne@example.com"),
        ("Annemarie Weber", "email:weber@example.com"),
        ("Seán O’Brien", "email:sean@example.com"),
        ("علی رضایی", "email:ali@example.com"),
        ("Νίκος", "email:ΝΙΚΑΣ@firma.gr"),
        ("Jose\u{301} Silva", "email:jose@example.com"),
    ] {
        let output = server.run(&["user", "create", "--name", name, "--identity", email]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    for (filter, count) in [
        ("display_name:太郎", "1"),
        ("display_name:\"우진\"", "1"),
        ("display_name:annemarie", "2"),
        ("display_name:\"anne-marie*\"", "2"),
        ("display_name:\"o brien\"", "1"),
        ("display_name:\"o'bri*\"", "1"),
        ("display_name:\"علي رضايي\"", "1"),
        ("display_name = \"José Silva\"", "1"),
        ("identities.email = *ΑΣ@firma.gr", "1"),
        ("identities.email = ΝΙΚΑΣ*", "1"),
    ] {
        let counted = server.run(&["user", "count", filter]);
        assert_eq!(stdout(&counted).trim(), count, "{filter}: {}", stderr(&counted));
    }
}

#[test]
fn a_wrong_filter_is_shown_with_a_caret() {
    let server = Server::start(&["--sample"]);
    let output = server.run(&["user", "search", "state = AWAY"]);
    assert_fails(&output, 1, &["FILTER_INVALID", "state = AWAY\n", "ACTIVE, DISABLED"]);
    assert!(stderr(&output).contains("        ^"), "{}", stderr(&output));
}

/// A prefix is folded like stored values, whatever its case, width and punctuation.
#[test]
fn prefixes_are_folded_like_stored_identifiers() {
    let server = Server::start(&["--sample"]);
    let names =
        ["email:ΑΣΜΑ@example.com", "handle:ΑΣΜΑ", "social:GitHub/Abc", "url:https://X.com/@Asma"];
    let identities: Vec<_> = names.iter().map(|name| format!("--identity={name}")).collect();
    let mut create = vec!["user", "create", "--name", "Asma", "--identity=phone:+14155552399"];
    create.extend(identities.iter().map(String::as_str));
    let output = server.run(&create);
    assert!(output.status.success(), "{}", stderr(&output));
    for filter in [
        "identities.email = \"ΑΣ*\"",
        "identities.email = \"ΑΣΜΑ@EXAMPLE.c*\"",
        "identities.handle = \"@ΑΣ*\"",
        "identities.handle = \"ΑΣΜ*\"",
        "identities.phone = \"+1 (415) 555-239*\"",
        "identities.social = \"GITHUB/Ab*\"",
        "identities.url = \"HTTP://Twitter.com/@AS*\"",
    ] {
        let found = stdout(&server.run(&["user", "search", filter, "--json"]));
        assert!(found.contains("Asma"), "{filter}: {found}");
    }
}

/// A time has an offset in hours and minutes; other text of its look is text.
#[test]
fn times_need_an_offset() {
    let server = Server::start(&["--sample"]);
    let create = |attribute: &str| {
        server.run(&["user", "create", "--name", "Tim", "--attribute", attribute])
    };
    for time in ["2026-01-31T12:00:00", "2026-01-31T12:00:00+01", "2026-01-31", "2026-01-31 12:00Z"]
    {
        assert_fails(&create(&format!("at:time={time}")), 2, &["with Z or an offset"]);
        let filter = format!("create_time >= \"{time}\"");
        let found = server.run(&["user", "search", &filter]);
        match time {
            "2026-01-31" => assert!(found.status.success(), "a day: {}", stderr(&found)),
            _ => assert_fails(&found, 1, &["FILTER_INVALID"]),
        }
    }
    for time in ["2026-01-31T12:00:00", "2026-01-31T12:00:00+01"] {
        let as_of = ["resolve", "handle:joe", "--as-of", time];
        assert_fails(&server.run(&as_of), 2, &["write a time such as"]);
        let usage = ["usage", "--since", time];
        assert_fails(&server.run(&usage), 2, &["write a time such as"]);
    }

    let text = "at=2026-01-31T12:00:00";
    assert!(create(text).status.success());
    let found = server.run(&["user", "search", "--json", "attributes.at = 2026-01-31T12:00:00"]);
    assert_eq!(json(&found).len(), 1);
    assert!(create("on:time=2026-01-31T13:00:00+01:00").status.success());
    let found = server.run(&["user", "search", "--json", "attributes.on = 2026-01-31T12:00:00Z"]);
    assert_eq!(json(&found).len(), 1);
}

#[test]
fn users_are_found_by_what_one_knows_of_them() {
    let server = Server::start(&["--sample"]);
    let found = server.run(&["find", "Joe <joe.smith@example.com>"]);
    let text = stdout(&found);
    assert!(text.contains("Joe Smith") && text.contains("email joe.smith@example.com"), "{text}");
    assert_eq!(stderr(&found), "");

    let found = json(&server.run(&["find", "gross juergen", "--json"]));
    assert_eq!(found[0]["user"]["displayName"], "Jürgen Groß");
    assert_eq!(found[0]["reasons"][0]["way"], "FIND_WAY_NAME");

    let similar = server.run(&["find", "joe smithh"]);
    assert!(stdout(&similar).contains("Joe Smith"), "{}", stdout(&similar));
    assert_eq!(stderr(&similar), "did you mean smith?\n");

    let nobody = server.run(&["find", "zzzzzz"]);
    assert!(nobody.status.success() && stdout(&nobody).is_empty());
    let tried = "handle zzzzzz; name with zzzzzz; email starting with zzzzzz";
    assert_eq!(stderr(&nobody), format!("no user found; tried {tried}\n"));
    assert_fails(&server.run(&["find", " "]), 1, &["is empty"]);
}
