//! The database's file: reads that do not hold up the async threads, and an opening that changes nothing on disk until
//! it has succeeded.

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::backends::FileBackend;
use redb::{BackendError, DatabaseError, StorageBackend};
use tokio::runtime::{Handle, RuntimeFlavor};

#[cfg(test)]
mod tests;

/// The file as the database sees it.
#[derive(Debug)]
pub struct StoreFile(Arc<Shared>);

/// Decides when what an opening database writes goes to the file.
pub struct Staging(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    file: File,
    locks: FileBackend,
    staging: AtomicBool,
    staged: Mutex<Staged>,
}

/// What an opening database has done to its file so far: a damaged or foreign file stays as it was.
#[derive(Debug)]
struct Staged {
    /// That of the file as it is on disk.
    on_disk: u64,
    /// That of the file as the database sees it.
    length: u64,
    /// In the order in which they were done: the database counts on it, should the power fail.
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Resize(u64),
    Write(u64, Vec<u8>),
    Sync,
}

impl StoreFile {
    /// Takes over `file`; its writes are kept back until [`Staging::release`].
    pub fn new(file: File) -> Result<(Self, Staging), DatabaseError> {
        let locks = FileBackend::new(file.try_clone()?)?;
        let length = file.metadata()?.len();
        let staged = Mutex::new(Staged { on_disk: length, length, steps: Vec::new() });
        let shared = Arc::new(Shared { file, locks, staging: AtomicBool::new(true), staged });
        Ok((Self(shared.clone()), Staging(shared)))
    }
}

impl Staging {
    /// Does to the file what was kept back; from here on, writes go to the file at once.
    pub fn release(self) -> io::Result<()> {
        let Shared { file, staging, .. } = &*self.0;
        let mut staged = self.0.lock();
        for step in std::mem::take(&mut staged.steps) {
            match step {
                Step::Resize(length) => file.set_len(length)?,
                Step::Write(offset, data) => file.write_all_at(&data, offset)?,
                Step::Sync => file.sync_data()?,
            }
        }
        file.sync_all()?;
        staging.store(false, Ordering::Release);
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Staged> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The staged writes, while writes are kept back.
    fn staged(&self) -> Option<MutexGuard<'_, Staged>> {
        if !self.staging.load(Ordering::Acquire) {
            return None;
        }
        let staged = self.lock();
        self.staging.load(Ordering::Acquire).then_some(staged)
    }
}

impl Staged {
    fn set_len(&mut self, length: u64) {
        self.length = length;
        self.steps.push(Step::Resize(length));
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        self.length = self.length.max(offset + data.len() as u64);
        self.steps.push(Step::Write(offset, data.to_vec()));
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
                Step::Resize(length) => out[within(*length)..].fill(0),
                Step::Write(at, data) => {
                    let (from, to) = ((*at).max(offset), (at + data.len() as u64).min(end));
                    if from < to {
                        out[within(from)..within(to)].copy_from_slice(&data[(from - at) as usize..(to - at) as usize]);
                    }
                }
                Step::Sync => {}
            }
        }
        Ok(())
    }
}

/// Reads what the kernel has in memory at once. What must come from the disk is waited for with the async thread's work
/// handed to another thread.
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
        match self.0.staged() {
            Some(staged) => Ok(staged.length),
            None => Ok(self.0.file.metadata()?.len()),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match self.0.staged() {
            Some(staged) => staged.read(&self.0.file, offset, out),
            None => read_patiently(&self.0.file, offset, out),
        }
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        match self.0.staged() {
            Some(mut staged) => staged.set_len(length),
            None => self.0.file.set_len(length)?,
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        match self.0.staged() {
            Some(mut staged) => staged.steps.push(Step::Sync),
            None => self.0.file.sync_data()?,
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match self.0.staged() {
            Some(mut staged) => staged.write(offset, data),
            None => self.0.file.write_all_at(data, offset)?,
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.0.locks.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.locks.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.locks.try_lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.locks.unlock_range(start, end)
    }
}
