//! Identities of earlier rules in imports, and numbers that the present phone metadata rejects as
//! new: they are exported, imported, found and unlinked.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use locality_uuid::{Generator, Mode};
use polynym_directory::{
    Directory, Limits, Now, Purpose, RawIdentity, RequestContext, Tenant, Timestamp,
};
use polynym_embedded::{Embedded, Options};
use polynym_identifier::{Identifier, Kind, PHONE_METADATA, RULES_VERSION, RawIdentifier, Rules};
use serde_json::{Value, json};

use super::{embedded, export, import_file};
use crate::assert_fails;
use crate::server::Server;
use crate::stdout;
use crate::support::scenarios::store_command::store as command;

/// A number that the present metadata does not have.
const NUMBER: &str = "+11155552300";
const WITH_METADATA: &str = concat!(
    r#"{"displayName":"Phone","identities":[{"identifier":{"phone":{"number":"+11155552300"}},"#,
    r#""display":"+1 115 555 2300"}],"internals":{"phoneMetadata":"9.0.1"}}"#
);
/// Identities of rules that this program does not know: one whose form has lost a part of what was
/// typed, one that the present rules write in another way, and a hold.
const OF_SECOND_RULES: &str = r#"{"displayName":"Second","identities":[{"identifier":{"url":"https://news.ycombinator.com/user"},"display":"https://news.ycombinator.com/user?id=joe"},{"identifier":{"url":"https://x.com/@ann"},"display":""}],"internals":{"rulesVersions":[2,2],"holds":[{"identifier":{"url":"https://x.com/eve"},"endTime":"2030-01-01T00:00:00Z","rulesVersion":2}]}}"#;
/// The second rules took this for a page of the service; the present rules reject it.
const REJECTED: &str = r#"{"displayName":"Third","identities":[{"identifier":{"url":"https://matrix.to"},"display":"https://matrix.to/#/@joe:x.y"}],"internals":{"rulesVersions":[2]}}"#;
/// A new identity that the present rules reject.
const NEW: &str =
    r#"{"displayName":"New","identities":[{"identifier":{"url":"https://matrix.to/#/@joe:x.y"}}]}"#;
/// A display form that its identifier does not have.
const OTHER_DISPLAY: &str = r#"{"displayName":"Other","identities":[{"identifier":{"url":"https://mine.example/a"},"display":"https://yours.example/b"}],"internals":{"rulesVersions":[4]}}"#;

/// A display form that version 2 took for its identifier, and that the present rules do not.
const OTHER_QUERY: &str = r#"{"displayName":"Other","identities":[{"identifier":{"url":"https://mine.example/?id=1"},"display":"https://mine.example/?id=2"}]}"#;

fn name(server: &Server, identifier: &str) -> Option<String> {
    let output = server.run(&["resolve", "--json", identifier]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["user"]["displayName"].as_str().map(str::to_owned)
}

/// The lines without the times of imports.
fn without_import_times(lines: &[String]) -> Vec<Value> {
    let mut lines: Vec<Value> =
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &mut lines {
        for identity in line["identities"].as_array_mut().into_iter().flatten() {
            identity.as_object_mut().unwrap().remove("importTime");
        }
    }
    lines
}

fn imported(server: &Server, path: &str, line: &str) -> (String, Vec<Value>) {
    fs::write(path, line).unwrap();
    import_file(server, path, &[])
}

fn unlinked(server: &Server, identifier: &str) -> bool {
    server.run(&["identity", "unlink", identifier, identifier]).status.success()
}

#[test]
fn a_number_of_earlier_metadata_is_kept_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let path = folder.path().join("users.jsonl").to_str().unwrap().to_owned();
    let phone = format!("phone:{NUMBER}");
    let create = server.run(&["user", "create", "--identity", &phone]);
    assert_fails(&create, 1, &["IDENTIFIER_INVALID", "phone-number"]);
    let without = WITH_METADATA.replace(r#","internals":{"phoneMetadata":"9.0.1"}"#, "");
    let (text, rejects) = imported(&server, &path, &without);
    assert!(text.starts_with("0 imported"), "{text}");
    assert_eq!(rejects[0]["reason"], "IDENTIFIER_INVALID");

    let (text, _) = imported(&server, &path, WITH_METADATA);
    assert!(text.starts_with("1 imported"), "{text}");
    for spelling in [&phone, "phone:+1 (115) 555-2300", "phone:tel:+1-115-555-2300"] {
        assert_eq!(name(&server, spelling).as_deref(), Some("Phone"), "{spelling}");
    }
    assert_eq!(name(&server, "phone:+11155552301"), None);
    let filter = format!("identities.phone = \"{NUMBER}\"");
    let found = stdout(&server.run(&["user", "search", "--json", &filter]));
    assert!(found.contains("Phone"), "{found}");

    let exported = export(&server, &[]).join("\n");
    let other = embedded(folder.path(), "other");
    let (text, _) = imported(&other, &path, &exported);
    assert!(text.starts_with("1 imported"), "{text}: {exported}");
    assert_eq!(without_import_times(&export(&other, &[])), without_import_times(&[exported]));
    for server in [&server, &other] {
        assert!(unlinked(server, &phone));
        assert_eq!(name(server, &phone), None);
        assert_fails(&server.run(&["user", "create", "--identity", &phone]), 1, &["phone-number"]);
    }
}

/// Rules whose phone metadata still has the range of [`NUMBER`].
fn former_metadata() -> Rules {
    let parse = |raw: RawIdentifier<'_>| match raw {
        RawIdentifier::Phone { number: "(115) 555-2300", region: "US" } => {
            Ok(Identifier::from_canonical(Kind::Phone, NUMBER.to_owned()))
        }
        raw => Identifier::parse(raw),
    };
    Rules::new(RULES_VERSION, parse, Identifier::normalize)
}

