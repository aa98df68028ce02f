//! Attributes in damaged stores: lost names, and missing or ownerless entries of the index.

use std::path::Path;

use locality_uuid::LocalityId;
use polynym_directory::{
    AccessPath, AttributeDefinition, DefinitionUpdate, Filter, Histories, MutationKind, Mutations,
    PageLimit, PolicyUpdate, Search, Tenant, TenantChange, Timestamp, View,
};
use polynym_embedded::{Embedded, Options};
use polynym_identifier::Rules;
use redb::{ReadableTable, Table, TableDefinition};

use super::{stdout, store};
use crate::support::database;
use crate::support::scenarios::damaged_attributes::{create, expected, findings};
use crate::users::{self, id};

const ATTRIBUTES: TableDefinition<'_, &[u8], ()> = TableDefinition::new("attributes");
const EVENT_ORDER: TableDefinition<'_, (&str, i64, u64), ()> = TableDefinition::new("event_order");
const NAMES: TableDefinition<'_, (&str, u32), (i64, &str)> =
    TableDefinition::new("attribute_names");

/// The users that a condition finds.
async fn found(store: &impl Search, condition: &str) -> Vec<LocalityId> {
    let path: AccessPath =
        Filter::parse(condition, &[Rules::PRESENT]).unwrap().access_paths().remove(0);
    let found = store.search(&Tenant::DEFAULT, &path, None, 1_000, View::Basic).await.unwrap();
    found.into_readable().map(|found| found.user.id).collect()
}

fn open(folder: &Path) -> Embedded {
    Embedded::open(folder, Options::default()).unwrap()
}

/// Changes the index of a store that is closed.
fn change(folder: &Path, change: impl FnOnce(&mut Table<'_, &'static [u8], ()>)) {
    let transaction = database(folder).begin_write().unwrap();
    change(&mut transaction.open_table(ATTRIBUTES).unwrap());
    transaction.commit().unwrap();
}

/// The entries of a user.
fn entries(index: &Table<'_, &'static [u8], ()>, user: LocalityId) -> Vec<Vec<u8>> {
    let keys = index.iter().unwrap().map(|entry| entry.unwrap().0.value().to_vec());
    keys.filter(|key| key.ends_with(user.as_bytes())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = (folder.path(), format!("embedded:{}", folder.path().display()));
    create(&open(path), 40).await;
    assert!(store(&["verify"], &name).status.success());

    change(path, |index| {
        for key in entries(index, id(8)) {
            index.remove(key.as_slice()).unwrap();
        }
        // Of the attributes and the two fields of a user, one.
        let of_11 = entries(index, id(11));
        assert!(of_11.len() >= 3, "{of_11:?}");
        index.remove(of_11[0].as_slice()).unwrap();
        // The values of one user, under the ids of another and of no user.
        let key = entries(index, id(3)).remove(0);
        for other in [5, 9_999] {
            let stray = [&key[..key.len() - 16], id(other).as_bytes()].concat();
            index.insert(stray.as_slice(), ()).unwrap();
        }
    });
    let text = stdout(&store(&["verify"], &name));
    let lacks = format!("user {}: the index of searches lacks values", id(8));
    assert!(text.contains(&lacks), "{text}");
    assert!(text.ends_with("4 findings; --repair would repair 4 of them\n"), "{text}");
    assert!(!text.contains("team") && !text.contains("default"), "an entry is shown: {text}");

    let mut found_words = findings(&["--repair"], &name);
    found_words.sort();
    let mut wanted = vec![
        expected("unindexed", 8),
        expected("unindexed", 11),
        expected("stray_entry", 5),
        expected("stray_entry", 9_999),
    ];
    wanted.sort();
    assert_eq!(found_words, wanted);
    let again = stdout(&store(&["verify"], &name));
    assert!(again.contains("no inconsistency"), "{again}");
    let store = open(path);
    assert!(found(&store, "attributes.team = t1").await.contains(&id(8)));
    assert_eq!(found(&store, "attributes.level = 11").await, [id(11)]);
}

/// Events that are not among those of their tenant are found again.
#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_events_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = (folder.path(), format!("embedded:{}", folder.path().display()));
    create(&open(path), 10).await;
    let transaction = database(path).begin_write().unwrap();
    let removed = {
        let mut order = transaction.open_table(EVENT_ORDER).unwrap();
        order.extract_if(|(_, _, number), ()| number % 5 == 0).unwrap().count()
    };
    transaction.commit().unwrap();
    assert!(removed >= 2, "{removed}");
    let found_words = findings(&["--repair"], &name);
    assert!(found_words.iter().all(|(word, _)| word == "unindexed"), "{found_words:?}");
    assert_eq!(found_words.len(), removed, "a user has one event");
    let again = stdout(&store(&["verify"], &name));
    assert!(again.contains("no inconsistency"), "{again}");
    let all = Timestamp::MIN..Timestamp::MAX;
    let (store, limit) = (open(path), PageLimit::unlimited());
    let listed = store.newest_events(&Tenant::DEFAULT, all, None, limit).await.unwrap();
    assert_eq!(listed.events.len(), 10);
}

/// While the index follows a definition, entries are optional.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_during_a_change_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("embedded:{}", folder.path().display());
    let store = open(folder.path());
    let tenant = |change| users::mutation_of(MutationKind::Tenant(change));
    // The tenant of the users.
    store.mutate(tenant(TenantChange::Set(PolicyUpdate::default()))).await.unwrap();
    create(&store, 10).await;
    let definition = AttributeDefinition { indexed: false, ..AttributeDefinition::default() };
    let definitions = [("level".to_owned(), definition)].into();
    let attributes = DefinitionUpdate { replace: false, definitions };
    let update = PolicyUpdate { attributes, ..PolicyUpdate::default() };
    store.mutate(tenant(TenantChange::Set(update))).await.unwrap();
    drop(store);
    assert_eq!(findings(&[], &name), []);

    // As after rewriting all users.
    let done = TenantChange::FinishIndexChanges(Timestamp::MAX);
    open(folder.path()).mutate(tenant(done)).await.unwrap();
    let strays: Vec<_> = (1..10).step_by(2).map(|n| expected("stray_entry", n)).collect();
    assert_eq!(findings(&["--repair"], &name), strays);
    assert_eq!(findings(&[], &name), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_name_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = (folder.path(), format!("embedded:{}", folder.path().display()));
    create(&open(path), 4).await;
    let transaction = database(path).begin_write().unwrap();
    {
        let mut names = transaction.open_table(NAMES).unwrap();
        let stored = names.iter().unwrap().map(|row| {
            let (token, name) = row.unwrap();
            (token.value().1, name.value().1.to_owned())
        });
        let rows: Vec<_> = stored.collect();
        assert_eq!(rows, [(0, "team".to_owned()), (1, "level".to_owned())]);
        names.remove(("default", 0)).unwrap();
    }
    transaction.commit().unwrap();
    let all: Vec<_> = (0..4).map(|n| expected("unnamed", n)).collect();
    assert_eq!(findings(&["--repair"], &name), all);
    let text = stdout(&store(&["verify"], &name));
    assert!(text.contains("an attribute of a user has no name"), "{text}");

    let transaction = database(path).begin_write().unwrap();
    transaction.open_table(NAMES).unwrap().insert(("default", 0), (0, "team")).unwrap();
    transaction.open_table(NAMES).unwrap().remove(("default", 1)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(findings(&["--repair"], &name), [expected("unnamed", 1), expected("unnamed", 3)]);
}
