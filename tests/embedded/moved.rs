//! A store whose file, or whose folder, another program moves, deletes or replaces while it is
//! open: nothing is acknowledged that the next start would not find, and no second store is opened
//! beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use polynym::directory::{Error, Store};
use polynym::store::embedded::{Embedded, OpenError};
use tempfile::TempDir;

use super::support::users;
use super::{FILE, open};

/// A store with user 0, in a folder that can go away.
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

    /// Users can be read, and not changed.
    async fn is_read_only(&self, what: &str) {
        for _ in 0..3 {
            let refused = self.store.mutate(users::creation(1)).await;
            assert!(matches!(refused, Err(Error::Unavailable(_))), "{what}: {refused:?}");
            let check = self.store.check().await;
            assert!(
                matches!(check, Err(Error::Unavailable(_))),
                "{what}: the store says that it is well: {check:?}"
            );
            assert!(
                users::look_up(&self.store, 0).await.unwrap(),
                "{what}: a user who was read before is not there"
            );
            // Longer than it takes until the store tries again.
            tokio::time::sleep(Duration::from_millis(600)).await;
        }
    }

    async fn comes_back(&self) {
        let start = Instant::now();
        while self.store.check().await.is_err() {
            assert!(start.elapsed() < Duration::from_secs(60), "the store does not come back");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(users::look_up(&self.store, 0).await.unwrap());
        assert!(!users::look_up(&self.store, 1).await.unwrap(), "what was refused happened");
        self.store.mutate(users::creation(1)).await.unwrap();
    }

    /// What the next start finds.
    fn reopened(self) -> Embedded {
        drop(self.store);
        open(&self.folder).unwrap()
    }
}

/// The first mutation after the move is refused, without a check before it.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_renamed_takes_no_mutations_until_it_is_back() {
    let moved = Moved::new().await;
    fs::rename(moved.file(), moved.elsewhere()).unwrap();
    moved.is_read_only("renamed").await;
    assert!(
        !moved.file().exists(),
        "an empty store was put in the place of the one that was moved"
    );
    fs::rename(moved.elsewhere(), moved.file()).unwrap();
    moved.comes_back().await;
    assert!(users::look_up(&moved.reopened(), 1).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_was_renamed_takes_no_mutations_until_it_is_back() {
    let moved = Moved::new().await;
    fs::rename(&moved.folder, moved.elsewhere()).unwrap();
    moved.is_read_only("renamed").await;
    assert!(!moved.folder.exists(), "a folder was made");
    fs::rename(moved.elsewhere(), &moved.folder).unwrap();
    moved.comes_back().await;
    assert!(users::look_up(&moved.reopened(), 1).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_was_deleted_is_still_read() {
    type Delete = fn(&Moved);
    let deletions: [(&str, Delete); 2] = [
        ("its file", |moved| fs::remove_file(moved.file()).unwrap()),
        ("its folder", |moved| fs::remove_dir_all(&moved.folder).unwrap()),
    ];
    for (what, delete) in deletions {
        let moved = Moved::new().await;
        delete(&moved);
        moved.is_read_only(what).await;
        assert!(!moved.file().exists(), "{what}: an empty store was made");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_put_in_the_place_of_another_is_served_from_then_on() {
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
    moved.comes_back().await;
    assert!(
        users::look_up(&moved.store, 2).await.unwrap(),
        "the store still reads the file that was replaced"
    );
    let store = moved.reopened();
    assert!(users::look_up(&store, 1).await.unwrap() && users::look_up(&store, 2).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_whose_file_was_moved_is_still_in_use() {
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
