//! Work on a file that goes on when the browser leaves: reading, a dry run, an import.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use polynym_proto::v1::import_users_response::Progress;
use tokio::sync::watch;
use tokio::time::timeout;

use super::pool::Taken;
use super::stop::Stop;

/// The kind of work on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Finds its format and its columns.
    Read,
    /// Checks its lines.
    DryRun,
    /// Imports its lines.
    Import,
}

/// Work on a file.
pub struct Job {
    pub kind: JobKind,
    /// The id of the request that began it.
    pub request_id: String,
    pub stop: Stop,
    /// The bytes of the file.
    pub total: u64,
    began: Instant,
    bytes: AtomicU64,
    progress: Mutex<Progress>,
    /// The permit to work, until it ends.
    permit: Mutex<Option<Taken>>,
    ended: watch::Sender<bool>,
}

impl Job {
    /// Work that begins now.
    pub fn new(kind: JobKind, request_id: &str, total: u64, permit: Taken) -> Self {
        Self {
            kind,
            request_id: request_id.to_owned(),
            stop: Stop::default(),
            total,
            began: Instant::now(),
            bytes: AtomicU64::new(0),
            progress: Mutex::default(),
            permit: Mutex::new(Some(permit)),
            ended: watch::Sender::new(false),
        }
    }

    /// Sets the progress, and the bytes of the lines that are done.
    pub fn set(&self, progress: Progress, bytes: u64) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// The progress.
    pub fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The share of the file that is done, in percent.
    pub fn percent(&self) -> u64 {
        let done = self.bytes.load(Ordering::Relaxed);
        (done * 100).checked_div(self.total).unwrap_or_default().min(100)
    }

    /// Lines per second since the job began.
    pub fn rate(&self) -> u64 {
        let seconds = self.began.elapsed().max(Duration::from_millis(1)).as_secs_f64();
        (self.progress().lines as f64 / seconds) as u64
    }

    /// The time that the rest takes at this rate; none at the beginning.
    pub fn time_left(&self) -> Option<Duration> {
        let done = self.bytes.load(Ordering::Relaxed).min(self.total);
        let seconds = self.began.elapsed().as_secs_f64();
        let left = seconds * (self.total - done) as f64 / done as f64;
        (done > 0 && seconds >= 1.0).then(|| Duration::from_secs_f64(left))
    }

    /// Ends the work.
    pub fn end(&self) {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.ended.send_replace(true);
    }

    /// Whether the work has ended.
    pub fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits until the work has ended, but no longer than this.
    pub async fn wait(&self, most: Duration) {
        let _ = timeout(most, self.ended.subscribe().wait_for(|ended| *ended)).await;
    }
}
