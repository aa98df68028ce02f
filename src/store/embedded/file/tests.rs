//! A staged file against one that is written at once.

pub mod disk;
pub mod faults;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use redb::StorageBackend;
use tempfile::TempDir;

use super::{Gate, StagedOp, StoreFile};
use crate::store::embedded::lock::{FileId, Locker};
use faults::Failing;

const LENGTH: u64 = 64;

fn open(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

/// A folder with the same content twice: one file to stage, one to write at once.
fn two_files() -> (TempDir, File, File) {
    let folder = tempfile::tempdir().unwrap();
    let paths = [folder.path().join("staged"), folder.path().join("plain")];
    for path in &paths {
        fs::write(path, (1..=LENGTH as u8).collect::<Vec<_>>()).unwrap();
    }
    let [staged, plain] = paths.map(|path| open(&path));
    (folder, staged, plain)
}

fn store_file(file: File) -> (StoreFile, Gate) {
    let id = FileId::of(&file.metadata().unwrap());
    let locks = Locker::default().locks(id, &file).unwrap();
    StoreFile::new(file, id, locks)
}

fn content(mut file: &File) -> Vec<u8> {
    use std::io::Seek;
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn step() -> impl Strategy<Value = StagedOp<'static>> {
    prop_oneof![
        (0..LENGTH * 2).prop_map(StagedOp::Resize),
        (0..LENGTH * 2, vec(100..200u8, 1..40))
            .prop_map(|(at, data)| StagedOp::Write(at, data.into())),
        any::<()>().prop_map(|()| StagedOp::Sync),
    ]
}

fn apply(step: &StagedOp<'_>, staged: &StoreFile, plain: &File) {
    match step {
        StagedOp::Resize(length) => {
            staged.set_len(*length).unwrap();
            plain.set_len(*length).unwrap();
        }
        StagedOp::Write(at, data) => {
            staged.write(*at, data).unwrap();
            plain.write_all_at(data, *at).unwrap();
        }
        StagedOp::Sync => staged.sync_data().unwrap(),
    }
}

proptest! {
    #[test]
    fn a_staged_file_reads_like_one_that_is_written_at_once(
        steps in vec(step(), 0..12),
        from in 0..LENGTH * 2,
        length in 0..60usize,
    ) {
        let (_folder, on_disk, plain) = two_files();
        let before = content(&on_disk);
        let (staged, gate) = store_file(on_disk.try_clone().unwrap());
        for step in steps {
            apply(&step, &staged, &plain);
            let length = staged.len().unwrap();
            prop_assert_eq!(length, plain.metadata().unwrap().len());
            let mut all = vec![0; length as usize];
            staged.read(0, &mut all).unwrap();
            prop_assert_eq!(all, content(&plain));
        }
        let (mut found, mut wanted) = (vec![0; length], vec![0; length]);
        let outcome = staged.read(from, &mut found).is_ok();
        prop_assert_eq!(outcome, from + length as u64 <= plain.metadata().unwrap().len());
        if outcome {
            plain.read_exact_at(&mut wanted, from).unwrap();
            prop_assert_eq!(found, wanted);
        }
        prop_assert_eq!(content(&on_disk), before);
        gate.open().unwrap();
        prop_assert_eq!(content(&on_disk), content(&plain));
    }
}

/// A database syncs between steps that must not reach the disk the other way round.
#[test]
fn steps_are_kept_in_order_with_their_syncs() {
    let (_folder, on_disk, _) = two_files();
    let (staged, gate) = store_file(on_disk);
    staged.write(0, b"data").unwrap();
    staged.sync_data().unwrap();
    staged.write(8, b"header").unwrap();
    staged.set_len(32).unwrap();
    let steps = format!("{:?}", gate.0.lock().steps);
    let wanted = format!("[Write(0, {:?}), Sync, Write(8, {:?}), Resize(32)]", b"data", b"header");
    assert_eq!(steps, wanted);
}

#[test]
fn after_its_gate_was_opened_a_file_is_written_at_once() {
    let (_folder, on_disk, _) = two_files();
    let (staged, gate) = store_file(on_disk.try_clone().unwrap());
    staged.write(0, b"staged").unwrap();
    gate.open().unwrap();
    staged.write(0, b"atonce").unwrap();
    staged.set_len(6).unwrap();
    assert_eq!(content(&on_disk), b"atonce");
    let mut read = [0; 6];
    staged.read(0, &mut read).unwrap();
    assert_eq!(&read, b"atonce");
}

proptest! {
    /// Whichever step fails first: the file gets what came before it and nothing after, and the
    /// database sees all of it.
    #[test]
    fn a_file_that_failed_reads_on_and_is_left_as_it_was(
        steps in vec(step(), 1..12),
        failing in 0..12u64,
    ) {
        let (_folder, on_disk, plain) = two_files();
        let (staged, gate) = store_file(on_disk.try_clone().unwrap());
        gate.open().unwrap();
        let _failing = Failing::new(gate.file_id(), failing..failing + 1);
        let mut before = content(&on_disk);
        for (n, step) in steps.iter().enumerate() {
            apply(step, &staged, &plain);
            prop_assert_eq!(gate.is_open(), (n as u64) < failing);
            if gate.is_open() {
                before = content(&plain);
            }
            prop_assert_eq!(content(&on_disk), before.clone());
            let mut all = vec![0; staged.len().unwrap() as usize];
            staged.read(0, &mut all).unwrap();
            prop_assert_eq!(all, content(&plain));
        }
        prop_assert_eq!(gate.check().is_ok(), steps.len() as u64 <= failing);
    }
}
