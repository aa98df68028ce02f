//! The database's file: reads that do not hold up the async threads, and writes that go to the disk
//! only while they may. An opening changes nothing there until it has succeeded, and after a write
//! that failed nothing is changed any more.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{BackendError, StorageBackend};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::header;
use super::lock::{FileId, Locks};

#[cfg(test)]
pub mod tests;

/// The file as the database sees it. A write that fails is kept back like those after it, and the
/// database is not told: it would read no more from then on, though all that it has made durable is
/// there to be read.
#[derive(Debug)]
pub struct StoreFile(Arc<Shared>);

/// Decides whether what the database writes goes to the file. It is shut at first.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    file: File,
    id: FileId,
    locks: Locks,
    is_open: AtomicBool,
    kept: Mutex<StagedWrites>,
}

/// The writes of the database to its file while the gate was shut.
#[derive(Debug, Default)]
struct StagedWrites {
    /// The length of the file as it is on disk.
    on_disk: u64,
    /// That of the file as the database sees it.
    length: u64,
    /// In the order in which they were done: the database counts on it, should the power fail.
    steps: Vec<StagedOp<'static>>,
    /// Why the gate shut itself.
    failure: Option<io::Error>,
}

/// One change of the file.
#[derive(Clone, Debug)]
enum StagedOp<'s> {
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

    fn into_owned(self) -> StagedOp<'static> {
        match self {
            Self::Resize(length) => StagedOp::Resize(length),
            Self::Write(offset, data) => StagedOp::Write(offset, Cow::Owned(data.into_owned())),
            Self::Sync => StagedOp::Sync,
        }
    }
}

impl StoreFile {
    /// Takes over `file`.
    pub fn new(file: File, id: FileId, locks: Locks) -> (Self, Gate) {
        let kept = StagedWrites::new(&file, None);
        let shared = Arc::new(Shared {
            file,
            id,
            locks,
            is_open: AtomicBool::new(false),
            kept: Mutex::new(kept),
        });
        (Self(shared.clone()), Gate(shared))
    }

    /// Does a step, or keeps it back.
    fn step(&self, step: StagedOp<'_>) -> io::Result<()> {
        let mut kept = self.0.lock();
        if self.0.is_open() {
            match self.0.attempt(&step) {
                Ok(()) => return Ok(()),
                Err(error) => self.0.shut(&mut kept, Some(error)),
            }
        }
        kept.keep(step);
        Ok(())
    }
}

impl Gate {
    /// Does to the file what was kept back; from here on, writes go to the file at once.
    pub fn open(&self) -> io::Result<()> {
        let mut kept = self.0.lock();
        for step in std::mem::take(&mut kept.steps) {
            self.0.attempt(&step)?;
        }
        self.0.attempt(&StagedOp::Sync)?;
        self.0.file.sync_all()?;
        self.0.is_open.store(true, Ordering::Release);
        Ok(())
    }

    /// From here on, what the database writes is kept from the file.
    pub fn shut(&self) {
        let mut kept = self.0.lock();
        if self.0.is_open() {
            self.0.shut(&mut kept, None);
        }
    }

    pub fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Why the gate is shut, if it is.
    pub fn check(&self) -> io::Result<()> {
        if self.is_open() {
            return Ok(());
        }
        let failure = self.0.lock().failure.take();
        Err(failure.unwrap_or_else(|| io::Error::other("nothing may be written to the file")))
    }

    /// Which commit slot counts in the file as it is on disk.
    pub fn primary_slot(&self) -> io::Result<u8> {
        header::primary_slot(&self.0.file)
    }

    pub fn file_id(&self) -> FileId {
        self.0.id
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, StagedWrites> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    fn shut(&self, kept: &mut StagedWrites, failure: Option<io::Error>) {
        *kept = StagedWrites::new(&self.file, failure);
        self.is_open.store(false, Ordering::Release);
    }

    /// The staged writes, while the gate is shut.
    fn kept(&self) -> Option<MutexGuard<'_, StagedWrites>> {
        if self.is_open() {
            return None;
        }
        let kept = self.lock();
        (!self.is_open()).then_some(kept)
    }

    #[cfg(not(test))]
    fn attempt(&self, step: &StagedOp<'_>) -> io::Result<()> {
        step.apply(&self.file)
    }

    #[cfg(test)]
    fn attempt(&self, step: &StagedOp<'_>) -> io::Result<()> {
        tests::faults::strike(self.id)?;
        tests::disk::record(self.id, step)?;
        step.apply(&self.file)
    }
}

impl StagedWrites {
    /// No staged writes. A file whose length cannot be read counts as empty: reading it fails.
    fn new(file: &File, failure: Option<io::Error>) -> Self {
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        Self { on_disk: length, length, steps: Vec::new(), failure }
    }

    fn keep(&mut self, step: StagedOp<'_>) {
        match &step {
            StagedOp::Resize(length) => self.length = *length,
            StagedOp::Write(offset, data) => {
                self.length = self.length.max(offset + data.len() as u64)
            }
            StagedOp::Sync => {}
        }
        self.steps.push(step.into_owned());
    }

    /// Whether these bytes are not those of the file on disk.
    fn changes(&self, offset: u64, length: usize) -> bool {
        let end = offset + length as u64;
        let changes = |step: &StagedOp<'_>| match step {
            StagedOp::Resize(length) => *length < end,
            StagedOp::Write(at, data) => *at < end && offset < at + data.len() as u64,
            StagedOp::Sync => false,
        };
        end > self.on_disk || self.steps.iter().any(changes)
    }

    fn read(&self, file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset + out.len() as u64;
        if end > self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let within = |at: u64| (at.clamp(offset, end) - offset) as usize;
        let (on_disk, behind) = out.split_at_mut(within(self.on_disk));
        file.read_exact_at(on_disk, offset)?;
        behind.fill(0);
        for step in &self.steps {
            match step {
                StagedOp::Resize(length) => out[within(*length)..].fill(0),
                StagedOp::Write(at, data) => {
                    let (from, to) = ((*at).max(offset), (at + data.len() as u64).min(end));
                    if from < to {
                        out[within(from)..within(to)]
                            .copy_from_slice(&data[(from - at) as usize..(to - at) as usize]);
                    }
                }
                StagedOp::Sync => {}
            }
        }
        Ok(())
    }
}

/// Reads what the kernel has in memory at once. What must come from the disk is waited for with the
/// async thread's work handed to another thread.
fn read_patiently(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    if read_from_memory(file, offset, out) {
        return Ok(());
    }
    let mut read = || file.read_exact_at(out, offset);
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(read),
        _ => read(),
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
        match self.0.kept() {
            Some(kept) => Ok(kept.length),
            None => Ok(self.0.file.metadata()?.len()),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match self.0.kept() {
            Some(kept) if kept.changes(offset, out.len()) => {
                return kept.read(&self.0.file, offset, out);
            }
            _ => {}
        }
        read_patiently(&self.0.file, offset, out)
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

    /// The locks are not this file's alone.
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
