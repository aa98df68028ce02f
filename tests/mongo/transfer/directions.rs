//! Directories that move between stores: the exports of copy and original are equal.

use std::path::Path;

use fastrand::Rng;
use serde_json::Value;

use crate::server::Server;
use crate::servers::{self, Databases};
use crate::support::output::{stderr, stdout};
use crate::support::scenarios::transfer::{embedded, export, import, sample, without_import_times};

/// Makes random changes of users.
fn change_randomly(server: &Server, rng: &mut Rng) {
    let hold = ["tenant", "set", "--hold", "handle=30d", "--hold", "email=7d"];
    assert!(server.run(&hold).status.success());
    let ids: Vec<_> = export(server, &[])
        .iter()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["userId"].as_str().unwrap().to_owned()
        })
        .collect();
    for n in 0..40 {
        let (one, other) = (&ids[rng.usize(0..ids.len())], &ids[rng.usize(0..ids.len())]);
        let handle = format!("handle:пользователь_{n}");
        let arguments: Vec<&str> = match rng.u8(0..8) {
            0 => vec!["user", "disable", one],
            1 => vec!["user", "delete", one],
            2 | 3 => vec!["user", "merge", one, other],
            7 => vec!["user", "purge", one, "--yes"],
            4 => vec!["user", "unmerge", one, other],
            _ => vec!["identity", "link", one, &handle],
        };
        // Some are rightly refused.
        server.run(&arguments);
        if rng.bool() {
            server.run(&["identity", "unlink", one, &handle]);
        }
    }
}

/// Copies a directory and compares the copy.
fn copy(from: &Server, to: &Server, folder: &Path) {
    let exported = from.run(&["export", "--all-tenants"]);
    assert!(exported.status.success(), "{}", stderr(&exported));
    let imported = import(to, folder, &["--all-tenants"], &exported.stdout);
    let rejects = std::fs::read_to_string(folder.join("import.rejects")).unwrap_or_default();
    assert!(imported.status.success(), "{} {} {rejects}", stdout(&imported), stderr(&imported));
    let [copied, original] =
        [to, from].map(|server| without_import_times(export(server, &["--all-tenants"])));
    assert_eq!(copied, original);
    assert_eq!(
        tenants(&stdout(&to.run(&["export", "--all-tenants"]))),
        tenants(&stdout(&exported))
    );
    assert!(stderr(&exported).contains("each tenant as of one moment"), "{}", stderr(&exported));
    let again = import(to, folder, &["--all-tenants"], &exported.stdout);
    assert!(stdout(&again).starts_with("0 imported"), "{}", stdout(&again));
}

/// The tenants of an export with their policies and times, without the begin of their histories.
fn tenants(exported: &str) -> Vec<Value> {
    let lines = exported.lines().filter(|line| line.contains("tenant_record"));
    let tenants: Vec<_> = lines
        .map(|line| {
            let mut tenant: Value = serde_json::from_str(line).unwrap();
            let record = tenant["tenant_record"].as_object_mut().unwrap();
            record.remove("etag");
            record["policies"].as_object_mut().unwrap().remove("historySinceTime");
            tenant
        })
        .collect();
    assert!(!tenants.is_empty(), "{exported}");
    tenants
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_move_between_all_stores() {
    let databases = Databases::of_set(servers::one_member().await, "");
    let (one, other) = (databases.factory(), databases.factory());
    let (one, other) = (one.uri().await, other.uri().await);
    tokio::task::spawn_blocking(move || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let first = embedded(path, "first");
        let users = sample(&["--users", "60", "--dirty", "0", "--seed", "7"]);
        assert!(import(&first, path, &[], &users).status.success());
        change_randomly(&first, &mut Rng::with_seed(7));

        let second = Server::start(&["--store", &one]);
        copy(&first, &second, path);
        let third = Server::start(&["--store", &other]);
        copy(&second, &third, path);
        let fourth = embedded(path, "fourth");
        copy(&third, &fourth, path);
        let fifth = embedded(path, "fifth");
        copy(&fourth, &fifth, path);

        drop(fifth);
        let store = format!("embedded:{}", path.join("fifth").display());
        let output =
            crate::support::server::polynym(&["store", "verify", "--store", &store]).output();
        let verified = output.unwrap();
        assert!(verified.status.success(), "{} {}", stdout(&verified), stderr(&verified));
    })
    .await
    .unwrap();
}
