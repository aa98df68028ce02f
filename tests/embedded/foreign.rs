//! Folders that are no store, or one that is in use: opening says what is wrong and changes
//! nothing.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use polynym::store::embedded::OpenError;
use redb::{Database, TableDefinition};

use super::support::users;
use super::{FILE, database, open};

/// Opens a folder that must be refused, with its file left as it was.
fn refused(folder: &Path) -> OpenError {
    let file = folder.join(FILE);
    let before = fs::read(&file).unwrap();
    let Err(error) = open(folder) else { panic!("a foreign file was opened") };
    assert!(before == fs::read(&file).unwrap(), "a file that was refused was changed: {error}");
    assert!(
        error.to_string().contains("directory.redb"),
        "the message does not name the file: {error}"
    );
    error
}

fn refused_bytes(bytes: &[u8]) -> OpenError {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE), bytes).unwrap();
    refused(folder.path())
}

/// What opening says of a file that another program made with the same database.
fn refused_database(fill: impl FnOnce(&Database) -> Result<(), redb::Error>) -> OpenError {
    let folder = tempfile::tempdir().unwrap();
    fill(&Database::create(folder.path().join(FILE)).unwrap()).unwrap();
    refused(folder.path())
}

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

fn set_schema(database: &Database, name: &str, version: u64) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(META)?.insert(name, version)?;
    Ok(transaction.commit()?)
}

#[test]
fn another_kind_of_file_is_foreign() {
    let noise: Vec<u8> =
        (0..100_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for bytes in [
        b"x".as_slice(),
        b"Dear Joe,\n",
        b"redb",
        b"redb\x1A\x0A\xA9\x0D",
        b"SQLite format 3\0",
        &noise,
    ] {
        assert!(matches!(refused_bytes(bytes), OpenError::Foreign { .. }));
    }
}

#[test]
fn a_file_that_only_begins_like_a_database_is_damaged() {
    let mut bytes = b"redb\x1A\x0A\xA9\x0D\x0A".to_vec();
    for length in [9, 10, 100, 319, 320, 321, 4_096, 100_000] {
        bytes.resize(length, 0x5a);
        let error = refused_bytes(&bytes);
        assert!(matches!(error, OpenError::Damaged { .. }), "{length} bytes: {error}");
    }
}

#[test]
fn another_programs_database_is_foreign() {
    let empty = refused_database(|_| Ok(()));
    assert!(matches!(empty, OpenError::Foreign { .. }), "{empty}");
    let other = refused_database(|database| {
        let transaction = database.begin_write()?;
        transaction.open_table(TableDefinition::<u64, u64>::new("accounts"))?.insert(1, 2)?;
        Ok(transaction.commit()?)
    });
    assert!(matches!(other, OpenError::Foreign { .. }), "{other}");
    let meta_of_its_own = refused_database(|database| {
        let transaction = database.begin_write()?;
        transaction.open_table(TableDefinition::<u64, u64>::new("meta"))?.insert(1, 2)?;
        Ok(transaction.commit()?)
    });
    assert!(matches!(meta_of_its_own, OpenError::Foreign { .. }), "{meta_of_its_own}");
    let no_version = refused_database(|database| set_schema(database, "scheme", 1));
    assert!(matches!(no_version, OpenError::Foreign { .. }), "{no_version}");
}

#[test]
fn another_version_is_named() {
    for version in [0, 1, 2, 3, 6, u64::MAX] {
        let error = refused_database(|database| set_schema(database, "schema", version));
        assert!(matches!(error, OpenError::Version { found, .. } if found == version), "{error}");
    }
}

#[test]
fn later_rules_are_named() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    set_schema(&database(folder.path()), "rules", 7).unwrap();
    let error = refused(folder.path());
    assert!(error.to_string().contains("rules version 7"), "{error}");
}

#[test]
fn a_store_without_its_tables_is_damaged() {
    for version in [4, 5] {
        let error = refused_database(|database| set_schema(database, "schema", version));
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    }
}

#[test]
fn what_is_no_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    for path in [&file, &file.join("below")] {
        let Err(error) = open(path) else { panic!("a file was opened as a folder") };
        assert!(
            matches!(error, OpenError::Io { .. }) && error.to_string().contains("file"),
            "{error}"
        );
    }
    fs::create_dir(folder.path().join(FILE)).unwrap();
    assert!(matches!(open(folder.path()), Err(OpenError::Io { .. })));
}

#[test]
fn a_link_that_leads_nowhere_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (link, target) = (folder.path().join(FILE), folder.path().join("nowhere"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let Err(error) = open(folder.path()) else { panic!("a store was made") };
    assert!(
        matches!(&error, OpenError::Io { error, .. } if error.kind() == ErrorKind::NotFound),
        "{error}"
    );
    assert!(error.to_string().contains("directory.redb"), "{error}");
    assert!(link.is_symlink() && !target.exists());
}

#[tokio::test]
async fn a_folder_has_one_store_at_a_time() {
    use polynym::directory::Store;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made/when/opened");
    let store = open(&path).unwrap();
    assert!(matches!(open(&path), Err(OpenError::InUse { .. })));
    store.mutate(users::creation(1)).await.unwrap();
    assert!(matches!(open(&path), Err(OpenError::InUse { .. })));
    assert!(users::look_up(&store, 1).await.unwrap());
    drop(store);
    assert!(users::look_up(&open(&path).unwrap(), 1).await.unwrap());
}
