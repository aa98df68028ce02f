//! Backups of a store: a damaged one is refused, whichever bytes have changed, and nothing is
//! written.

use std::fs;
use std::io::{Read, Seek};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Stdio;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::Instant;

use polynym_directory::{Mutations, StoreFile};
use polynym_embedded::{OpenError, Restored, restore};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use redb::{Database, TableDefinition};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::server::polynym;
use super::support::users;
use super::{FILE, open};

const USERS: usize = 40;
const KILLS: u32 = 8;
/// The header of a backup: magic, checksum, length, and zeros.
const HEADER: usize = 4_096;

/// The bytes of a backup of a store with users.
static BACKUP: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let runtime = Runtime::new().unwrap();
    for n in 0..USERS {
        runtime.block_on(store.mutate(users::creation(n))).unwrap();
    }
    let (mut copy, mut bytes) = (store.copy(&AtomicBool::new(false)).unwrap(), Vec::new());
    copy.rewind().unwrap();
    copy.read_to_end(&mut bytes).unwrap();
    bytes
});

/// A folder with a backup of these bytes alone.
fn folder_with(bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("backup"), bytes).unwrap();
    folder
}

fn restored_in(folder: &Path) -> Result<Restored, OpenError> {
    restore(&folder.join("backup"), &folder.join("new/store"))
}

/// The error of a backup of these bytes, which must be refused.
fn refused(bytes: &[u8]) -> OpenError {
    let folder = folder_with(bytes);
    let error = restored_in(folder.path()).expect_err("a damaged backup was restored");
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["backup"], "{error}");
    assert!(fs::read(folder.path().join("backup")).unwrap() == bytes, "the backup was changed");
    let text = error.to_string();
    assert!(text.contains("/backup") && text.contains("nothing was restored"), "{text}");
    error
}

fn is_damaged(error: &OpenError) -> bool {
    matches!(error, OpenError::DamagedBackup { .. })
        && error.to_string().contains("restore an earlier backup")
}

fn has_all_users(folder: &Path) {
    let (store, runtime) = (open(folder).unwrap(), Runtime::new().unwrap());
    for n in 0..USERS {
        assert!(runtime.block_on(users::look_up(&store, n)).unwrap(), "user {n}");
    }
}

#[test]
fn a_sound_backup_is_restored() {
    let folder = folder_with(&BACKUP);
    let sound = Restored { had_checksum: true, unreadable_users: 0 };
    assert_eq!(restored_in(folder.path()).unwrap(), sound);
    has_all_users(&folder.path().join("new/store"));
}

#[test]
fn three_flipped_bytes_are_refused() {
    let end = BACKUP.len();
    // Magic, checksum, length, padding; then the header, the middle and the end of the database.
    for at in [0, 16, 32, 2_000, HEADER, end / 2, end - 3] {
        let mut bytes = BACKUP.clone();
        bytes[at..at + 3].iter_mut().for_each(|byte| *byte ^= 0x10);
        let error = refused(&bytes);
        let is_expected = is_damaged(&error) || matches!(error, OpenError::NotBackup { .. });
        assert!(is_expected && (at == 0 || is_damaged(&error)), "byte {at}: {error}");
    }
}

#[test]
fn another_length_is_refused() {
    let end = BACKUP.len();
    for length in [16, 17, HEADER - 1, HEADER, HEADER + 1, end / 2, end - 4_096, end - 1] {
        assert!(is_damaged(&refused(&BACKUP[..length])), "{length} bytes");
    }
    for added in [1, 4_096] {
        assert!(is_damaged(&refused(&[&BACKUP[..], &vec![0; added]].concat())), "{added} added");
    }
}

