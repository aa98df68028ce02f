//! Damaged events: watches leave them out, and go on.

use std::time::Duration;

use redb::{Database, ReadableTable};

use super::{creation, id};
use crate::file::opener::FILE;
use crate::options::Options;
use crate::schema::tables::EVENTS;
use crate::store::Embedded;
use polynym_directory::{EventFeed, Mutations, Tenant};

#[tokio::test]
async fn an_event_that_cannot_be_read_ends_no_watch() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), Options::default()).unwrap();
    let mut position = store.position().await.unwrap();
    for n in 0..5 {
        store.mutate(creation(n)).await.unwrap();
    }
    drop(store);
    let file = Database::open(folder.path().join(FILE)).unwrap();
    let write = file.begin_write().unwrap();
    {
        let mut events = write.open_table(EVENTS).unwrap();
        let rows = events.iter().unwrap().map(|row| row.unwrap());
        let rows: Vec<_> = rows.map(|(key, row)| (key.value(), row.value().to_vec())).collect();
        events.insert(rows[1].0, &b"short"[..]).unwrap();
        let torn = &rows[3].1[..rows[3].1.len() - 3];
        events.insert(rows[3].0, torn).unwrap();
    }
    write.commit().unwrap();
    drop(file);

    let store = Embedded::open(folder.path(), Options::default()).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let page = store.events(&Tenant::DEFAULT, &position, Duration::ZERO).await.unwrap();
        // Each event has a position from which a watch goes on.
        let Some((event, after)) = page.events.first() else { break };
        seen.push(event.user);
        position.clone_from(after);
    }
    assert_eq!(seen, [0, 2, 4].map(id));
    store.mutate(creation(5)).await.unwrap();
    let page = store.events(&Tenant::DEFAULT, &position, Duration::ZERO).await.unwrap();
    assert_eq!(page.events[0].0.user, id(5));
}
