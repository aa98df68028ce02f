//! Usability of the commands: users named by identifiers, irreversible commands, and the output in
//! tables and JSON.

use super::client::{one, sample, text, user};
use super::{assert_fails, stdout};
use crate::server::{Server, polynym};

fn id_of(server: &Server, identifier: &str) -> String {
    text(&user(server, &["user", "get", identifier]), "userId").to_owned()
}

#[test]
fn an_identifier_is_accepted_wherever_a_user_id_is() {
    let server = sample();
    let joe = &id_of(&server, "handle:joe");
    let grace = &id_of(&server, "handle:grace");
    for (arguments, id) in [
        (&["user", "update", "handle:joe", "--name", "Joseph"][..], joe),
        (&["user", "disable", "handle:joe"], joe),
        (&["user", "enable", "handle:joe"], joe),
        (&["identity", "link", "handle:joe", "handle:joseph"], joe),
        (&["identity", "verify", "handle:joe", "handle:joseph"], joe),
        (&["identity", "replace", "handle:joe", "handle:joseph", "handle:joey"], joe),
        (&["identity", "unlink", "handle:joe", "handle:joey"], joe),
        (
            &["identity", "move", "handle:grace", "handle:joe", "email:grace.okafor@example.com"],
            joe,
        ),
        (&["user", "merge", "handle:joe", "handle:grace"], joe),
        (&["user", "unmerge", "handle:joe", grace], grace),
        (&["user", "delete", "handle:joe"], joe),
    ] {
        assert_eq!(text(&user(&server, arguments), "userId"), id, "{arguments:?}");
    }
    assert_fails(&server.run(&["user", "disable", "handle:joe"]), 1, &["user undelete"]);
    assert_fails(&server.run(&["user", "get", "hadle:joe"]), 2, &["hadle:joe"]);
}

#[test]
fn pastes_are_resolved_as_in_the_console() {
    let server = sample();
    let joe = id_of(&server, "handle:joe");
    let resolve = |locale: &str, text: &str| {
        let mut command = polynym(&["resolve", text, "--server", &server.url]);
        command.env_remove("LC_ALL").env_remove("LC_TELEPHONE").env("LANG", locale);
        command.output().unwrap()
    };
    for text in ["(415) 555-2671", "@joe", "Joe.Smith@example.com", "linkedin.com/in/joe.e.smith"] {
        let output = resolve("en_US.UTF-8", text);
        assert!(stdout(&output).contains(&joe), "{text}: {output:?}");
    }
    assert!(stdout(&resolve("C.UTF-8", "+1 415 555 2671")).contains(&joe));
    assert_fails(&resolve("C.UTF-8", "(415) 555-2671"), 2, &["without a country", "phone/US:"]);
    assert_fails(&resolve("en_US.UTF-8", "joe"), 2, &["kind:value"]);
}

#[test]
fn a_purge_needs_confirmation() {
    let server = sample();
    let joe = &id_of(&server, "handle:joe");
    assert_fails(
        &server.run(&["user", "purge", "handle:joe"]),
        2,
        &["cannot be undone", "--dry-run", "--yes"],
    );
    assert_eq!(
        stdout(&server.run(&["user", "purge", "--dry-run", "handle:joe"])),
        format!("{joe} would be gone\n")
    );
    assert_eq!(
        stdout(&server.run(&["user", "purge", "--yes", "handle:joe"])),
        format!("{joe} is gone\n")
    );
}

#[test]
fn setting_and_removing_one_attribute_is_refused() {
    let server = sample();
    let both =
        ["user", "update", "handle:joe", "--attribute", "team=x", "--remove-attribute", "team"];
    assert_fails(&server.run(&both), 2, &["--attribute", "--remove-attribute", "team"]);
}

#[test]
fn attributes_are_listed_separately_even_when_empty() {
    let server = sample();
    let update =
        ["user", "update", "handle:joe", "--attribute", "state=disabled", "--attribute", "note="];
    let shown = stdout(&server.run(&update));
    let (fields, attributes) = shown.split_once("attribute").unwrap();
    assert_eq!(fields.matches("state").count(), 1, "{shown}");
    assert!(attributes.contains("state") && attributes.contains("note"), "{shown}");
}

