//! Lines that name other users: of another tenant, in a circle, or without a primary.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{embedded, export, import_file};
use crate::support::scenarios::store_command::store;
use crate::{assert_fails, stderr, stdout};

/// The id of a user.
fn id(n: u32) -> String {
    format!("{n:08x}-0001-b000-0001-000000000000")
}

/// Imports lines into a tenant. Returns the output, and the line and reason of each reject.
fn import(
    server: &crate::server::Server,
    folder: &Path,
    tenant: &str,
    lines: &[Value],
) -> (String, Vec<(i64, String)>) {
    let path = folder.join("lines.jsonl");
    let text: Vec<_> = lines.iter().map(Value::to_string).collect();
    fs::write(&path, text.join("\n")).unwrap();
    let path = path.to_str().unwrap();
    let (text, rejects) = import_file(server, path, &["--tenant", tenant]);
    let reject = |reject: &Value| {
        (reject["line"].as_i64().unwrap(), reject["reason"].as_str().unwrap().to_owned())
    };
    (text, rejects.iter().map(reject).collect())
}

fn merged(user: u32, into: u32) -> Value {
    json!({"userId": id(user), "state": "STATE_MERGED", "mergedInto": id(into)})
}

fn listing(user: u32, listed: u32) -> Value {
    json!({"userId": id(user), "internals": {"mergedUserIds": [id(listed)]}})
}

#[test]
fn an_import_into_one_tenant_changes_no_user_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    for tenant in ["a", "b"] {
        let made = server.run(&["tenant", "set", "--tenant", tenant, "--create"]);
        assert!(made.status.success(), "{}", stderr(&made));
    }
    let victim = json!({
        "userId": id(1), "displayName": "Victor",
        "identities": [{"identifier": {"email": "victor@example.com"}}],
    });
    let (text, _) = import(&server, folder.path(), "b", &[victim]);
    assert!(text.starts_with("1 imported"), "{text}");
    let before = export(&server, &["--tenant", "b"]);

    let mut thief = merged(3, 2);
    let tomorrow = prost_types::Timestamp::from(SystemTime::now() + Duration::from_secs(86_400));
    let undo = json!({"endTime": tomorrow.to_string(), "user": {"userId": id(1)}});
    thief["internals"] = json!({ "undo": undo });
    let mut deleted = listing(4, 1);
    deleted["state"] = "STATE_DELETED".into();
    deleted["purgeTime"] = "2026-01-01T00:00:00Z".into();
    let lines = [json!({"userId": id(2)}), thief, listing(5, 1), deleted, merged(6, 1)];
    let (_, rejects) = import(&server, folder.path(), "a", &lines);
    let invalid = [2, 3, 4, 5].map(|line| (line, "USER_ID_INVALID".to_owned()));
    assert_eq!(rejects, invalid);
    assert_fails(
        &server.run(&["user", "unmerge", &id(2), &id(3), "--tenant", "a"]),
        1,
        &["USER_NOT_FOUND"],
    );

    // The user is created after the record that names it.
    import(&server, folder.path(), "a", &[listing(7, 8)]);
    import(&server, folder.path(), "b", &[json!({"userId": id(8), "displayName": "Eve"})]);
    let all = export(&server, &["--tenant", "b"]);
    assert_eq!(all.len(), before.len() + 1);
    let purge = ["user", "purge", &id(7), "--tenant", "a", "--yes"];
    assert_fails(&server.run(&purge), 1, &["MERGE_DAMAGED", "store verify --repair"]);
    let inbox = ["inbox", "list", &id(7), "--tenant", "a"];
    assert_fails(&server.run(&inbox), 1, &["MERGE_DAMAGED"]);
    assert_eq!(export(&server, &["--tenant", "b"]), all);

    drop(server);
    let name = format!("embedded:{}", folder.path().join("store").display());
    let verified = store(&["verify", "--repair"], &name);
    assert!(verified.status.success(), "{}{}", stdout(&verified), stderr(&verified));
    assert!(stdout(&verified).contains("1 findings, 1 repaired"), "{}", stdout(&verified));
    let server = embedded(folder.path(), "store");
    let purged = server.run(&purge);
    assert!(purged.status.success(), "{}", stderr(&purged));
    assert_eq!(export(&server, &["--tenant", "b"]), all);
}

#[test]
fn merged_users_without_a_primary_are_reported_and_can_be_purged() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let primary = json!({"userId": id(9), "internals": {"mergedUserIds": [id(3), id(4)]}});
    let other = json!({"userId": id(10)});
    let lines =
        [merged(1, 1), merged(2, 8), merged(3, 9), merged(4, 9), primary, merged(5, 10), other];
    let (text, rejects) = import(&server, folder.path(), "default", &lines);
    let expected = "6 imported, 0 there already, 1 lines rejected, 2 merged users without their";
    assert!(text.starts_with(expected), "{text}");
    let missing = "PRIMARY_MISSING";
    let expected = [(1, "USER_ID_INVALID"), (2, missing), (6, missing)];
    assert_eq!(rejects, expected.map(|(line, reason)| (line, reason.to_owned())));
    assert_fails(&server.run(&["user", "get", &id(2)]), 1, &["USER_NOT_FOUND"]);

    for orphan in [2, 5] {
        let purged = server.run(&["user", "purge", &id(orphan), "--yes"]);
        assert!(purged.status.success(), "{}", stderr(&purged));
    }
    assert_fails(&server.run(&["user", "purge", &id(3), "--yes"]), 1, &["USER_MERGED"]);
    assert!(stdout(&server.run(&["user", "get", &id(3)])).contains(&id(9)));
    assert_eq!(export(&server, &[]).len(), 4);
}
