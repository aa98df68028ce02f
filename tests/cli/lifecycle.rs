//! Commands for user states, merges, tenants and renormalization.

use serde_json::{Value, json as value};

use super::client::{one, sample, text, user};
use super::{assert_fails, json, stderr, stdout};
use crate::server::Server;

/// Creates a user with these identities and returns its id.
fn create(server: &Server, name: &str, identities: &[&str]) -> String {
    let flags = identities.iter().flat_map(|identity| ["--identity", identity]);
    let arguments: Vec<_> = ["user", "create", "--name", name].into_iter().chain(flags).collect();
    text(&user(server, &arguments), "userId").to_owned()
}

#[test]
fn a_user_is_disabled_deleted_restored_and_purged() {
    let server = sample();
    let id = &create(&server, "Ada", &["handle:countess"]);
    let state = |command: &str| text(&user(&server, &["user", command, id]), "state").to_owned();
    assert_eq!(state("disable"), "STATE_DISABLED");

    let output = server.run(&["resolve", "handle:countess"]);
    assert_fails(&output, 1, &["USER_DISABLED"]);
    assert_eq!(state("delete"), "STATE_DELETED");
    assert!(stdout(&server.run(&["user", "get", id])).contains("deleted"));
    assert_fails(&server.run(&["user", "delete", id]), 1, &["USER_NOT_FOUND (NOT_FOUND)"]);
    assert_eq!(state("undelete"), "STATE_DISABLED");
    assert_fails(&server.run(&["user", "undelete", id]), 1, &["USER_NOT_DELETED (ALREADY_EXISTS)"]);
    assert_eq!(state("enable"), "STATE_ACTIVE");
    assert_eq!(
        stdout(&server.run(&["user", "purge", "--dry-run", id])),
        format!("{id} would be gone\n")
    );
    assert!(server.run(&["resolve", "handle:countess"]).status.success());
    assert_eq!(stdout(&server.run(&["user", "purge", "--yes", id])), format!("{id} is gone\n"));
    assert_fails(&server.run(&["user", "get", id]), 1, &["USER_NOT_FOUND"]);

    let output = server.run(&["user", "create", "--identity", "handle:countess"]);
    assert_fails(
        &output,
        1,
        &["IDENTITY_HELD (FAILED_PRECONDITION)", "until: ", "field: user.identities[0].identifier"],
    );
}

#[test]
fn users_are_merged_and_unmerged() {
    let server = sample();
    let primary = &create(&server, "Joe", &["email:j@example.com"]);
    let secondary = &create(&server, "Joseph", &["email:joseph@example.com", "handle:joseph"]);
    let output = server.run(&["user", "merge", "--conflicts", "fail", primary, secondary]);
    assert_fails(&output, 1, &["MERGE_CONFLICT (FAILED_PRECONDITION)", "display_name"]);

    let preview = stdout(&server.run(&["user", "merge", "--dry-run", primary, secondary]));
    for part in ["moves", "handle:joseph", "display_name", "primary.email", "The result would be:"]
    {
        assert!(preview.contains(part), "no {part} in {preview}");
    }
    assert_eq!(text(&user(&server, &["user", "get", secondary]), "displayName"), "Joseph");

    let merged = user(&server, &["user", "merge", "--conflicts", "secondary", primary, secondary]);
    assert_eq!(
        (text(&merged, "userId"), text(&merged, "displayName")),
        (primary.as_str(), "Joseph")
    );

    let got = one(&server, &["user", "get", secondary]);
    assert_eq!(
        (text(&got["user"], "userId"), text(&got, "mergedFrom")),
        (primary.as_str(), secondary.as_str())
    );
    assert_fails(
        &server.run(&["user", "disable", secondary]),
        1,
        &["USER_MERGED (FAILED_PRECONDITION)"],
    );
    assert!(server.run(&["identity", "unlink", primary, "handle:joseph"]).status.success());

    let printed = stdout(&server.run(&["user", "unmerge", primary, secondary]));
    assert!(
        printed.contains("not restored, having changed since: identities handle:joseph"),
        "{printed}"
    );
    assert_eq!(text(&user(&server, &["user", "get", primary]), "displayName"), "Joe");

    let back = one(&server, &["resolve", "email:joseph@example.com"]);
    assert_eq!(text(&back["user"], "userId"), secondary);
}

#[test]
fn an_exported_tenant_keeps_its_policies() {
    let (server, other) = (sample(), sample());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("acme.jsonl");
    let file = file.to_str().unwrap();
    let lapsing = ["--phone-takeover-after", "120d", "--rule-notices", "on"];
    let set = ["tenant", "set", "--tenant", "acme", "--create"];
    let set = one(&server, &[&set[..], &lapsing].concat());
    std::fs::write(file, stdout(&server.run(&["export", "--tenant", "acme"]))).unwrap();
    for _ in 0..2 {
        let imported = other.run(&["import", "--tenant", "acme", file]);
        assert!(imported.status.success(), "{}", stderr(&imported));
    }
    let there = one(&other, &["tenant", "get", "--tenant", "acme"]);
    for policy in ["phoneTakeoverAfter", "ruleNotices", "restoreWindow"] {
        let policies = |tenant: &Value| tenant["tenant"]["policies"][policy].clone();
        assert_eq!(policies(&there), policies(&set), "{policy}");
    }
    assert_eq!(there["tenant"]["policies"]["phoneTakeoverAfter"], "10368000s");
}

