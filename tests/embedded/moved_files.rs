//! Stores whose file or folder is moved, deleted or replaced while open: no mutation is
//! acknowledged that the next start would miss, and no second store is opened beside them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use polynym_directory::{Error, Mutations, Reads};
use polynym_embedded::{Embedded, OpenError};
use tempfile::TempDir;

use super::support::users;
use super::{FILE, open};

/// A store with user 0, in a folder that can be moved or removed.
struct Moved {
    store: Embedded,
    folder: PathBuf,
    parent: TempDir,
}

impl Moved {
    async fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("store");
        let store = open(&folder).unwrap();
        store.mutate(users::creation(0)).await.unwrap();
        store.check().await.unwrap();
        Self { store, folder, parent }
    }

    fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    fn elsewhere(&self) -> PathBuf {
        self.parent.path().join("elsewhere")
    }

    /// Asserts that users can be read and mutations are refused.
    async fn is_read_only(&self, what: &str) {
        for _ in 0..3 {
            let refused = self.store.mutate(users::creation(1)).await;
            assert!(matches!(refused, Err(Error::Unavailable(_))), "{what}: {refused:?}");
            let check = self.store.check().await;
            assert!(
                matches!(check, Err(Error::Unavailable(_))),
                "{what}: the store reports itself healthy: {check:?}"
            );
            assert!(users::look_up(&self.store, 0).await.unwrap(), "{what}: user 0 is missing");
            // Longer than the retry interval of the store.
            tokio::time::sleep(Duration::from_millis(600)).await;
        }
    }

    async fn wait_for_recovery(&self) {
        let start = Instant::now();
        while self.store.check().await.is_err() {
            assert!(start.elapsed() < Duration::from_secs(60), "the store does not recover");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(users::look_up(&self.store, 0).await.unwrap());
        assert!(!users::look_up(&self.store, 1).await.unwrap(), "a refused mutation took effect");
        self.store.mutate(users::creation(1)).await.unwrap();
    }

    /// Closes the store and opens it again.
    fn reopened(self) -> Embedded {
        drop(self.store);
        open(&self.folder).unwrap()
    }
}

/// The first mutation after the move is refused without a preceding health check.
#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_file_refuses_mutations_until_it_is_restored() {
    let moved = Moved::new().await;
    fs::rename(moved.file(), moved.elsewhere()).unwrap();
    moved.is_read_only("renamed").await;
    assert!(!moved.file().exists(), "an empty store replaced the moved one");
    fs::rename(moved.elsewhere(), moved.file()).unwrap();
    moved.wait_for_recovery().await;
    assert!(users::look_up(&moved.reopened(), 1).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_folder_refuses_mutations_until_it_is_restored() {
    let moved = Moved::new().await;
    fs::rename(&moved.folder, moved.elsewhere()).unwrap();
    moved.is_read_only("renamed").await;
    assert!(!moved.folder.exists(), "a folder was created");
    fs::rename(moved.elsewhere(), &moved.folder).unwrap();
    moved.wait_for_recovery().await;
    assert!(users::look_up(&moved.reopened(), 1).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_store_stays_readable() {
    type Delete = fn(&Moved);
    let deletions: [(&str, Delete); 2] = [
        ("its file", |moved| fs::remove_file(moved.file()).unwrap()),
        ("its folder", |moved| fs::remove_dir_all(&moved.folder).unwrap()),
    ];
    for (what, delete) in deletions {
        let moved = Moved::new().await;
        delete(&moved);
        moved.is_read_only(what).await;
        assert!(!moved.file().exists(), "{what}: an empty store was created");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_file_is_served() {
    let moved = Moved::new().await;
    let other = moved.parent.path().join("other");
    let store = open(&other).unwrap();
    for n in [0, 2] {
        store.mutate(users::creation(n)).await.unwrap();
    }

    drop(store);
    fs::rename(other.join(FILE), moved.file()).unwrap();
    let refused = moved.store.mutate(users::creation(1)).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");

    moved.wait_for_recovery().await;
    assert!(
        users::look_up(&moved.store, 2).await.unwrap(),
        "the store still reads the file that was replaced"
    );

    let store = moved.reopened();
    assert!(users::look_up(&store, 1).await.unwrap() && users::look_up(&store, 2).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_whose_file_was_moved_stays_in_use() {
    let in_use = |folder: &Path| matches!(open(folder), Err(OpenError::InUse { .. }));
    let moved = Moved::new().await;
    fs::rename(moved.file(), moved.elsewhere()).unwrap();
    assert!(in_use(&moved.folder), "a second store was opened in the folder");

    moved.is_read_only("renamed").await;
    assert!(in_use(&moved.folder), "a second store was opened in the folder");
    let folder = moved.parent.path().join("new");
    fs::create_dir(&folder).unwrap();
    fs::rename(moved.elsewhere(), folder.join(FILE)).unwrap();
    assert!(in_use(&folder), "the moved file was opened while its store may still write");

    drop(moved.store);
    assert!(users::look_up(&open(&folder).unwrap(), 0).await.unwrap());
}
