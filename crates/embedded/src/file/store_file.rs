//! The database's file: reads that do not block the async threads, and writes that reach the disk
//! only while the gate is open. A failed opening changes nothing, and a failed write is the last.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{BackendError, StorageBackend};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::file::header;
use crate::file::lock::{FileId, Locks};
#[cfg(test)]
use crate::file::tests::{disk, faults};

/// The file as the database sees it. A failed write is staged, like all writes after it, and the
/// database gets no error: it would refuse to read from then on, although all durable data can
/// still be read.
#[derive(Debug)]
pub struct StoreFile(Arc<Shared>);

/// Decides whether the database's writes reach the file. It is shut at first.
#[derive(Clone, Debug)]
pub struct Gate(pub(super) Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    file: File,
    id: FileId,
    locks: Locks,
    /// Whether a sync waits for the disk.
    is_durable: bool,
    is_open: AtomicBool,
    /// The bytes that were written to the file.
    written: AtomicU64,
    staged: Mutex<StagedWrites>,
}

/// The writes of the database to its file while the gate was shut.
#[derive(Debug, Default)]
pub(super) struct StagedWrites {
    /// The length of the file on disk.
    on_disk: u64,
    /// The length of the file as the database sees it.
    length: u64,
    /// In the order of the calls, on which the database relies if the power fails.
    pub(super) steps: Vec<StagedOp<'static>>,
    /// The reason why the gate shut itself.
    failure: Option<io::Error>,
}

/// One change of the file.
#[derive(Clone, Debug)]
pub(super) enum StagedOp<'s> {
    Resize(u64),
    Write(u64, Cow<'s, [u8]>),
    Sync,
}

impl StagedOp<'_> {
    fn apply(&self, file: &File) -> io::Result<()> {
        match self {
            Self::Resize(length) => file.set_len(*length),
            Self::Write(offset, data) => file.write_all_at(data, *offset),
            Self::Sync => file.sync_data(),
        }
    }

    pub(super) fn into_owned(self) -> StagedOp<'static> {
        match self {
            Self::Resize(length) => StagedOp::Resize(length),
            Self::Write(offset, data) => StagedOp::Write(offset, Cow::Owned(data.into_owned())),
            Self::Sync => StagedOp::Sync,
        }
    }
}

impl StoreFile {
    /// Takes over `file`. Unless it `is_durable`, syncs do nothing.
    pub fn new(file: File, id: FileId, locks: Locks, is_durable: bool) -> (Self, Gate) {
        let staged = StagedWrites::new(&file, None);
        let shared = Arc::new(Shared {
            file,
            id,
            locks,
            is_durable,
            is_open: AtomicBool::new(false),
            written: AtomicU64::new(0),
            staged: Mutex::new(staged),
        });
        (Self(shared.clone()), Gate(shared))
    }

    /// Applies a step, or stages it.
    fn step(&self, step: StagedOp<'_>) -> io::Result<()> {
        let mut staged = self.0.lock();
        if self.0.is_open() {
            match self.0.attempt(&step) {
                Ok(()) => return Ok(()),
                Err(error) => self.0.shut(&mut staged, Some(error)),
            }
        }
        staged.push(step);
        Ok(())
    }
}

impl Gate {
    /// Applies the staged steps to the file. Later writes reach it immediately.
    pub fn open(&self) -> io::Result<()> {
        let mut staged = self.0.lock();
        for step in std::mem::take(&mut staged.steps) {
            self.0.attempt(&step)?;
        }
        self.0.attempt(&StagedOp::Sync)?;
        if self.0.is_durable {
            self.0.file.sync_all()?;
        }
        self.0.is_open.store(true, Ordering::Release);
        Ok(())
    }

    /// Stages all later writes.
    pub fn shut(&self) {
        let mut staged = self.0.lock();
        if self.0.is_open() {
            self.0.shut(&mut staged, None);
        }
    }

    pub fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Fails with the reason if the gate is shut.
    pub fn check(&self) -> io::Result<()> {
        if self.is_open() {
            return Ok(());
        }
        let failure = self.0.lock().failure.take();
        Err(failure.unwrap_or_else(|| io::Error::other("nothing may be written to the file")))
    }

    /// The primary commit slot of the file on disk.
    pub fn primary_slot(&self) -> io::Result<u8> {
        header::primary_slot(&self.0.file)
    }

    /// The bytes that were written to the file since it was opened.
    pub fn written_bytes(&self) -> u64 {
        self.0.written.load(Ordering::Relaxed)
    }

