//! Commands that call a server.

use serde_json::{Value, json as value};

use super::{assert_fails, json, stderr, stdout};
use crate::server::Server;

const JOE: [&str; 5] = [
    "email:Joe.Smith@Example.com",
    "handle:@joe",
    "phone/US:(415) 555-2671",
    "social:GitHub/583231",
    "url:http://www.linkedin.com/in/joe.e.smith/?trk=x",
];

pub fn sample() -> Server {
    Server::start(&["--sample"])
}

/// Runs a command with `--json` and returns its only object.
pub fn one(server: &Server, arguments: &[&str]) -> Value {
    let mut objects = json(&server.run(&[arguments, &["--json"]].concat()));
    assert_eq!(objects.len(), 1);
    objects.remove(0)
}

/// Returns the user in the only object that a command prints.
pub fn user(server: &Server, arguments: &[&str]) -> Value {
    one(server, arguments)["user"].clone()
}

pub fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object[key].as_str().unwrap_or_else(|| panic!("no {key} in {object}"))
}

#[test]
fn every_kind_of_identifier_resolves() {
    let server = sample();
    let found = json(&server.run(&[&["resolve", "--json"], &JOE[..]].concat()));
    assert_eq!(found.len(), 5);
    for (typed, found) in JOE.iter().zip(&found) {
        assert_eq!(text(&found["user"], "displayName"), "Joe Smith");
        assert_eq!(*found, one(&server, &["resolve", typed]));
    }
    assert_eq!(found[0]["identity"]["identifier"], value!({ "email": "joe.smith@example.com" }));
    assert_eq!(
        found[2]["identity"]["identifier"],
        value!({ "phone": { "number": "+14155552671" } })
    );

    let table = stdout(&server.run(&["resolve", "handle:joe"]));
    assert!(table.contains("Joe Smith") && table.contains("social:github/583231"), "{table}");
}

#[test]
fn sample_users_are_deterministic() {
    let show = |server: Server| json(&server.run(&[&["resolve", "--json"], &JOE[..]].concat()));
    assert_eq!(show(sample()), show(sample()));
}

#[test]
fn unresolved_identifiers_are_reported_on_standard_error() {
    let server = sample();
    let output = server.run(&["resolve", "--json", "handle:nobody"]);
    assert_fails(&output, 1, &["handle:nobody: nobody owns this identifier"]);
    let line: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((text(&line, "asked"), &line["error"]["code"]), ("handle:nobody", &value!(5)));
    assert_eq!(stderr(&output).lines().count(), 1);

    let output = server.run(&["resolve", "handle:joe", "handle:nobody", "email:x"]);
    assert_fails(&output, 1, &["handle:nobody: ", "email:x: "]);
    assert!(stdout(&output).contains("Joe Smith"));
    let output = server.run(&["resolve", "--json", "handle:nobody", "handle:joe"]);
    let lines: Vec<Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (text(&lines[0], "asked"), &lines[0]["error"]["code"]),
        ("handle:nobody", &value!(5))
    );
    assert_eq!(text(&lines[1]["user"], "displayName"), "Joe Smith");
}

#[test]
fn a_user_is_created_shown_and_changed() {
    let server = sample();
    let create = [
        "user",
        "create",
        "--name",
        "Ada",
        "--identity",
        "email:Ada@example.com",
        "--identity",
        "handle:ada",
    ];
    let typed =
        ["--attribute", "level:int=3", "--attribute", "tags:list=a,b", "--attribute", "team=core"];
    let ada = user(&server, &[&create[..], &typed].concat());
    assert_eq!(ada["attributes"]["level"], value!({ "intValue": "3" }));
    assert_eq!(ada["attributes"]["tags"], value!({ "listValue": { "values": ["a", "b"] } }));

    let id = text(&ada, "userId");
    assert_eq!(one(&server, &["user", "get", id]), value!({ "user": ada }));
    let table = stdout(&server.run(&["user", "get", id]));
    assert!(
        ["Ada@example.com", "email:ada@example.com", "a, b", "active"]
            .iter()
            .all(|p| table.contains(p)),
        "{table}"
    );

    let change = ["--name", "Ada L.", "--remove-attribute", "team", "--attribute", "level:int=4"];
    let update = [&["user", "update", id, "--etag", text(&ada, "etag")], &change[..]].concat();
    let changed = user(&server, &update);
    assert_eq!(
        (text(&changed, "displayName"), &changed["attributes"]["team"]),
        ("Ada L.", &Value::Null)
    );
    assert_eq!(changed["attributes"]["level"], value!({ "intValue": "4" }));
    assert_eq!(changed["identities"], ada["identities"]);
    assert_fails(&server.run(&update), 1, &["ETAG_MISMATCH (ABORTED)", "polynym user get"]);
}

