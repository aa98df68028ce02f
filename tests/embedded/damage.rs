//! Stores with a damaged file: opening reports the damage and leaves the file unchanged. Damage
//! that opening does not read never leads to a wrong user or a panic.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;

use polynym_directory::{Error, Mutations, Reads, UserChange};
use polynym_embedded::OpenError;
use tokio::runtime::Runtime;

use super::support::users;
use super::{FILE, open};

const USERS: usize = 60;
/// The size of redb's header: magic, page size, layout and two commit slots (redb, docs/design.md).
const HEADER: usize = 320;
const PAGE: usize = 4_096;
const THREADS: usize = 8;

/// The numbers of damaged files that were refused, opened with failing reads, and read in part or
/// in full.
#[derive(Debug, Default)]
struct Tally {
    refused: usize,
    failed: usize,
    partial: usize,
    whole: usize,
}

/// A file of a sound store, to be damaged.
struct Damage {
    runtime: Runtime,
    sound: Vec<u8>,
}

/// A description of the damage, and the damaged bytes.
type Damaged = (String, Vec<u8>);

impl Damage {
    /// Takes the file of a closed store, or of a killed one.
    fn new(killed: bool) -> Self {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).unwrap();
        for n in 0..USERS {
            runtime.block_on(store.mutate(users::creation(n))).unwrap();
        }

        let file = folder.path().join(FILE);
        let while_open = fs::read(&file).unwrap();
        drop(store);
        let sound = if killed { while_open } else { fs::read(&file).unwrap() };
        Self { runtime, sound }
    }

    /// Checks the files in parallel: most of the time is spent in syncs.
    fn check(&self, files: impl Iterator<Item = Damaged> + Send) -> Tally {
        let (files, tally) = (Mutex::new(files), Mutex::new(Tally::default()));
        let work = || loop {
            let next = files.lock().unwrap().next();
            let Some((what, bytes)) = next else { break };
            self.check_one(&what, &bytes, &tally);
        };
        std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
        tally.into_inner().unwrap()
    }

    /// Opens a file with these bytes, reads all users and counts the outcome.
    fn check_one(&self, what: &str, bytes: &[u8], tally: &Mutex<Tally>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        fs::write(&file, bytes).unwrap();
        let caught = catch_unwind(AssertUnwindSafe(|| self.read_all(folder.path())));
        let outcome = caught.unwrap_or_else(|_| panic!("{what}: a panic, or a wrong user"));
        let mut tally = tally.lock().unwrap();
        match outcome {
            Err(error) => {
                let expected =
                    matches!(error, OpenError::Damaged { .. } | OpenError::Foreign { .. });
                assert!(expected, "{what}: opening fails with {error:?}");
                assert!(
                    bytes == fs::read(&file).unwrap(),
                    "{what}: a file that was refused was changed: {error}"
                );
                tally.refused += 1;
            }
            Ok((_, failed)) if failed > 0 => tally.failed += 1,
            Ok((USERS, _)) => tally.whole += 1,
            Ok(_) => tally.partial += 1,
        }
    }

    /// Returns the numbers of users found and of failed look-ups.
    fn read_all(&self, folder: &Path) -> Result<(usize, usize), OpenError> {
        let store = open(folder)?;
        let (mut present, mut failed) = (0, 0);
        for n in 0..USERS {
            match self.runtime.block_on(users::look_up(&store, n)) {
                Ok(found) => present += usize::from(found),
                Err(_) => failed += 1,
            }
        }
        Ok((present, failed))
    }
}

#[test]
fn a_truncated_file_is_refused() {
    for killed in [false, true] {
        let damage = Damage::new(killed);
        let whole = &damage.sound;
        let lengths = (0..20)
            .chain([100, 319, 320, 4_095, 4_096, 4_097])
            .chain((1..40).map(|n| whole.len() * n / 40))
            .chain([PAGE, 512, 1].map(|missing| whole.len() - missing));
        let cut = |length| {
            (format!("the first {length} bytes of {}", whole.len()), whole[..length].to_vec())
        };
        let tally = damage.check(lengths.map(cut));
        println!("truncated, killed: {killed}: {tally:?}");
        assert_eq!(tally.failed + tally.partial + tally.whole, 0, "a truncated file was opened");
        assert_eq!(damage.check(std::iter::once(cut(whole.len()))).whole, 1);
    }
}

#[test]
fn a_flipped_bit_in_the_header_never_returns_a_wrong_user() {
    for killed in [false, true] {
        let damage = Damage::new(killed);
        let flip = |at: usize| {
            let mut bytes = damage.sound.clone();
            bytes[at] ^= 1 << (at % 8);
            (format!("byte {at} of a file of a store that was killed: {killed}"), bytes)
        };
        let tally = damage.check((0..HEADER).map(flip));
        println!("header, killed: {killed}: {tally:?}");
        assert!(tally.refused > 0);
    }
}

#[test]
fn a_zeroed_page_never_returns_a_wrong_user() {
    for killed in [false, true] {
        let damage = Damage::new(killed);
        let used = |page: &usize| damage.sound[page * PAGE..][..PAGE].iter().any(|byte| *byte != 0);
        let zero = |page: usize| {
            let mut bytes = damage.sound.clone();
            bytes[page * PAGE..][..PAGE].fill(0);
            (format!("page {page} zeroed, killed: {killed}"), bytes)
        };
        let tally = damage.check((0..damage.sound.len() / PAGE).filter(used).map(zero));
        println!("zeroed pages, killed: {killed}: {tally:?}");
        assert!(tally.refused + tally.failed > 0);
    }
}

/// The database itself does not detect this change.
#[test]
fn a_flipped_bit_in_a_user_is_detected_on_read() {
    let damage = Damage::new(false);
    let name = b"User 7";
    // Unused pages contain the name too.
    let is_place = |at: &usize| damage.sound[*at..].starts_with(name);
    let places: Vec<_> = (0..damage.sound.len()).filter(is_place).collect();
    for bit in 0..name.len() * 8 {
        let mut bytes = damage.sound.clone();
        places.iter().for_each(|at| bytes[at + bit / 8] ^= 1 << (bit % 8));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), bytes).unwrap();
        let store = open(folder.path()).unwrap();
        damage.runtime.block_on(async {
            let read = users::look_up(&store, 7).await;
            assert!(matches!(read, Err(Error::Internal(_))), "bit {bit}: {read:?}");
            let changed = store
                .mutate(users::mutation(users::id(7), UserChange::Unlink(users::email(7))))
                .await;
            assert!(matches!(changed, Err(Error::Internal(_))), "bit {bit}: {changed:?}");
            assert!(users::look_up(&store, 8).await.unwrap(), "another user is affected");
            store.mutate(users::creation(USERS)).await.unwrap();
            store.check().await.unwrap();
        });
    }
}
