//! Every fault that a verification finds, in any store, and its repair.

use std::collections::BTreeSet;
use std::process::Output;

use locality_uuid::LocalityId;
use polynym_directory::{
    LookUps, MergeSnapshot, Mutations, Record, State, Tenant, Timestamp, User, UserInternals,
};

use super::store_command::{json, store};
use crate::output::{assert_fails, stderr, stdout};
use crate::server::Server;
use crate::users::{self, id};

/// A store that can be damaged behind its back.
#[async_trait::async_trait]
pub trait Breakable {
    /// The value for `--store`.
    fn name(&self) -> String;
    async fn create(&self, users: std::ops::Range<usize>);
    async fn delete_claim(&self, key: &str);
    /// A claim of a user, or without an owner, optionally held until a time.
    async fn put_claim(&self, key: &str, owner: Option<LocalityId>, held: Option<Timestamp>);
    async fn put_user(&self, id: LocalityId, user: &User);
    async fn put_record(&self, record: &Record);
    async fn put_garbage_claim(&self, key: &str);
    async fn put_garbage_user(&self, id: LocalityId);
    /// Checks that users are found by all identifiers and by id.
    async fn assert_there(&self, users: &[usize]);
}

fn email(n: usize) -> String {
    format!("default,email,user{n}@example.com")
}

fn handle(n: usize) -> String {
    format!("default,handle,user{n}")
}

/// User `n`, who also lists the identities of user `other`.
fn greedy(n: usize, other: usize) -> User {
    let mut user = users::user(n);
    user.identities.extend(users::user(other).identities);
    user
}

/// The word, the user, and the key or document of a finding.
type Found = BTreeSet<(String, String, String)>;

fn found(output: &Output) -> Found {
    let mut lines = json(output);
    let totals = lines.pop().unwrap();
    assert_eq!(totals["findings"], lines.len());
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let about = |line: &serde_json::Value| {
        if line["key"].is_null() { text(&line["document"]) } else { text(&line["key"]) }
    };
    lines.iter().map(|line| (text(&line["finding"]), text(&line["user"]), about(line))).collect()
}

fn expected(faults: &[(&str, Option<usize>, &str)]) -> Found {
    let user = |n: &Option<usize>| n.map(|n| id(n).to_string()).unwrap_or_default();
    faults
        .iter()
        .map(|(word, n, about)| ((*word).to_owned(), user(n), (*about).to_owned()))
        .collect()
}

/// Repairable faults: `verify` finds exactly these, announces the work of `--repair`, hides keys by
/// default, and repairs all.
pub async fn repairable(broken: &dyn Breakable) {
    let name = broken.name();
    broken.create(0..600).await;
    let clean = store(&["verify"], &name);
    assert!(clean.status.success(), "{}{}", stdout(&clean), stderr(&clean));
    assert_eq!(stdout(&clean), "600 users and 1200 claims read: no inconsistency\n");

    broken.delete_claim(&email(1)).await;
    broken.put_claim(&email(2), Some(id(3)), None).await;
    broken.put_claim(&email(4), Some(id(9_999)), None).await;
    broken.put_claim(&email(5), Some(id(5)), Some(Timestamp::MAX)).await;
    broken.put_claim("default,url,https://example.com", Some(id(9_998)), None).await;
    broken.put_claim("default,handle,lost", Some(id(6)), None).await;
    broken.put_claim("other,handle,user7", Some(id(7)), None).await;
    broken.put_claim("default,handle,nobodys", None, None).await;
    // Valid: held without an owner, and an expired hold.
    broken.put_claim("default,handle,held", None, Some(Timestamp::MAX)).await;
    broken.put_claim("default,handle,over", Some(id(8)), Some(Timestamp::from_millis(1))).await;
    let faults = expected(&[
        ("unclaimed", Some(1), &email(1)),
        ("misclaimed", Some(2), &email(2)),
        ("misclaimed", Some(4), &email(4)),
        ("differs", Some(5), &email(5)),
        ("ownerless", Some(9_998), "default,url,https://example.com"),
        ("unlisted", Some(6), "default,handle,lost"),
        ("unlisted", Some(7), "other,handle,user7"),
        ("unowned", None, "default,handle,nobodys"),
    ]);
    let output = store(&["verify", "--json", "--show-keys"], &name);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(found(&output), faults, "{}", stderr(&output));

    let output = store(&["verify"], &name);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(text.contains(&id(1).to_string()) && text.contains("email #"), "{text}");
    assert!(text.ends_with("8 findings; --repair would repair 8 of them\n"), "{text}");
    assert!(!text.contains("@example.com") && !text.contains("lost"), "a key is shown: {text}");

    let output = store(&["verify", "--repair", "--json", "--show-keys"], &name);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(found(&output), faults);
    assert!(
        json(&output).iter().take(8).all(|line| line["settled"] == "yes"),
        "{}",
        stdout(&output)
    );
    let again = store(&["verify", "--repair"], &name);
    assert!(
        again.status.success() && stdout(&again).contains("no inconsistency"),
        "{}",
        stdout(&again)
    );
    broken.assert_there(&[0, 1, 2, 3, 4, 5, 6, 7, 599]).await;
}