    pub fn file_id(&self) -> FileId {
        self.0.id
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, StagedWrites> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    fn shut(&self, staged: &mut StagedWrites, failure: Option<io::Error>) {
        *staged = StagedWrites::new(&self.file, failure);
        self.is_open.store(false, Ordering::Release);
    }

    /// The staged writes, while the gate is shut.
    fn staged(&self) -> Option<MutexGuard<'_, StagedWrites>> {
        if self.is_open() {
            return None;
        }
        let staged = self.lock();
        (!self.is_open()).then_some(staged)
    }

    fn attempt(&self, step: &StagedOp<'_>) -> io::Result<()> {
        if !self.is_durable && matches!(step, StagedOp::Sync) {
            return Ok(());
        }
        #[cfg(test)]
        faults::strike(self.id)?;
        #[cfg(test)]
        disk::record(self.id, step)?;
        step.apply(&self.file)?;
        if let StagedOp::Write(_, data) = step {
            self.written.fetch_add(data.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl StagedWrites {
    /// No staged writes. A file whose length cannot be read counts as empty: reads of it fail.
    fn new(file: &File, failure: Option<io::Error>) -> Self {
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        Self { on_disk: length, length, steps: Vec::new(), failure }
    }

    fn push(&mut self, step: StagedOp<'_>) {
        match &step {
            StagedOp::Resize(length) => self.length = *length,
            StagedOp::Write(offset, data) => {
                self.length = self.length.max(offset + data.len() as u64)
            }
            StagedOp::Sync => {}
        }
        self.steps.push(step.into_owned());
    }

    /// Whether these bytes differ from the file on disk.
    fn changes(&self, offset: u64, length: usize) -> bool {
        let end = offset + length as u64;
        let changes = |step: &StagedOp<'_>| match step {
            StagedOp::Resize(length) => *length < end,
            StagedOp::Write(start, data) => *start < end && offset < start + data.len() as u64,
            StagedOp::Sync => false,
        };
        end > self.on_disk || self.steps.iter().any(changes)
    }

    fn read(&self, file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset + out.len() as u64;
        if end > self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let index = |position: u64| (position.clamp(offset, end) - offset) as usize;
        let (on_disk, beyond) = out.split_at_mut(index(self.on_disk));
        file.read_exact_at(on_disk, offset)?;
        beyond.fill(0);
        for step in &self.steps {
            match step {
                StagedOp::Resize(length) => out[index(*length)..].fill(0),
                StagedOp::Write(start, data) => {
                    let (from, to) = ((*start).max(offset), (start + data.len() as u64).min(end));
                    if from < to {
                        out[index(from)..index(to)]
                            .copy_from_slice(&data[(from - start) as usize..(to - start) as usize]);
                    }
                }
                StagedOp::Sync => {}
            }
        }
        Ok(())
    }
}

/// Reads immediately what the kernel has in memory. Before a read that waits for the disk, another
/// thread takes over the async thread's work.
fn read(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    if read_from_memory(file, offset, out) {
        return Ok(());
    }
    let mut wait_and_read = || file.read_exact_at(out, offset);
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait_and_read),
        _ => wait_and_read(),
    }
}

#[cfg(target_os = "linux")]
fn read_from_memory(file: &File, offset: u64, out: &mut [u8]) -> bool {
    use rustix::io::{ReadWriteFlags, preadv2};
    let length = out.len();
    let buffers = &mut [io::IoSliceMut::new(out)];
    preadv2(file, buffers, offset, ReadWriteFlags::NOWAIT) == Ok(length)
}

#[cfg(not(target_os = "linux"))]
fn read_from_memory(_: &File, _: u64, _: &mut [u8]) -> bool {
    false
}

impl StorageBackend for StoreFile {
    fn len(&self) -> io::Result<u64> {
        match self.0.staged() {
            Some(staged) => Ok(staged.length),
            None => Ok(self.0.file.metadata()?.len()),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match self.0.staged() {
            Some(staged) if staged.changes(offset, out.len()) => {
                return staged.read(&self.0.file, offset, out);
            }
            _ => {}
        }
        read(&self.0.file, offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.step(StagedOp::Resize(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.step(StagedOp::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.step(StagedOp::Write(offset, Cow::Borrowed(data)))
    }

    /// Releases no lock: other openings share them.
    fn close(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.locks.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.0.locks.file.try_lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.locks.file.unlock_range(start, end)
    }
}
