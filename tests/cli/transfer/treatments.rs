//! What an import does with lines about users who exist, and with identities of others: the same
//! from the command line and over HTTP.

use std::fs;

use serde_json::{Value, json};

use super::over_http::HttpServer;
use crate::client::one;
use crate::stdout;

/// A person; in the file of the next month with another name, address and plan.
fn person(name: &str, is_later: bool) -> Value {
    let address =
        if is_later { format!("{name}@new.example") } else { format!("{name}@x.example") };
    let identity = |kind: &str, value: &str| json!({ "identifier": { kind: value } });
    let text = |value: &str| json!({ "stringValue": value });
    let identities = json!([identity("handle", name), identity("email", &address)]);
    match is_later {
        true => json!({ "displayName": "Joey", "identities": identities,
            "attributes": { "plan": text("pro"), "city": text("Oslo") } }),
        false => json!({ "displayName": "Joe", "identities": identities,
            "attributes": { "plan": text("free"), "note": text("x") } }),
    }
}

/// The person as it is now: name, plan, whether it has a note and a city, and addresses.
fn shown(server: &HttpServer, name: &str) -> (String, String, [bool; 2], Vec<String>) {
    let user = one(&server.server, &["user", "get", &format!("handle:{name}")])["user"].clone();
    let identities = user["identities"].as_array().unwrap();
    let emails = identities.iter().filter_map(|identity| identity["identifier"]["email"].as_str());
    let emails = emails.map(|email| email.rsplit('@').next().unwrap().to_owned());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (
        text(&user["displayName"]),
        text(&user["attributes"]["plan"]["stringValue"]),
        ["note", "city"].map(|name| user["attributes"][name].is_object()),
        emails.collect(),
    )
}

#[test]
fn each_treatment_is_the_same_over_http() {
    let server = HttpServer::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.jsonl");
    let import = |line: &Value, arguments: &[&str]| {
        fs::write(&path, format!("{line}\n")).unwrap();
        let file = path.to_str().unwrap();
        let output = server.server.run(&[&["import", "--json", file], arguments].concat());
        serde_json::from_str::<Value>(&String::from_utf8_lossy(&output.stdout)).unwrap()
    };
    assert_eq!(import(&person("eve", false), &[])["created"], 1);
    let unchanged = ("Joe", "free", [true, false], &["x.example"][..]);
    let filled = ("Joe", "free", [true, true], &["x.example"][..]);
    let updated = ("Joey", "pro", [true, true], &["x.example", "new.example"][..]);
    let replaced = ("Joey", "pro", [false, true], &["new.example"][..]);
    // In the last two, the line has an address of Eve.
    for (n, (on_existing, on_conflict, expected)) in [
        ("reject", "reject", unchanged),
        ("skip", "reject", unchanged),
        ("update", "reject", updated),
        ("replace", "reject", replaced),
        ("fill", "reject", filled),
        ("update", "reject", unchanged),
        ("update", "skip-identity", updated),
    ]
    .into_iter()
    .enumerate()
    {
        let names = [format!("command{n}"), format!("http{n}")];
        for name in &names {
            assert_eq!(import(&person(name, false), &[])["created"], 1);
        }
        let [command, http] = names.each_ref().map(|name| {
            let mut line = person(name, true);
            if n >= 5 {
                let eve = json!({ "identifier": { "email": "eve@x.example" } });
                line["identities"].as_array_mut().unwrap().push(eve);
            }
            line
        });
        let conflict = ["--on-conflict", on_conflict];
        let existing = ["--on-existing", on_existing, "--match", "handle"];
        let existing = if on_existing == "reject" { &existing[..2] } else { &existing[..] };
        import(&command, &[existing, &conflict].concat());
        let conflict = on_conflict.replace('-', "_");
        let fields = "fields=display_name&fields=handle&fields=email&fields=attributes&key=handle";
        let fields = if on_existing == "reject" { "" } else { fields };
        let query = format!("on_existing={on_existing}&on_conflict={conflict}&{fields}");
        server.import(query.trim_end_matches('&'), &http.to_string());
        for name in &names {
            let (found, plan, has, emails) = shown(&server, name);
            let emails: Vec<_> = emails.iter().map(String::as_str).collect();
            let what = format!("{on_existing}, {on_conflict} of {name}");
            assert_eq!((&*found, &*plan, has, &*emails), expected, "{what}");
        }
    }
    let eve = stdout(&server.server.run(&["resolve", "email:eve@x.example", "--json"]));
    assert!(eve.contains("\"displayName\":\"Joe\""), "{eve}");
}
