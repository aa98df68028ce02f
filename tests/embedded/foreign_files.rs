//! Folders without a store, or with one that is in use: opening reports the error and changes
//! nothing.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use polynym_directory::Mutations;
use polynym_embedded::OpenError;
use polynym_identifier::RULES_VERSION;
use redb::{Database, TableDefinition};

use super::support::users;
use super::{FILE, database, open};

/// Opens a folder that must be refused, and asserts that its file is unchanged.
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

/// Returns the error of opening a redb file that another program has filled.
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
fn files_of_other_formats_are_foreign() {
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
fn a_file_with_only_a_database_header_is_damaged() {
    let mut bytes = b"redb\x1A\x0A\xA9\x0D\x0A".to_vec();
    for length in [9, 10, 100, 319, 320, 321, 4_096, 100_000] {
        bytes.resize(length, 0x5a);
        let error = refused_bytes(&bytes);
        assert!(matches!(error, OpenError::Damaged { .. }), "{length} bytes: {error}");
    }
}

#[test]
fn a_database_of_another_program_is_foreign() {
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
fn unsupported_versions_are_named() {
    for version in [0, 4, 10, 12, u64::MAX] {
        let error = refused_database(|database| set_schema(database, "schema", version));
        assert!(matches!(error, OpenError::Version { found, .. } if found == version), "{error}");
    }
}

#[test]
fn unsupported_rules_are_named() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    set_schema(&database(folder.path()), "rules", 7).unwrap();
    let error = refused(folder.path());
    assert!(error.to_string().contains("rules version 7"), "{error}");
}

#[test]
fn a_store_without_its_tables_is_damaged() {
    let error = refused_database(|database| {
        set_schema(database, "rules", u64::from(RULES_VERSION))?;
        set_schema(database, "schema", 12)
    });
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

#[test]
fn a_file_in_place_of_a_folder_is_named() {
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
fn a_dangling_link_is_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let (link, target) = (folder.path().join(FILE), folder.path().join("nowhere"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let Err(error) = open(folder.path()) else { panic!("a store was created") };
    assert!(
        matches!(&error, OpenError::Io { error, .. } if error.kind() == ErrorKind::NotFound),
        "{error}"
    );
    assert!(error.to_string().contains("directory.redb"), "{error}");
    assert!(link.is_symlink() && !target.exists());
}

#[tokio::test]
async fn a_folder_is_opened_by_one_store_at_a_time() {
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