#[test]
fn identities_are_linked_verified_and_unlinked() {
    let server = sample();
    let id = &text(&user(&server, &["user", "create"]), "userId").to_owned();
    let identities = |user: &Value| {
        let all = user["identities"].as_array().cloned().unwrap_or_default();
        all.iter().map(|i| i["identifier"].to_string()).collect::<Vec<_>>().join(" ")
    };
    let changed = user(&server, &["identity", "link", id, "handle:ada", "--verified"]);
    assert!(changed["identities"][0]["verifyTime"].is_string());

    let changed = user(&server, &["identity", "replace", id, "handle:ada", "handle:lovelace"]);
    assert_eq!(identities(&changed), r#"{"handle":"lovelace"}"#);
    let changed = user(&server, &["identity", "verify", id, "handle:lovelace", "--by", "a friend"]);
    assert_eq!(text(&changed["identities"][0], "verifiedBy"), "a friend");

    let changed = user(&server, &["identity", "verify", id, "handle:lovelace", "--revoke"]);
    assert!(changed["identities"][0]["verifyTime"].is_null());
    let refusal_reason = |identifier: &str| {
        let output = server.run(&["identity", "check", "--json", identifier]);
        let checked: Value = serde_json::from_str(&stdout(&output)).unwrap();
        text(&checked, "reason").to_owned()
    };
    assert_eq!(refusal_reason("handle:ada"), "IDENTITY_HELD");
    assert_eq!(
        one(&server, &["identity", "release", "handle:ada"])["identifier"],
        value!({ "handle": "ada" })
    );
    assert_eq!(one(&server, &["identity", "check", "handle:ada"])["available"], true);
    assert_eq!(refusal_reason("handle:lovelace"), "IDENTITY_TAKEN");

    let changed = user(&server, &["identity", "unlink", id, "handle:lovelace"]);
    assert_eq!(identities(&changed), "");
    assert_fails(
        &server.run(&["identity", "unlink", id, "handle:ada"]),
        1,
        &["IDENTITY_NOT_FOUND (NOT_FOUND)"],
    );
}

#[test]
fn normalization_is_shown() {
    let server = sample();
    let typed = "email:Joe.Smith@Exämple.COM";
    let answer = one(&server, &["identity", "normalize", typed]);
    assert_eq!(answer["identifier"], value!({ "email": "joe.smith@xn--exmple-cua.com" }));
    let table = stdout(&server.run(&["identity", "normalize", typed]));
    assert!(
        table.contains("email:joe.smith@xn--exmple-cua.com") && table.contains("rules version"),
        "{table}"
    );
}

#[test]
fn an_error_names_its_reason_field_and_remedy() {
    let server = sample();
    let output =
        server.run(&["user", "create", "--identity", "handle:ada", "--identity", "handle:joe"]);
    let parts = [
        "error: ",
        "IDENTITY_TAKEN (ALREADY_EXISTS)",
        "field: user.identities[1].identifier",
        "what to do: ",
    ];
    assert_fails(&output, 1, &parts);

    let output = server.run(&["identity", "check", "email:a@b@c"]);
    assert_fails(&output, 1, &["IDENTIFIER_INVALID (INVALID_ARGUMENT)", "field: identifier"]);
    let unknown_id = "20be0ffc-314a-bd53-7a50-013a65ca76d2";
    assert_fails(&server.run(&["user", "get", unknown_id]), 1, &["USER_NOT_FOUND"]);
    assert_fails(
        &server.run(&["user", "get", "--tenant", "elsewhere", unknown_id]),
        1,
        &["TENANT_NOT_FOUND"],
    );
}

#[test]
fn json_errors_go_to_standard_output() {
    let server = sample();
    let id = "20be0ffc-314a-bd53-7a50-013a65ca76d2";
    let commands: [(&[&str], &str); 3] = [
        (&["user", "get", id], "USER_NOT_FOUND"),
        (&["identity", "link", id, "handle:ada"], "USER_NOT_FOUND"),
        (&["identity", "check", "email:a@b@c"], "IDENTIFIER_INVALID"),
    ];
    for (command, reason) in commands {
        let output = server.run(&[command, &["--json"]].concat());
        assert_fails(&output, 1, &[reason]);
        let line: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(line["error"]["details"][0]["reason"], reason, "{line}");
        assert_eq!(stdout(&server.run(command)), "");
    }
}

#[test]
fn a_call_with_a_request_id_takes_effect_once() {
    let server = sample();
    let id = "6f1c1c43-4c6a-4f2c-9b54-6a8f7d1f2d11";
    let create = ["user", "create", "--name", "Once", "--request-id", id];
    let first = one(&server, &create);
    assert_eq!(one(&server, &create), first);
    let other = ["user", "create", "--name", "Twice", "--request-id", id];
    assert_fails(&server.run(&other), 1, &["REQUEST_ID_REUSED", "field: request_id"]);
}
