//! Bulk changes in the embedded store: damaged rows, and copies of the store.

use std::fs;
use std::io::Seek;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use polynym_directory::{
    BulkChange, BulkChanges, BulkList, BulkState, BulkStep, Error, Mutation, MutationKind,
    Mutations, PolicyUpdate, StoreFile, Tenant, TenantChange, Timestamp,
};
use polynym_embedded::{self as embedded, Embedded};
use redb::TableDefinition;

use crate::support::scenarios::store_command::findings;
use crate::{database, open, users};

type Row = (i64, bool, &'static [u8]);
const CHANGES: TableDefinition<'_, (&str, &str), Row> = TableDefinition::new("bulk_changes");
const TIMES: TableDefinition<'_, (i64, &str, &str), ()> = TableDefinition::new("bulk_times");
const USERS: TableDefinition<'_, (&str, &str, u32), &[u8]> = TableDefinition::new("bulk_users");

/// A bulk change of one listed user.
fn listed(id: &str) -> BulkChange {
    BulkChange { list: Some(BulkList::new(&[users::id(0)])), ..users::bulk_change(id) }
}

/// A store in this folder with running bulk changes.
async fn store_with(folder: &Path, ids: &[&str]) -> Embedded {
    let store = open(folder).unwrap();
    let set = users::tenant_mutation(TenantChange::Set(PolicyUpdate::default()));
    store.mutate(set).await.unwrap();
    for id in ids {
        start(&store, id).await.unwrap();
    }
    store
}

async fn start(store: &Embedded, id: &str) -> Result<(), Error> {
    store.mutate(users::bulk_start(id)).await.map(drop)
}

async fn ids(store: &Embedded) -> Vec<String> {
    let found = store.bulk_changes(&Tenant::DEFAULT).await.unwrap();
    found.into_iter().map(|change| change.id).collect()
}

/// The first bulk changes that are due.
async fn due(store: &Embedded, limit: usize) -> Vec<String> {
    let now = Timestamp::now().plus(Duration::from_secs(60));
    let due = store.due_bulk_changes(now, limit).await.unwrap();
    due.into_iter().map(|change| change.key.1).collect()
}

/// The bytes of a bulk change, and its due time.
fn encoded(change: &BulkChange) -> (Vec<u8>, i64) {
    (change.encode(), change.due_time().as_millis())
}

/// Adds damaged rows: one whose record is none, one whose record is that of another tenant, and
/// times without bulk changes. Returns the number of times.
fn damage(folder: &Path) -> usize {
    let other = Tenant::parse("other").unwrap();
    let (moved, _) = encoded(&BulkChange { tenant: other, ..users::bulk_change("moved") });
    let transaction = database(folder).begin_write().unwrap();
    {
        let mut changes = transaction.open_table(CHANGES).unwrap();
        let mut times = transaction.open_table(TIMES).unwrap();
        for (n, (id, bytes)) in [("broken", &b"garbage"[..]), ("moved", &moved)].iter().enumerate()
        {
            changes.insert(("default", *id), (n as i64, true, *bytes)).unwrap();
            times.insert((n as i64, "default", *id), ()).unwrap();
        }
        for n in 0..20 {
            times.insert((n, "no such tenant!", "bulk"), ()).unwrap();
        }
    }
    transaction.commit().unwrap();
    20
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_rows_hide_no_other_bulk_change() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<_> = (0..3).map(|n| format!("bulk-{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    drop(store_with(folder.path(), &names[..2]).await);
    damage(folder.path());
    let store = open(folder.path()).unwrap();
    assert_eq!(ids(&store).await, names[..2]);
    assert_eq!(due(&store, 2).await.len(), 2);
    for id in ["broken", "moved"] {
        let read = store.bulk_change(&Tenant::DEFAULT, id).await;
        assert!(matches!(read, Err(Error::Internal(_))), "{read:?}");
        let step = MutationKind::Bulk(id.to_owned(), BulkStep::Stop("ana".to_owned()));
        let stopped = store.mutate(users::mutation_of(step)).await;
        assert!(matches!(stopped, Err(Error::Internal(_))), "{stopped:?}");
    }
    // They do not count as running ones, of which a tenant may have four.
    start(&store, names[2]).await.unwrap();
    start(&store, "bulk-3").await.unwrap();
    assert!(start(&store, "bulk-4").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_bulk_changes_are_found_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_with(folder.path(), &["lost", "late", "stopped", "sound"]).await;
    let mut stored = store.bulk_changes(&Tenant::DEFAULT).await.unwrap();
    drop(store);
    let strays = damage(folder.path());
    let transaction = database(folder.path()).begin_write().unwrap();
    {
        let mut changes = transaction.open_table(CHANGES).unwrap();
        let mut times = transaction.open_table(TIMES).unwrap();
        for change in &stored {
            let (bytes, due) = encoded(change);
            let key = ("default", &*change.id);
            match &*change.id {
                // Without its time; under another time; and under another state.
                "lost" => drop(times.remove((due, key.0, key.1)).unwrap()),
                "late" => drop(changes.insert(key, (due + 1, true, &*bytes)).unwrap()),
                "stopped" => drop(changes.insert(key, (due, false, &*bytes)).unwrap()),
                _ => {}
            }
        }
        // Without its list; and a list without its bulk change.
        let (bytes, due) = encoded(&listed("short"));
        changes.insert(("default", "short"), (due, true, &*bytes)).unwrap();
        times.insert((due, "default", "short"), ()).unwrap();
        let mut users = transaction.open_table(USERS).unwrap();
        users.insert(("default", "none", 0), &[0; 16][..]).unwrap();
        let gone = Tenant::parse("gone").unwrap();
        let (bytes, due) = encoded(&BulkChange { tenant: gone, ..users::bulk_change("orphan") });
        changes.insert(("gone", "orphan"), (due, true, &*bytes)).unwrap();
        times.insert((due, "gone", "orphan"), ()).unwrap();
    }
    transaction.commit().unwrap();

    let name = format!("embedded:{}", folder.path().display());
    let mut expected = vec!["unreadable_bulk"; 2];
    expected.extend(["unscheduled_bulk"; 3]);
    expected.extend(["tenantless_bulk", "lost_bulk_users", "stray_bulk_users"]);
    expected.extend(vec!["stray_bulk_time"; strays]);
    expected.sort_unstable();
    for arguments in [&[][..], &["--repair"]] {
        let mut found: Vec<_> = findings(arguments, &name).into_iter().map(|one| one.0).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{arguments:?}");
    }
    let mut left: Vec<_> = findings(&[], &name).into_iter().map(|one| one.0).collect();
    left.sort_unstable();
    assert_eq!(left, ["lost_bulk_users", "unreadable_bulk", "unreadable_bulk"]);

    let store = open(folder.path()).unwrap();
    let mut repaired = store.bulk_changes(&Tenant::DEFAULT).await.unwrap();
    repaired.sort_by(|one, other| one.id.cmp(&other.id));
    repaired.retain(|change| change.id != "short");
    stored.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(repaired, stored);
    let mut due = due(&store, 100).await;
    due.sort_unstable();
    assert_eq!(due, ["late", "lost", "short", "sound", "stopped"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bulk_changes_of_a_copy_have_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(store_with(&folder.path().join("store"), &["taken", "ended"]).await);
    let server = users::id(0);
    let start = BulkStep::Start(Box::new(listed("listed")), [server].into());
    let start = users::mutation_of(MutationKind::Bulk("listed".to_owned(), start));
    store.mutate(start).await.unwrap();
    for (id, step) in
        [("taken", BulkStep::Take(server)), ("ended", BulkStep::Stop("ana".to_owned()))]
    {
        let mutation = users::mutation_of(MutationKind::Bulk(id.to_owned(), step));
        store.mutate(Mutation { now: Timestamp::now().into(), ..mutation }).await.unwrap();
    }
    let mut copy = store.copy(&AtomicBool::new(false)).unwrap();
    let backup = folder.path().join("backup");
    copy.rewind().unwrap();
    std::io::copy(&mut copy, &mut fs::File::create(&backup).unwrap()).unwrap();
    let restored = folder.path().join("restored");
    embedded::restore(&backup, &restored).unwrap();

    let restored_store = open(&restored).unwrap();
    assert_eq!(due(&restored_store, 10).await, Vec::<String>::new());
    let users = restored_store.listed_users(&Tenant::DEFAULT, "listed", 0).await.unwrap();
    assert_eq!(users, [server]);
    let find = async |store: &Embedded, id| {
        store.bulk_change(&Tenant::DEFAULT, id).await.unwrap().unwrap()
    };
    let (before, stopped) = (find(&store, "taken").await, find(&restored_store, "taken").await);
    assert_eq!((before.state, before.lease.is_some()), (BulkState::Running, true));
    assert_eq!((stopped.state, &*stopped.end_reason), (BulkState::Stopped, "RESTORED"));
    assert!(stopped.lease.is_none() && stopped.end_time.is_some());
    assert_eq!(find(&restored_store, "ended").await, find(&store, "ended").await);
    drop(restored_store);
    assert_eq!(findings(&[], &format!("embedded:{}", restored.display())), []);
}
