//! A store of the third rules: each identity is found before `store upgrade` and after it, by what
//! was typed and by its form.

use std::path::Path;
use std::process::Output;

use polynym_identifier::Rules;
use serde_json::Value;
use tempfile::TempDir;

use super::golden::META;
use super::{database, open};
use crate::server::{Server, polynym};

/// What people had typed, and another spelling by the present rules.
const MOVED: [(&str, &str); 6] = [
    ("url:https://www.linkedin.com/in/ann/details/skills", "url:linkedin.com/in/Ann"),
    ("url:https://threads.net/@Ann", "url:https://www.threads.com/@ann/replies"),
    ("url:https://twitter.com/i/lists/42", "url:x.com/i/lists/42"),
    ("url:https://ann.blogspot.de/2020", "url:https://ann.blogspot.com/2020"),
    ("url:https://www.facebook.com/people/Ann/100012345678901", "url:fb.com/100012345678901"),
    ("phone:+33612345678", "phone:\u{202a}tel:+33-6-12-34-56-78\u{202c}"),
];

/// Posts, which the present rules reject. They stay with their users.
const KEPT: [&str; 3] = [
    "url:https://x.com/ann/status/1",
    "url:https://www.youtube.com/watch?v=AbC",
    "url:https://www.linkedin.com/posts/ann_hello",
];

/// Two identities of the third rules, and one of the present ones.
const TWINS: [&str; 2] = ["url:https://x.com/bob", "url:https://x.com/bob/with_replies"];

/// A folder with an empty store of the third rules, and its name.
fn third_store() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    let transaction = database(folder.path()).begin_write().unwrap();
    let rules = u64::from(Rules::THIRD.version());
    transaction.open_table(META).unwrap().insert("rules", rules).unwrap();
    transaction.commit().unwrap();
    let name = name(folder.path());
    (folder, name)
}

fn name(folder: &Path) -> String {
    format!("embedded:{}", folder.display())
}

fn store(command: &str, name: &str) -> Output {
    polynym(&["store", command, "--store", name]).output().unwrap()
}

fn create(server: &Server, user: &str, identities: &[&str]) {
    let mut command = vec!["user", "create", "--name", user];
    command.extend(identities.iter().flat_map(|identity| ["--identity", identity]));
    let created = server.run(&command);
    assert!(created.status.success(), "{identities:?}: {created:?}");
}

fn owner(server: &Server, identifier: &str) -> Option<String> {
    let answer = server.run(&["resolve", "--json", identifier]);
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
    answer["user"]["displayName"].as_str().map(str::to_owned)
}

#[test]
fn identities_of_the_third_rules_are_found_before_and_after_the_upgrade() {
    let (_folder, name) = third_store();
    let start = || Server::start(&["--store", &name]);
    let typed: Vec<_> = MOVED.iter().map(|(typed, _)| *typed).chain(KEPT).collect();
    {
        let server = start();
        create(&server, "Ann", &typed);
        for identifier in &typed {
            assert_eq!(owner(&server, identifier).as_deref(), Some("Ann"), "{identifier}");
        }
    }

    let upgraded = store("upgrade", &name);
    assert!(upgraded.status.success(), "{upgraded:?}");
    let server = start();
    for (typed, spelling) in MOVED {
        for identifier in [typed, spelling] {
            assert_eq!(owner(&server, identifier).as_deref(), Some("Ann"), "{identifier}");
        }
        let again = server.run(&["user", "create", "--identity", spelling]);
        assert!(!again.status.success(), "{spelling} is free");
    }
    for identifier in KEPT {
        assert_eq!(owner(&server, identifier).as_deref(), Some("Ann"), "{identifier}");
        let again = server.run(&["user", "create", "--identity", identifier]);
        assert!(!again.status.success(), "{identifier} is accepted");
        let unlinked = server.run(&["identity", "unlink", identifier, identifier]);
        assert!(unlinked.status.success(), "{unlinked:?}");
        assert_eq!(owner(&server, identifier), None, "{identifier}");
    }
    drop(server);
    let verified = store("verify", &name);
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn two_users_with_pages_of_one_profile_stop_the_upgrade() {
    let (_folder, name) = third_store();
    let start = || Server::start(&["--store", &name]);
    {
        let server = start();
        create(&server, "Bob", &TWINS[..1]);
        create(&server, "Other", &TWINS[1..]);
    }
    let refused = store("upgrade", &name);
    assert!(!refused.status.success(), "two users would get one identity");
    {
        let server = start();
        assert_eq!(owner(&server, TWINS[1]).as_deref(), Some("Other"));
        let delete = server.run(&["identity", "unlink", TWINS[1], TWINS[1]]);
        assert!(delete.status.success(), "{delete:?}");
    }
    assert!(store("upgrade", &name).status.success());
    assert_eq!(owner(&start(), TWINS[1]).as_deref(), Some("Bob"));
}
