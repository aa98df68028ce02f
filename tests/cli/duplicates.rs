//! `polynym user duplicates`.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::process::Stdio;

use polynym_cli::sample::generated::SampleUsers;
use serde_json::Value;

use super::{assert_fails, json, stderr, stdout};
use crate::server::{Server, polynym};

#[test]
fn pairs_are_shown_with_their_reasons() {
    let server = Server::start(&["--sample"]);
    let none = server.run(&["user", "duplicates"]);
    assert_eq!(stdout(&none), "");
    assert_eq!(stderr(&none), "no duplicates among 36 users\n");

    let create = ["user", "create", "--name", "SMITH, Joe", "--identity"];
    let again = server.run(&[&create[..], &["email:joe.smith+x@example.com"]].concat());
    assert!(again.status.success(), "{}", stderr(&again));
    let shown = server.run(&["user", "duplicates", "--min-score", "80"]);
    let text = stdout(&shown);
    let [reasons, a, b] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert!(reasons.starts_with("93 same mailbox (joe.smith"), "{text}");
    assert!(
        reasons.contains("joe.smith+x@example.com") && reasons.contains("same name ("),
        "{text}"
    );
    let (id, name) = a.trim().split_once(' ').unwrap();
    assert!(id.len() == 36 && id < b.trim() && a != b, "{text}");
    assert!(["SMITH, Joe", "Joe Smith"].contains(&name) && text.contains("   "), "{text}");
    assert_eq!(stderr(&shown), "1 pair among 37 users\n");

    let pair = &json(&server.run(&["user", "duplicates", "--json"]))[0];
    assert_eq!((pair["score"].as_i64(), pair["userIdA"].as_str()), (Some(93), Some(id)));
    assert_eq!(pair["displayNameA"].as_str(), Some(name));
    assert_eq!(pair["evidence"][0]["reason"], "DUPLICATE_REASON_SAME_MAILBOX");
    assert_fails(&server.run(&["user", "duplicates", "--min-score", "101"]), 2, &["min-score"]);
    let elsewhere = server.run(&["user", "duplicates", "--tenant", "nowhere"]);
    assert_fails(&elsewhere, 1, &["TENANT_NOT_FOUND"]);
}

const USERS: u64 = 2_000;
const NONE: &str = "no duplicates among 2000 users\n";

/// Imports random users, this percentage of them dirty, without identities that cannot be linked.
fn import(server: &Server, dirty: &str) {
    let folder = tempfile::tempdir().unwrap();
    let users = USERS.to_string();
    let sample = polynym(&["sample", "--users", &users, "--dirty", dirty]).output().unwrap().stdout;
    let mut import = polynym(&["import", "-", "--on-conflict", "skip-identity"])
        .current_dir(folder.path())
        .env("POLYNYM_SERVER", &server.url)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    import.stdin.take().unwrap().write_all(&sample).unwrap();
    import.wait().unwrap();
}

/// Each user with a dirty duplicate, and the duplicate, found by the planted marks.
fn planted(server: &Server) -> HashMap<String, String> {
    let export = stdout(&server.run(&["export"]));
    let records: Vec<Value> =
        export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let users: Vec<_> = records.iter().filter(|user| user["userId"].is_string()).collect();
    assert_eq!(users.len() as u64, USERS);
    let id = |user: &Value| user["userId"].as_str().unwrap().to_owned();
    let emails = |user: &Value| -> Vec<String> {
        let identities = user["identities"].as_array().cloned().unwrap_or_default();
        let email = |identity: &Value| Some(identity["identifier"]["email"].as_str()?.to_owned());
        identities.iter().filter_map(email).collect()
    };
    let owners: HashMap<String, String> =
        users.iter().flat_map(|user| emails(user).into_iter().map(|e| (e, id(user)))).collect();

    let clean = SampleUsers { seed: 1, attributes: 0, dirty: 0 };
    let dirty_form = |email: &str| {
        let (local, domain) = email.split_once('@').unwrap();
        format!("{}+work@{domain}", local.replacen('.', "", 1))
    };
    let originals: HashMap<String, String> = (0..USERS)
        .map(|n| clean.user(n).identifiers[0]["email:".len()..].to_owned())
        .map(|email| (dirty_form(&email), email))
        .collect();
    let original = |user: &Value| {
        let written = emails(user).into_iter().find_map(|email| originals.get(&email).cloned());
        written.or_else(|| Some(user["attributes"]["contact"]["stringValue"].as_str()?.to_owned()))
    };
    let links = users.iter().filter_map(|user| {
        let owner = owners.get(&original(user)?)?;
        Some((id(user), owner.clone()))
    });
    links.filter(|(user, owner)| user != owner).collect()
}

/// The first record of a user's person.
fn person<'a>(planted: &'a HashMap<String, String>, user: &'a str) -> &'a str {
    let mut person = user;
    while let Some(other) = planted.get(person) {
        person = other;
    }
    person
}

/// But for those who only have a full name in common.
#[test]
fn clean_users_have_no_duplicates() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = Server::start(&["--store", &store]);
    import(&server, "0");
    let none = server.run(&["user", "duplicates", "--min-score", "31"]);
    assert_eq!((stdout(&none).as_str(), stderr(&none).as_str()), ("", NONE));
}

#[test]
fn planted_duplicates_are_found_and_few_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = Server::start(&["--store", &store]);
    import(&server, "20");
    let planted = planted(&server);
    assert!(planted.len() > 100, "{} duplicates", planted.len());
    for (min_score, least_precision) in [("50", 0.9), ("40", 0.5)] {
        let arguments = ["user", "duplicates", "--json", "--limit", "100000", "--min-score"];
        let listed = json(&server.run(&[&arguments[..], &[min_score]].concat()));
        let ids =
            |pair: &Value| ["userIdA", "userIdB"].map(|id| pair[id].as_str().unwrap().to_owned());
        let pairs: HashSet<_> = listed.iter().map(ids).collect();
        let is_found = |(user, owner): &(&String, &String)| {
            let mut ids = [user.to_string(), owner.to_string()];
            ids.sort();
            pairs.contains(&ids)
        };
        let recall = planted.iter().filter(is_found).count() as f64 / planted.len() as f64;
        let is_right = |[a, b]: &&[String; 2]| person(&planted, a) == person(&planted, b);
        let precision = pairs.iter().filter(is_right).count() as f64 / pairs.len() as f64;
        println!(
            "score {min_score}: {} planted, {} pairs, recall {recall:.3}, precision {precision:.3}",
            planted.len(),
            pairs.len(),
        );
        assert!(recall > 0.99, "recall {recall}");
        assert!(precision > least_precision, "precision {precision}");
    }
}
