//! Users whose stored records cannot be read: whoever reads many users names them, and goes on.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::block_in_place;

use crate::output::{stderr, stdout};
use crate::server::{Server, polynym};

const TENANT: &str = "leaving";
/// More users than one read has.
const USERS: usize = 600;
const READABLE: usize = USERS - 3;

/// The commands of a tenant's admin.
struct Admin {
    server: Server,
    log: PathBuf,
}

impl Admin {
    fn start(store: &str, folder: &Path) -> Self {
        let log = folder.join("server.log");
        let mut command = polynym(&["serve", "--listen", "127.0.0.1:0", "--log", "warn"]);
        command.stderr(File::create(&log).unwrap());
        let start = || Server::start_with(&mut command, &["--store", store]);
        Self { server: block_in_place(start), log }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        block_in_place(|| self.server.run(&[arguments, &["--tenant", TENANT]].concat()))
    }

    /// The output of a command that succeeds.
    fn done(&self, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
        (stdout(&output), stderr(&output))
    }

    /// The ids of all users that are listed.
    fn ids(&self) -> (Vec<String>, String) {
        let (lines, told) = self.done(&["user", "list", "--limit", "0", "--json"]);
        let id = |line: &str| {
            let user: serde_json::Value = serde_json::from_str(line).unwrap();
            user["userId"].as_str().unwrap().to_owned()
        };
        (lines.lines().map(id).collect(), told)
    }
}

/// Damages three users of a tenant, and then does all that reads many users. `damage` spoils the
/// stored record of a user while no server runs.
pub async fn is_passed(store: &str, folder: &Path, damage: impl AsyncFn(&str)) {
    let admin = Admin::start(store, folder);
    let line = |n| format!("{}\n", json!({ "attributes": { "n": { "intValue": n } } }));
    let lines: Vec<_> = (0..USERS).map(line).collect();
    let file = folder.join("users.jsonl");
    fs::write(&file, lines.concat()).unwrap();
    admin.done(&["tenant", "set", "--create"]);
    admin.done(&["import", file.to_str().unwrap()]);
    let (mut all, _) = admin.ids();
    assert_eq!(all.len(), USERS);
    let all_users = ["--filter", "attributes.n >= 0", "--yes", "--follow"];
    let disable = [&["bulk", "start", "disable", "--operation-id", "leavers"][..], &all_users];
    admin.done(&disable.concat());
    drop(admin);

    all.sort();
    let damaged: BTreeSet<_> = [0, 300, USERS - 1].map(|n| all[n].clone()).into();
    for id in &damaged {
        damage(id).await;
    }
    let admin = Admin::start(store, folder);
    reads_go_on(&admin, &damaged);
    changes_go_on(&admin, &damaged, &all_users);
    deletion_goes_on(&admin, &damaged);
}

/// Lists, searches, exports, events and duplicates name the users, and have all others.
fn reads_go_on(admin: &Admin, damaged: &BTreeSet<String>) {
    let names = |told: &str| damaged.iter().all(|id| told.contains(&**id));
    let (ids, told) = admin.ids();
    assert!(ids.len() == READABLE && names(&told), "{} users: {told}", ids.len());
    for filter in ["attributes.n >= 0", "attributes.n < 200 OR attributes.n >= 200"] {
        let (lines, told) = admin.done(&["user", "search", filter, "--limit", "0", "--json"]);
        assert!(lines.lines().count() == READABLE && names(&told), "{filter}: {told}");
    }
    for (arguments, lines) in [
        (vec!["export"], READABLE + 1),
        (vec!["export", "--filter", "attributes.n >= 0"], READABLE),
    ] {
        let exported = admin.run(&arguments);
        let told = stderr(&exported);
        assert_eq!(exported.status.code(), Some(1), "{told}");
        assert!(told.contains("3 users") && names(&told), "{told}");
        assert_eq!(stdout(&exported).lines().count(), lines, "{arguments:?}");
    }
    let events = ["tenant", "events", "--operation", "leavers", "--json"];
    let (lines, told) = admin.done(&events);
    assert!(lines.lines().count() == READABLE && names(&told), "{told}");
    let (_, told) = admin.done(&["user", "duplicates"]);
    assert!(told.contains("3 users cannot be read"), "{told}");
}

/// Bulk changes, undo, renormalisation and jobs name the users, and change all others.
fn changes_go_on(admin: &Admin, damaged: &BTreeSet<String>, all_users: &[&str]) {
    let set = ["bulk", "start", "set", "--attribute", "team=a"];
    let set = [&set[..], &["--operation-id", "team"], all_users].concat();
    let output = admin.run(&set);
    let told = [stdout(&output), stderr(&output)].concat();
    assert!(told.contains("INTERNAL") && told.contains(&READABLE.to_string()), "{told}");
    // It did not change the damaged users, so that its undoing has nothing to do with them.
    for undo in [&["undo", "team", "--dry-run"][..], &["undo", "team"]] {
        let (told, _) = admin.done(undo);
        assert!(told.contains(&format!("{READABLE} of {READABLE} users")), "{told}");
    }
    let output = admin.run(&["undo", "leavers"]);
    let told = [stdout(&output), stderr(&output)].concat();
    assert!(damaged.iter().all(|id| told.contains(id)), "{told}");
    assert!(told.contains("INTERNAL") && told.contains(&READABLE.to_string()), "{told}");
    let (lines, _) = admin.done(&["user", "search", "state = ACTIVE", "--limit", "0", "--json"]);
    assert_eq!(lines.lines().count(), READABLE);
    assert!(!lines.contains("\"team\""), "an attribute that was undone");

    let moved = admin.run(&["renormalize"]);
    assert!(damaged.iter().all(|id| stdout(&moved).contains(id)), "{}", stdout(&moved));
    // Waits for the job that stores the others again.
    admin.done(&["attribute", "define", "n", "--type", "int", "--no-index"]);
}

/// The deletion of the tenant purges all others.
fn deletion_goes_on(admin: &Admin, damaged: &BTreeSet<String>) {
    admin.done(&["tenant", "delete", "--force", "--yes", "--no-wait"]);
    let began = Instant::now();
    loop {
        let log = fs::read_to_string(&admin.log).unwrap();
        if log.contains("3 of the tenant's users cannot be purged") {
            assert!(damaged.iter().all(|id| log.contains(&**id)), "{log}");
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{log}");
        sleep(Duration::from_millis(100));
    }
}
