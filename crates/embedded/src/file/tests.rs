//! A staged file, compared with one that is written immediately.

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

use crate::file::lock::{FileId, Locker};
use crate::file::store_file::{Gate, StagedOp, StoreFile};
use disk::{Disk, When};
use faults::Failing;

const LENGTH: u64 = 64;

fn open(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

/// Two files with the same content: one to stage, one to write immediately.
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
    StoreFile::new(file, id, locks, true)
}

/// The syncs of a file, of which the first one is recorded.
#[test]
fn only_a_durable_file_is_synced() {
    for is_durable in [true, false] {
        let (_folder, on_disk, _) = two_files();
        let id = FileId::of(&on_disk.metadata().unwrap());
        let disk = Disk::new(id, content(&on_disk), When::Sync(0));
        let locks = Locker::default().locks(id, &on_disk).unwrap();
        let (file, gate) = StoreFile::new(on_disk.try_clone().unwrap(), id, locks, is_durable);
        assert_eq!(gate.open().is_err(), is_durable);
        assert_eq!(disk.has_failed(), is_durable);
        if !is_durable {
            file.write(0, b"written").unwrap();
            file.sync_data().unwrap();
            assert!(gate.is_open() && content(&on_disk).starts_with(b"written"));
        }
    }
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
            .prop_map(|(offset, data)| StagedOp::Write(offset, data.into())),
        any::<()>().prop_map(|()| StagedOp::Sync),
    ]
}

fn apply(step: &StagedOp<'_>, staged: &StoreFile, plain: &File) {
    match step {
        StagedOp::Resize(length) => {
            staged.set_len(*length).unwrap();
            plain.set_len(*length).unwrap();
        }
        StagedOp::Write(offset, data) => {
            staged.write(*offset, data).unwrap();
            plain.write_all_at(data, *offset).unwrap();
        }
        StagedOp::Sync => staged.sync_data().unwrap(),
    }
}

proptest! {
    #[test]
    fn a_staged_file_reads_like_one_that_is_written_immediately(
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
        let (mut found, mut expected) = (vec![0; length], vec![0; length]);
        let outcome = staged.read(from, &mut found).is_ok();
        prop_assert_eq!(outcome, from + length as u64 <= plain.metadata().unwrap().len());
        if outcome {
            plain.read_exact_at(&mut expected, from).unwrap();
            prop_assert_eq!(found, expected);
        }
        prop_assert_eq!(content(&on_disk), before);
        gate.open().unwrap();
        prop_assert_eq!(content(&on_disk), content(&plain));
    }
}

/// A database syncs between steps that must not reach the disk in the reverse order.
#[test]
fn steps_and_syncs_are_staged_in_order() {
    let (_folder, on_disk, _) = two_files();
    let (staged, gate) = store_file(on_disk);
    staged.write(0, b"data").unwrap();
    staged.sync_data().unwrap();
    staged.write(8, b"header").unwrap();
    staged.set_len(32).unwrap();
    let steps = format!("{:?}", gate.0.lock().steps);
    let expected =
        format!("[Write(0, {:?}), Sync, Write(8, {:?}), Resize(32)]", b"data", b"header");
    assert_eq!(steps, expected);
}

#[test]
fn an_open_gate_writes_to_the_file_immediately() {
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
    /// Whichever step fails first, the file gets only the steps before it, and the database sees
    /// all steps.
    #[test]
    fn after_a_failed_write_reads_continue_and_the_file_stays_as_it_was(
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