#[test]
fn a_dry_run_shows_the_restored_user() {
    let server = sample();
    let grace = &id_of(&server, "handle:grace");
    user(&server, &["user", "merge", "handle:joe", "handle:grace"]);
    let shown = stdout(&server.run(&["user", "unmerge", "--dry-run", "handle:joe", grace]));
    assert!(
        shown.starts_with("The secondary would be:") && shown.contains("handle:grace"),
        "{shown}"
    );
    assert_eq!(
        text(&user(&server, &["user", "get", grace]), "userId"),
        id_of(&server, "handle:joe")
    );
}

#[test]
fn a_check_reports_taken_and_held_identifiers() {
    let server = sample();
    let taken = server.run(&["identity", "check", "--json", "handle:joe"]);
    assert_eq!(taken.status.code(), Some(1));
    let printed: serde_json::Value = serde_json::from_str(&stdout(&taken)).unwrap();
    assert_eq!(
        (&printed["available"], text(&printed, "reason")),
        (&false.into(), "IDENTITY_TAKEN")
    );

    let joe = &id_of(&server, "handle:joe");
    user(&server, &["identity", "unlink", joe, "handle:joe"]);
    let held = server.run(&["identity", "check", "handle:joe"]);
    assert_eq!(held.status.code(), Some(1));
    assert!(stdout(&held).contains("held until"), "{}", stdout(&held));

    let own = one(&server, &["identity", "check", "handle:joe", "--user", joe]);
    assert_eq!((&own["available"], text(&own, "reason")), (&true.into(), ""));
    assert!(server.run(&["identity", "check", "handle:nobody"]).status.success());
}

#[test]
fn identities_are_linked_as_verified_and_primary() {
    let server = sample();
    let by = ["--verified", "--by", "a letter"];
    let create =
        ["user", "create", "--identity", "email:b@example.com", "--primary", "email:a@example.com"];
    let created = user(&server, &[&create[..], &by].concat());
    let link = ["identity", "link", text(&created, "userId"), "email:c@example.com", "--primary"];
    let linked = user(&server, &[&link[..], &by].concat());
    let identities = linked["identities"].as_array().unwrap();
    assert!(
        identities.iter().all(|i| i["verifiedBy"] == "a letter" && i["verifyTime"].is_string()),
        "{linked}"
    );

    let primary = |user: &serde_json::Value| {
        let mut identities = user["identities"].as_array().unwrap().iter();
        identities.find(|identity| identity["primary"] == true).unwrap()["identifier"]["email"]
            .clone()
    };
    assert_eq!(
        (primary(&created), primary(&linked)),
        ("a@example.com".into(), "c@example.com".into())
    );
}

#[test]
fn control_characters_are_escaped_in_output() {
    let server = sample();
    let hidden = "a\u{200b}b\u{202e}c";
    let update = ["user", "update", "handle:joe", "--attribute", &format!("note={hidden}")];
    let shown = stdout(&server.run(&update));
    assert!(shown.contains("a\\u{200b}b\\u{202e}c") && !shown.contains('\u{200b}'), "{shown}");
    let json = stdout(&server.run(&["user", "get", "--json", "handle:joe"]));
    assert!(json.contains("a\\u200bb\\u202ec") && !json.contains('\u{202e}'), "{json}");
    let refused = ["user", "update", "handle:joe", "--attribute", "note=a\u{9b}2J"];
    assert_fails(&server.run(&refused), 1, &["ATTRIBUTE_INVALID", "control"]);
}

#[test]
fn errors_are_json_with_the_json_flag() {
    let server = sample();
    for arguments in [
        &["tenant", "get", "--json", "--tenant", "elsewhere"][..],
        &["renormalize", "--json", "--tenant", "elsewhere"],
    ] {
        let output = server.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let printed: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert!(printed["error"]["code"].is_number(), "{arguments:?}: {printed}");
    }
}

#[test]
fn reserved_handles_are_set_and_shown() {
    let server = sample();
    assert!(
        stdout(&server.run(&["tenant", "get"])).contains("reserved handles"),
        "the sample has its tenant"
    );

    let set = |list: &str| stdout(&server.run(&["tenant", "set", "--reserved-handles", list]));
    assert!(set("Boss, chief").contains("boss, chief"));
    assert_fails(
        &server.run(&["identity", "link", "handle:joe", "handle:boss"]),
        1,
        &["IDENTITY_RESERVED"],
    );
    assert!(set("default").contains("default"));
    assert!(server.run(&["identity", "link", "handle:joe", "handle:boss"]).status.success());
}
