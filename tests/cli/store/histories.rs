//! Damaged histories: events of another user, and former owners that are missing or wrong.

use std::path::Path;

use polynym_embedded::{Embedded, Options};
use redb::{ReadableTable, TableDefinition};

use super::{stdout, store};
use crate::support::database;
use crate::support::scenarios::damaged_histories::{create, expected, findings, key};

const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
const ENDED: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("ended");

fn change(folder: &Path, change: impl FnOnce(&redb::WriteTransaction)) {
    let transaction = database(folder).begin_write().unwrap();
    change(&transaction);
    transaction.commit().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn inconsistent_histories_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = (folder.path(), format!("embedded:{}", folder.path().display()));
    create(&Embedded::open(path, Options::default()).unwrap()).await;
    assert_eq!(findings(&name), []);

    change(path, |transaction| {
        let mut ended = transaction.open_table(ENDED).unwrap();
        // The handle of user 1 lacks its former owner. The handle of user 2 has that of user 3.
        ended.remove(key(1).as_bytes()).unwrap();
        let other = ended.get(key(3).as_bytes()).unwrap().unwrap().value().to_vec();
        ended.insert(key(2).as_bytes(), other.as_slice()).unwrap();
    });
    let wanted = expected(&[("ownership", 1), ("ownership", 2), ("ownership", 3)]);
    assert_eq!(findings(&name), wanted);
    let text = stdout(&store(&["verify"], &name));
    assert!(!text.contains("user1"), "an identity is shown: {text}");

    change(path, |transaction| {
        let mut events = transaction.open_table(EVENTS).unwrap();
        let other = events.get(2).unwrap().unwrap().value().to_vec();
        events.insert(8, other.as_slice()).unwrap();
    });
    let with_event = [("history", 3), ("ownership", 1), ("ownership", 2)];
    assert_eq!(findings(&name), expected(&with_event));
}