#[test]
fn a_tenant_is_shown_set_and_listed() {
    let server = sample();
    assert_fails(
        &server.run(&["tenant", "get", "--tenant", "acme"]),
        1,
        &["TENANT_NOT_FOUND (NOT_FOUND)"],
    );

    let policies = [
        "--hold",
        "email=7d",
        "--hold",
        "handle=0d",
        "--verified-wins",
        "on",
        "--phone-takeover-after",
        "120d",
        "--undo-window",
        "12h",
    ];
    let set =
        one(&server, &[&["tenant", "set", "--tenant", "acme", "--create"], &policies[..]].concat());
    let expected = value!({ "email": "604800s" });
    assert_eq!(
        (&set["tenant"]["policies"]["holds"], &set["tenant"]["policies"]["verifiedWins"]),
        (&expected, &value!(true))
    );

    let shown = stdout(&server.run(&["tenant", "get", "--tenant", "acme"]));
    for part in [
        "emails are held for",
        "7 d",
        "12 h",
        "verified wins",
        "on",
        "phones can be taken after",
        "120 d",
    ] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }

    let output = server.run(&["tenant", "set", "--tenant", "acme", "--restore-window", "99999d"]);
    assert_fails(
        &output,
        1,
        &["POLICY_INVALID (INVALID_ARGUMENT)", "field: policies.restore_window"],
    );

    let etag = text(&set["tenant"], "etag");
    let dry = one(
        &server,
        &[
            "tenant",
            "set",
            "--tenant",
            "acme",
            "--dry-run",
            "--etag",
            etag,
            "--hide-unverified",
            "on",
        ],
    );
    assert_eq!(dry["tenant"]["policies"]["hideUnverified"], true);
    assert_eq!(one(&server, &["tenant", "get", "--tenant", "acme"])["tenant"], set["tenant"]);
    assert_fails(
        &server.run(&["user", "create", "--tenant", "beta"]),
        1,
        &["TENANT_NOT_FOUND", "polynym tenant set"],
    );
    assert!(server.run(&["tenant", "set", "--tenant", "beta", "--create"]).status.success());
    assert!(server.run(&["user", "create", "--tenant", "beta"]).status.success());

    let listed = json(&server.run(&["tenant", "list", "--json"]));
    let names: Vec<_> = listed.iter().map(|tenant| text(tenant, "tenant")).collect();
    assert!(names == ["acme", "beta", "default"], "{names:?}");
}

#[test]
fn renormalization_moves_nothing_under_current_rules() {
    let server = sample();
    let output = server.run(&["renormalize", "--dry-run"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.ends_with("users, 0 identities would be moved, 0 cannot be\n"), "{text}");

    let last: Value = json(&server.run(&["renormalize", "--json"])).pop().unwrap();
    assert!(last["users"].as_str().unwrap().parse::<u32>().unwrap() > 20, "{last}");
    assert_fails(
        &server.run(&["renormalize", "--from", "x"]),
        1,
        &["PAGE_TOKEN_INVALID (INVALID_ARGUMENT)"],
    );
}

#[test]
fn a_tenant_is_deleted_with_its_users() {
    let server = sample();
    assert!(server.run(&["tenant", "set", "--tenant", "acme", "--create"]).status.success());
    let person = one(&server, &["user", "create", "--tenant", "acme", "--identity", "handle:ann"]);
    let delete = |more: &[&str]| {
        server.run(&[&["tenant", "delete", "--tenant", "acme", "--no-wait"], more].concat())
    };
    assert_fails(&delete(&[]), 1, &["TENANT_NOT_EMPTY (FAILED_PRECONDITION)"]);
    assert_fails(&delete(&["--force"]), 2, &["all users of acme would be purged", "--yes"]);
    let dry = delete(&["--force", "--dry-run"]);
    assert_eq!(stdout(&dry), "acme would be deleted\n");
    let tenant = one(&server, &["tenant", "get", "--tenant", "acme"]);
    assert_eq!(tenant["tenant"]["deleteTime"], Value::Null);
    let stale = delete(&["--force", "--yes", "--etag", "0123456789abcdef"]);
    assert_fails(&stale, 1, &["ETAG_MISMATCH (ABORTED)"]);

    assert_eq!(stdout(&delete(&["--force", "--yes"])), "acme is being deleted\n");
    let tenant = server.run(&["tenant", "get", "--tenant", "acme", "--json"]);
    // The servers may have removed it already.
    assert!(!tenant.status.success() || stdout(&tenant).contains("\"deleteTime\""), "{tenant:?}");
    let id = text(&person["user"], "userId");
    let late = server.run(&["user", "disable", "--tenant", "acme", id]);
    assert_fails(&late, 1, &["TENANT_NOT_FOUND"]);
}
