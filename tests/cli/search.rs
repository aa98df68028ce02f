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
fn a_wrong_filter_is_shown_with_a_caret() {
    let server = Server::start(&["--sample"]);
    let output = server.run(&["user", "search", "state = AWAY"]);
    assert_fails(&output, 1, &["FILTER_INVALID", "state = AWAY\n", "ACTIVE, DISABLED"]);
    assert!(stderr(&output).contains("        ^"), "{}", stderr(&output));
}