#[test]
fn other_files_are_refused() {
    for bytes in [&b""[..], b"x", b"Dear Joe,\n", b"polynym-backup-2", b"SQLite format 3\0"] {
        let error = refused(bytes);
        assert!(matches!(error, OpenError::NotBackup { .. }), "{error}");
        assert!(error.to_string().contains("`polynym backup`"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("other")).unwrap();
    let transaction = database.begin_write().unwrap();
    drop(transaction.open_table(TableDefinition::<u64, u64>::new("accounts")).unwrap());
    transaction.commit().unwrap();
    drop(database);
    let error = refused(&fs::read(folder.path().join("other")).unwrap());
    assert!(matches!(error, OpenError::NotBackup { .. }), "{error}");
}

proptest! {
    /// A byte that is flipped twice may be what it was.
    #[test]
    fn flipped_bytes_are_refused(flips in vec((any::<Index>(), 1..=u8::MAX), 1..8)) {
        let mut bytes = BACKUP.clone();
        for (at, mask) in flips {
            bytes[at.index(BACKUP.len())] ^= mask;
        }
        prop_assume!(bytes != *BACKUP);
        refused(&bytes);
    }
}

/// Programs of 0.2.0 and earlier wrote the database alone.
#[test]
fn a_backup_without_a_checksum_is_restored_if_its_pages_are_sound() {
    let older = &BACKUP[HEADER..];
    let folder = folder_with(older);
    let unchecked = Restored { had_checksum: false, unreadable_users: 0 };
    assert_eq!(restored_in(folder.path()).unwrap(), unchecked);
    has_all_users(&folder.path().join("new/store"));

    let name = b"User 7";
    let mut bytes = older.to_vec();
    let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(name)).collect();
    places.iter().for_each(|at| bytes[*at] ^= 1);
    assert!(is_damaged(&refused(&bytes)));
    assert!(is_damaged(&refused(&older[..older.len() - 1])));
    assert!(is_damaged(&refused(&[older, &[0]].concat())));
}

#[test]
fn a_server_names_a_backup_in_place_of_its_store() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE), &*BACKUP).unwrap();
    let Err(error) = open(folder.path()) else { panic!("a backup was opened as a store") };
    assert!(error.to_string().contains("polynym store restore"), "{error}");
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The kills are spread over the time that a whole run takes.
#[test]
fn a_killed_restore_leaves_nothing_for_long() {
    let folder = folder_with(&BACKUP);
    let stores = folder.path().join("stores");
    fs::create_dir(&stores).unwrap();
    let start = |to: &Path| {
        let store = format!("embedded:{}", to.display());
        let mut command = polynym(&["store", "restore", "--store", &store]);
        command.arg(folder.path().join("backup")).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let begun = Instant::now();
    assert!(start(&stores.join("first")).wait().unwrap().success());
    let whole = begun.elapsed();
    for kill in 0..KILLS {
        let mut child = start(&stores.join(format!("killed{kill}")));
        sleep(whole * kill / KILLS);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // A folder of another kind, and a draft in use.
    let [other, in_use] = ["other", "in-use"].map(|name| format!(".polynym-restore-{name}"));
    fs::create_dir_all(stores.join(&other).join("mine")).unwrap();
    fs::create_dir(stores.join(&in_use)).unwrap();
    let user = fs::File::open(stores.join(&in_use)).unwrap();
    user.lock().unwrap();

    assert!(start(&stores.join("last")).wait().unwrap().success());
    has_all_users(&stores.join("last"));
    let mut left = names(&stores);
    left.retain(|name| name.starts_with('.'));
    left.sort();
    assert_eq!(left, [in_use, other]);

    // A folder that existed has the draft in it.
    let present = folder.path().join("present");
    fs::create_dir_all(present.join(".polynym-restore-killed")).unwrap();
    fs::write(present.join(".polynym-restore-killed").join(FILE), "a part").unwrap();
    assert!(start(&present).wait().unwrap().success());
    assert_eq!(names(&present), [FILE]);
}

/// Only the superuser can give files away: for others, the owner is the same.
#[test]
fn stores_belong_to_the_owner_of_their_folder() {
    let folder = folder_with(&BACKUP);
    let above = folder.path().join("new");
    fs::create_dir(&above).unwrap();
    let _needs_the_superuser = chown(&above, Some(65_532), Some(65_532));
    restored_in(folder.path()).unwrap();

    // An empty folder may be a mount point: it stays the same.
    let present = above.join("present");
    fs::create_dir(&present).unwrap();
    let _needs_the_superuser = chown(&present, Some(65_531), Some(65_531));
    let before = fs::metadata(&present).unwrap();
    restore(&folder.path().join("backup"), &present).unwrap();
    assert_eq!(fs::metadata(&present).unwrap().ino(), before.ino());
    assert_eq!(fs::read_dir(&present).unwrap().count(), 1);

    // A new store as well.
    let made = above.join("made");
    fs::create_dir(&made).unwrap();
    let _needs_the_superuser = chown(&made, Some(65_530), Some(65_530));
    drop(open(&made).unwrap());

    let in_folders = [("present/directory.redb", &present), ("made/directory.redb", &made)];
    let above_them = [("store", &above), ("store/directory.redb", &above)];
    for (path, owner) in in_folders.into_iter().chain(above_them) {
        let owner_of = |path: &Path| {
            let metadata = fs::metadata(path).unwrap();
            (metadata.uid(), metadata.gid())
        };
        assert_eq!(owner_of(&above.join(path)), owner_of(owner), "{path}");
        assert_eq!(fs::metadata(above.join(path)).unwrap().mode() & 0o077, 0, "{path}");
    }
}
