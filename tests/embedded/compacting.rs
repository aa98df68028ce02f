//! `store compact`: the file becomes smaller and keeps its content, whenever the command is killed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use polynym_directory::{Mutations, UserChange};
use polynym_embedded::Embedded;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::server::polynym;
use super::support::scenarios::store_command::findings;
use super::support::users;
use super::{FILE, open};

/// The users of a store, of which some stay.
const USERS: usize = 600;
const STAYING: usize = 40;
const KILLS: u32 = 12;

fn compact(folder: &Path) -> Output {
    let store = format!("embedded:{}", folder.display());
    polynym(&["store", "compact", "--store", &store]).output().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn length(folder: &Path) -> u64 {
    fs::metadata(folder.join(FILE)).unwrap().len()
}

/// A closed store most of whose users were purged.
fn store() -> (TempDir, Runtime) {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
    let store = open(folder.path()).unwrap();
    let mutate = |mutation| runtime.block_on(store.mutate(mutation)).unwrap();
    (0..USERS).for_each(|n| drop(mutate(users::creation(n))));
    (STAYING..USERS).for_each(|n| drop(mutate(users::mutation(users::id(n), UserChange::Purge))));
    drop(store);
    (folder, runtime)
}

/// Checks that the store has the users that stay, and no others.
fn check(folder: &Path, runtime: &Runtime) {
    assert_eq!(findings(&[], &format!("embedded:{}", folder.display())), []);
    let store: Embedded = open(folder).unwrap();
    for n in 0..USERS {
        let found = runtime.block_on(users::look_up(&store, n)).unwrap();
        assert_eq!(found, n < STAYING, "user {n}");
    }
}

#[test]
fn a_compacted_store_is_smaller_and_has_the_same_content() {
    let (folder, runtime) = store();
    let (file, before) = (folder.path().join(FILE), length(folder.path()));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let output = compact(folder.path());
    assert!(output.status.success(), "{output:?}");
    let after = length(folder.path());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(after < before / 2, "{before} bytes before, {after} after");
    assert!(text.contains(&format!("{before} bytes")), "{text}");
    assert!(text.contains(&format!("{after} bytes")), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(names(folder.path()), [FILE]);
    check(folder.path(), &runtime);

    let again = compact(folder.path());
    assert!(again.status.success() && length(folder.path()) <= after, "{again:?}");
}

#[test]
fn a_store_in_use_is_not_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let server = open(folder.path()).unwrap();
    let before = fs::read(folder.path().join(FILE)).unwrap();
    let output = compact(folder.path());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("in use by another process"), "{text}");
    assert!(before == fs::read(folder.path().join(FILE)).unwrap());
    drop(server);
}

#[test]
fn a_damaged_store_is_not_compacted() {
    let (folder, _) = store();
    let (file, name) = (folder.path().join(FILE), b"User 7");
    let mut bytes = fs::read(&file).unwrap();
    let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(name)).collect();
    places.iter().for_each(|at| bytes[*at] ^= 1);
    fs::write(&file, &bytes).unwrap();
    let output = compact(folder.path());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("restore it from a backup"), "{text}");
    assert_eq!(names(folder.path()), [FILE]);
    assert_eq!(length(folder.path()), bytes.len() as u64);
}

/// The drafts in a folder.
fn drafts(folder: &Path) -> Vec<PathBuf> {
    let names = names(folder).into_iter().filter(|name| name.starts_with(".directory.redb-"));
    names.map(|name| folder.join(name)).collect()
}

/// The owner of the folder, who is not trusted, puts a link in place of the new file.
#[test]
fn a_link_in_place_of_the_new_file_is_not_followed() {
    let (folder, runtime) = store();
    let other = tempfile::NamedTempFile::new().unwrap();
    let before = fs::metadata(&other).unwrap();
    fs::set_permissions(folder.path().join(FILE), fs::Permissions::from_mode(0o666)).unwrap();
    let replace = |step: &str| {
        if step.starts_with("copying") {
            let draft = drafts(folder.path()).pop().unwrap();
            fs::remove_file(&draft).unwrap();
            symlink(other.path(), &draft).unwrap();
        }
    };
    let error = polynym_embedded::compact(folder.path(), &replace).unwrap_err().to_string();
    assert!(error.contains("was replaced meanwhile"), "{error}");
    let after = fs::metadata(&other).unwrap();
    assert_eq!((after.mode(), after.uid()), (before.mode(), before.uid()));
    check(folder.path(), &runtime);
}

#[test]
fn a_store_that_takes_the_place_of_the_copied_one_stays() {
    let (folder, runtime) = store();
    let (file, away) = (folder.path().join(FILE), folder.path().join("away"));
    let replace = |step: &str| {
        if step.starts_with("copying") {
            fs::rename(&file, &away).unwrap();
            fs::write(&file, "a newer store").unwrap();
        }
    };
    let error = polynym_embedded::compact(folder.path(), &replace).unwrap_err().to_string();
    assert!(error.contains("was replaced meanwhile"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), b"a newer store");
    assert!(drafts(folder.path()).is_empty());
    fs::rename(&away, &file).unwrap();
    check(folder.path(), &runtime);
}

/// Stores of two folders whose files are in a third one, each under a name of its own.
#[test]
fn two_stores_that_link_into_one_folder_are_not_compacted_at_once() {
    let disk = tempfile::tempdir().unwrap();
    let linked = ["one", "two"].map(|name| {
        let (folder, runtime) = store();
        let file = folder.path().join(FILE);
        fs::copy(&file, disk.path().join(name)).unwrap();
        fs::remove_file(&file).unwrap();
        symlink(disk.path().join(name), &file).unwrap();
        (folder, runtime)
    });
    let [(one, runtime), (two, _)] = &linked;
    let compact_other = |step: &str| {
        if step.starts_with("copying") {
            let output = compact(two.path());
            let text = String::from_utf8(output.stderr).unwrap();
            assert!(!output.status.success() && text.contains("in use by another"), "{text}");
            assert_eq!(drafts(disk.path()).len(), 1);
        }
    };
    polynym_embedded::compact(one.path(), &compact_other).unwrap();
    check(one.path(), runtime);
    assert!(compact(two.path()).status.success());
    check(two.path(), runtime);
}

/// The kills are spread over the time that a whole run takes.
#[test]
fn a_killed_command_loses_nothing() {
    let (folder, runtime) = store();
    let sound = fs::read(folder.path().join(FILE)).unwrap();
    let begun = Instant::now();
    assert!(compact(folder.path()).status.success());
    let whole = begun.elapsed().max(Duration::from_millis(KILLS.into()));
    for kill in 0..KILLS {
        fs::write(folder.path().join(FILE), &sound).unwrap();
        let name = format!("embedded:{}", folder.path().display());
        let mut command = polynym(&["store", "compact", "--store", &name]);
        let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = silent.spawn().unwrap();
        sleep(whole * kill / KILLS);
        child.kill().unwrap();
        child.wait().unwrap();
        check(folder.path(), &runtime);
    }
    assert!(compact(folder.path()).status.success());
    assert_eq!(names(folder.path()), [FILE]);
    check(folder.path(), &runtime);
}
