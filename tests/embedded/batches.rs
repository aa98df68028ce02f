//! A batch is answered from one snapshot, however long it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use conformance::StoreFactory;
use polynym_directory::{Backend, Consistency, UserChange, View};
use polynym_embedded::Options;
use polynym_identifier::{Identifier, IdentityKey, RawIdentifier};

use super::Folder;
use super::support::users;

const NAMES: usize = 200;
const BATCHES: usize = 20;

fn name(n: usize) -> Identifier {
    Identifier::parse(RawIdentifier::Handle(&format!("name{n}"))).unwrap()
}

/// Resolves all names in one batch, in a loop, and asserts that the user owns exactly one.
async fn watch(store: Backend, done: Arc<AtomicBool>, batches: Arc<AtomicUsize>) {
    let keys: Vec<_> = (0..NAMES).map(|n| IdentityKey::new("default", &name(n))).collect();
    while !done.load(Ordering::Relaxed) {
        let found = store
            .lookups
            .resolve(&keys, Consistency::Latest, View::Full, Duration::ZERO)
            .await
            .unwrap()
            .found;
        let owned: Vec<_> = (0..NAMES).filter(|n| matches!(found[*n], Ok(Some(_)))).collect();
        assert_eq!(owned.len(), 1, "names of a user who owns one: {owned:?}");
        batches.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_reads_one_snapshot() {
    let folder = Folder::new(Options::default());
    let store = folder.open().await.unwrap();
    store.mutations.mutate(users::creation(1)).await.unwrap();
    store
        .mutations
        .mutate(users::mutation(users::id(1), UserChange::Link(users::identity(name(0)))))
        .await
        .unwrap();
    let (done, batches) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let watcher = tokio::spawn(watch(store.clone(), done.clone(), batches.clone()));
    let mut moves = 0;

    while !watcher.is_finished() && (moves < NAMES || batches.load(Ordering::Relaxed) < BATCHES) {
        let replace =
            UserChange::Replace(name(moves % NAMES), users::identity(name((moves + 1) % NAMES)));
        store.mutations.mutate(users::mutation(users::id(1), replace)).await.unwrap();
        moves += 1;
    }

    done.store(true, Ordering::Relaxed);
    watcher.await.unwrap();
    println!(
        "{} batches, each with one name, while it moved {moves} times",
        batches.load(Ordering::Relaxed)
    );
}