/// Faults that only a person can resolve: they are found, reported and left; all others are
/// repaired.
pub async fn unrepairable(broken: &dyn Breakable) {
    let name = broken.name();
    broken.create(0..20).await;
    // Two users list it, and one has the claim.
    broken.put_user(id(1), &greedy(1, 2)).await;
    // Two users list it without a claim.
    broken.put_user(id(15), &greedy(15, 3)).await;
    broken.delete_claim(&email(3)).await;
    // Two users list it, and a third has the claim.
    broken.put_claim(&handle(3), Some(id(9)), None).await;
    broken.put_garbage_user(id(4)).await;
    broken.put_garbage_claim(&email(5)).await;
    // A user stored under the id of another with claims.
    broken.put_user(id(7), &users::user(6)).await;
    broken.delete_claim(&email(8)).await;
    let left = [
        ("shared", Some(1), email(2)),
        ("shared", Some(1), handle(2)),
        ("shared", Some(3), email(3)),
        ("shared", Some(15), email(3)),
        ("shared", Some(3), handle(3)),
        ("shared", Some(15), handle(3)),
        ("unreadable_user", Some(4), String::new()),
        ("unreadable_claim", None, email(5)),
        ("unclear", Some(5), email(5)),
        ("unreadable_user", Some(7), String::new()),
    ];
    let left: Vec<_> = left.iter().map(|(word, n, key)| (*word, *n, key.as_str())).collect();
    let output = store(&["verify", "--repair", "--json", "--show-keys"], &name);
    assert_eq!(output.status.code(), Some(1), "{}{}", stdout(&output), stderr(&output));
    let lost = email(8);
    // These users store no rules version, which means the first.
    let older = [(1, email(1)), (1, handle(1)), (15, email(15)), (15, handle(15))];
    let older = older.each_ref().map(|(n, key)| ("differs", Some(*n), key.as_str()));
    let all = [left.as_slice(), &[("unclaimed", Some(8), lost.as_str())], &older].concat();
    assert_eq!(found(&output), expected(&all), "{}", stderr(&output));
    let output = store(&["verify", "--repair", "--json", "--show-keys"], &name);
    assert_eq!((output.status.code(), found(&output)), (Some(1), expected(&left)));
    assert!(
        json(&output).iter().take(10).all(|line| line["settled"] == "no"),
        "{}",
        stdout(&output)
    );
    broken.assert_there(&[0, 8, 10]).await;
}

/// A user without identities in this state, who lists these users as merged into it.
fn linked(n: usize, state: State, merged: &[usize]) -> Record {
    let merged = merged.iter().map(|n| id(*n)).collect();
    let user = User { state, identities: Vec::new(), ..users::user(n) };
    Record { user, internals: UserInternals { merged, ..UserInternals::default() } }
}

