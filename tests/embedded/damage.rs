//! Stores whose file was damaged: opening says so and leaves the file as it is; where the damage lies in what opening
//! does not read, no read ever answers with a wrong user, and nothing panics.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use polynym::directory::Store;
use polynym::store::embedded::OpenError;
use tokio::runtime::Runtime;

use super::support::users;
use super::{FILE, open};

const USERS: usize = 200;
/// Of redb's header: magic, page size, layout and two commit slots (redb, docs/design.md).
const HEADER: usize = 320;
const PAGE: usize = 4_096;

/// How many damaged files were refused, opened but failed to read, and read in full or in part.
#[derive(Debug, Default)]
struct Tally {
    refused: usize,
    failed: usize,
    partial: usize,
    whole: usize,
}

struct Damage {
    runtime: Runtime,
    sound: Vec<u8>,
    tally: Tally,
}

impl Damage {
    /// Starts from the file of a store that was closed, or of one that was killed.
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
        Self { runtime, sound, tally: Tally::default() }
    }

    /// Opens a file with these bytes and reads everything from it.
    fn check(&mut self, what: &str, bytes: &[u8]) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        fs::write(&file, bytes).unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.read_all(folder.path())));
        match outcome.unwrap_or_else(|_| panic!("{what}: a panic, or a wrong user")) {
            Err(error) => {
                let expected = matches!(error, OpenError::Damaged { .. } | OpenError::Foreign { .. });
                assert!(expected, "{what}: opening fails with {error:?}");
                assert!(bytes == fs::read(&file).unwrap(), "{what}: a file that was refused was changed: {error}");
                self.tally.refused += 1;
            }
            Ok((_, failed)) if failed > 0 => self.tally.failed += 1,
            Ok((USERS, _)) => self.tally.whole += 1,
            Ok(_) => self.tally.partial += 1,
        }
    }

    /// How many users are there, and how many look-ups failed.
    fn read_all(&self, folder: &Path) -> Result<(usize, usize), OpenError> {
        let store = open(folder)?;
        let (mut there, mut failed) = (0, 0);
        for n in 0..USERS {
            match self.runtime.block_on(users::look_up(&store, n)) {
                Ok(found) => there += usize::from(found),
                Err(_) => failed += 1,
            }
        }
        Ok((there, failed))
    }
}

#[test]
fn a_truncated_file_is_refused() {
    let mut damage = Damage::new(false);
    let whole = damage.sound.clone();
    let lengths = (1..20).chain([100, 319, 320, 4_095, 4_096, 4_097]).chain((1..40).map(|n| whole.len() * n / 40));
    for length in lengths {
        damage.check(&format!("the first {length} bytes of {}", whole.len()), &whole[..length]);
    }
    println!("truncated: {:?}", damage.tally);
    assert_eq!(damage.tally.whole, 0, "a truncated file was read as if it were whole");
    damage.check("the whole file", &whole);
    assert_eq!(damage.tally.whole, 1);
}

#[test]
fn a_flipped_bit_in_the_header_gives_no_wrong_user() {
    for killed in [false, true] {
        let mut damage = Damage::new(killed);
        for at in (0..HEADER).step_by(if killed { 3 } else { 1 }) {
            let mut bytes = damage.sound.clone();
            bytes[at] ^= 1 << (at % 8);
            damage.check(&format!("byte {at} of a file of a store that was killed: {killed}"), &bytes);
        }
        println!("header, killed: {killed}: {:?}", damage.tally);
        assert!(damage.tally.refused > 0);
    }
}

#[test]
fn a_zeroed_page_gives_no_wrong_user() {
    for killed in [false, true] {
        let mut damage = Damage::new(killed);
        let pages = damage.sound.len() / PAGE;
        for page in 0..pages {
            let range = page * PAGE..(page + 1) * PAGE;
            if damage.sound[range.clone()].iter().all(|byte| *byte == 0) {
                continue;
            }
            let mut bytes = damage.sound.clone();
            bytes[range].fill(0);
            damage.check(&format!("page {page} zeroed, killed: {killed}"), &bytes);
        }
        println!("zeroed pages, killed: {killed}: {:?}", damage.tally);
        assert!(damage.tally.refused + damage.tally.failed > 0);
    }
}