/// Creates a store with a user who has [`NUMBER`], by a server whose metadata has its range.
async fn create_by_former_metadata(store: &Path) {
    let backend = Arc::new(Embedded::open(store, Options::default()).unwrap()).backend();
    let directory = Directory::new(backend, Generator::new(Mode::Variable), Limits::default())
        .with_rules(former_metadata());
    let phone = RawIdentity {
        identifier: Some(RawIdentifier::Phone { number: "(115) 555-2300", region: "US" }),
        display: "",
        verification: None,
        primary: false,
    };
    let now = Now::certain(Timestamp::now());
    let (tenant, method) = (Tenant::DEFAULT, "CreateUser");
    let context = RequestContext {
        tenant,
        caller: "",
        method,
        request_id: "",
        purpose: Purpose::default(),
        now,
    };
    let name = "Phone".to_owned();
    directory.create(context.into(), name, &[phone], BTreeMap::new()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_of_a_range_that_the_metadata_lost_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    create_by_former_metadata(&store).await;
    let verified = command(&["verify"], &format!("embedded:{}", store.display()));
    assert!(verified.status.success(), "{verified:?}");

    let server = embedded(folder.path(), "store");
    let phone = format!("phone:{NUMBER}");
    assert_eq!(name(&server, &phone).as_deref(), Some("Phone"));
    let create = server.run(&["user", "create", "--identity", &phone]);
    assert_fails(&create, 1, &["IDENTIFIER_INVALID", "phone-number"]);
    let exported = export(&server, &[]).join("\n");
    let line: Value = serde_json::from_str(&exported).unwrap();
    assert_eq!(line["internals"]["phoneMetadata"], json!(PHONE_METADATA));
    assert_eq!(line["identities"][0]["display"], json!("(115) 555-2300"));

    let other = embedded(folder.path(), "other");
    let path = folder.path().join("users.jsonl").to_str().unwrap().to_owned();
    let (text, _) = imported(&other, &path, &exported);
    assert!(text.starts_with("1 imported"), "{text}: {exported}");
    for server in [&server, &other] {
        let verify = ["identity", "verify", &phone, &phone, "--by", "sms"];
        let verified = server.run(&verify);
        assert!(verified.status.success(), "{verified:?}");
        assert!(unlinked(server, &phone));
        assert_eq!(name(server, &phone), None);
    }
}

#[test]
fn exports_have_the_version_of_the_latest_rules() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let create = ["user", "create", "--identity", "handle:joe", "--identity", "handle:eve"];
    assert!(server.run(&create).status.success());
    assert!(server.run(&["identity", "unlink", "handle:eve", "handle:eve"]).status.success());
    let line: Value = serde_json::from_str(&export(&server, &[]).join("\n")).unwrap();
    assert_eq!(line["internals"]["rulesVersions"], json!([RULES_VERSION]));
    assert_eq!(line["internals"]["holds"][0]["rulesVersion"], json!(RULES_VERSION));
}

#[test]
fn a_line_with_too_many_identities_is_not_parsed() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let path = folder.path().join("users.jsonl").to_str().unwrap().to_owned();
    let malformed = json!({"identifier": {"email": "nobody"}});
    let line = json!({ "identities": vec![malformed; 101] }).to_string();
    let (text, rejects) = imported(&server, &path, &line);
    assert!(text.starts_with("0 imported"), "{text}");
    assert_eq!(rejects[0]["reason"], "LIMIT_EXCEEDED");
}

#[test]
fn identities_of_earlier_rules_move_in_an_import() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let path = folder.path().join("users.jsonl").to_str().unwrap().to_owned();
    let (text, _) = imported(&server, &path, OF_SECOND_RULES);
    assert!(text.starts_with("1 imported"), "{text}");
    for (identifier, owner) in [
        ("url:https://news.ycombinator.com/user?id=joe", Some("Second")),
        ("url:https://news.ycombinator.com/user?id=ann", None),
        ("url:https://x.com/ann", Some("Second")),
        ("url:https://x.com/eve", None),
    ] {
        assert_eq!(name(&server, identifier).as_deref(), owner, "{identifier}");
    }
    let exported = export(&server, &[]).join("\n");
    let line: Value = serde_json::from_str(&exported).unwrap();
    assert_eq!(line["internals"]["rulesVersions"], json!([RULES_VERSION, RULES_VERSION]));
    assert_eq!(line["internals"]["holds"][0]["rulesVersion"], json!(RULES_VERSION));
    let other = embedded(folder.path(), "other");
    let (text, _) = imported(&other, &path, &exported);
    assert!(text.starts_with("1 imported"), "{text}");
    assert_eq!(without_import_times(&export(&other, &[])), without_import_times(&[exported]));

    for (line, reason) in [
        (NEW, "IDENTIFIER_INVALID"),
        (REJECTED, "IDENTIFIER_INVALID"),
        (OTHER_DISPLAY, "FIELD_INVALID"),
        (OTHER_QUERY, "FIELD_INVALID"),
    ] {
        let (text, rejects) = imported(&server, &path, line);
        assert!(text.starts_with("0 imported"), "{text}");
        assert_eq!(rejects[0]["reason"], reason, "{line}");
    }
}