/// Records that name users who do not name them back: `verify` finds them, and
/// removes them where that changes no other user.
pub async fn links(broken: &dyn Breakable) {
    let name = broken.name();
    broken.create(0..1).await;
    let into = |n| State::Merged { into: id(n) };
    let mut sound = [linked(1, State::Active, &[2, 3]), linked(2, into(1), &[3])].to_vec();
    sound.extend([linked(3, into(2), &[]), linked(4, State::Active, &[40])]);
    let foreign = linked(7, State::Active, &[]);
    let tenant = Tenant::parse("other").unwrap();
    let other = Record { user: User { tenant, ..foreign.user }, ..foreign };
    let mut stolen = linked(9, into(8), &[]);
    stolen.internals.undo = Some(Box::new(MergeSnapshot {
        until: Timestamp::MAX,
        before: Record::new(users::user(0)),
        display_name: None,
        attributes: [].into(),
        unmarked: Vec::new(),
    }));
    let mut unsettable = linked(13, into(8), &[]);
    let mut before = linked(13, State::Active, &[]);
    before.user.display_name = "\u{1b}[31m".repeat(60_000);
    unsettable.internals.undo =
        stolen.internals.undo.clone().map(|undo| Box::new(MergeSnapshot { before, ..*undo }));
    let faulty = [
        linked(5, State::Active, &[0]),
        linked(6, State::Disabled, &[7]),
        linked(8, State::Active, &[9, 13]),
        linked(10, into(4), &[]),
        linked(11, into(12), &[12]),
        linked(12, into(11), &[11]),
    ];
    for record in sound.iter().chain(&faulty).chain([&other, &stolen, &unsettable]) {
        broken.put_record(record).await;
    }

    let orphans = [10, 11, 12].map(|n| ("orphan", Some(n), ""));
    let undo = [9, 13].map(|n| ("damaged_undo", Some(n), ""));
    let all = [("unmerged", Some(5), ""), ("unmerged", Some(6), ""), undo[0], undo[1]];
    let all = expected(&[&all[..], &orphans].concat());
    // Written past the store, the users are not in its index.
    let found_links = |output: &Output| {
        let mut found = found(output);
        found.retain(|(word, ..)| word != "unindexed");
        (output.status.code(), found)
    };
    let output = store(&["verify", "--json"], &name);
    assert_eq!(found_links(&output), (Some(1), all.clone()), "{}", stderr(&output));
    let output = store(&["verify", "--repair", "--json"], &name);
    assert_eq!(found_links(&output), (Some(1), all));
    let output = store(&["verify", "--repair", "--json"], &name);
    assert_eq!((output.status.code(), found(&output)), (Some(1), expected(&orphans)));
    broken.assert_there(&[0]).await;
    purge_orphans(&name);
    let output = store(&["verify"], &name);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
}

/// A look-up of a circle of merges fails, and merged users without a primary can be purged.
fn purge_orphans(name: &str) {
    let server = Server::start(&["--store", name]);
    for n in [11, 12] {
        let circle = server.run(&["user", "get", &id(n).to_string()]);
        assert_fails(&circle, 1, &["MERGE_DAMAGED (FAILED_PRECONDITION)"]);
    }
    for n in [10, 11] {
        let purged = server.run(&["user", "purge", &id(n).to_string(), "--yes"]);
        assert!(purged.status.success(), "{}", stderr(&purged));
    }
    for n in [10, 11, 12] {
        assert_fails(&server.run(&["user", "get", &id(n).to_string()]), 1, &["USER_NOT_FOUND"]);
    }
    let merged = server.run(&["user", "purge", &id(3).to_string(), "--yes"]);
    assert_fails(&merged, 1, &["USER_MERGED"]);
}

/// Creates users concurrently.
pub async fn create(store: &impl Mutations, users: std::ops::Range<usize>) {
    use futures_util::StreamExt;
    let creations =
        users.map(|n| async move { store.mutate(users::creation(n)).await.map(drop).unwrap() });
    futures_util::stream::iter(creations).buffer_unordered(32).collect::<Vec<()>>().await;
}

/// Checks that users are found by all that they have.
pub async fn assert_there(store: &impl LookUps, users: &[usize]) {
    for n in users {
        assert!(users::look_up(store, *n).await.unwrap(), "user {n} is not there");
    }
}
