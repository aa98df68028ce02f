//! The exchange with the server: lines go out, progress and rejects come back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::{Stream, stream};
use polynym_proto::v1::import_users_request::Options;
use polynym_proto::v1::import_users_response::Progress;
use polynym_proto::v1::{ImportUsersRequest, ImportUsersResponse};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::timeout;

use crate::reader::FileReader;
use crate::rejects::{Rejected, Rejects};
use crate::window::Window;

/// Requests that wait between the reader and the connection.
const QUEUE_SIZE: usize = 256;
/// The idle time after which an empty message keeps the stream open.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);

/// The lines between the reader and the connection.
pub fn channel() -> (Sender<ImportUsersRequest>, Receiver<ImportUsersRequest>) {
    mpsc::channel(QUEUE_SIZE)
}

/// The messages of an import. The reader sends the options first; if it reads nothing, the import
/// is one without lines. Empty messages keep an idle stream open.
pub fn requests(
    options: Options,
    receiver: Receiver<ImportUsersRequest>,
) -> impl Stream<Item = ImportUsersRequest> + Send + 'static {
    let options_only = ImportUsersRequest { options: Some(options), ..Default::default() };
    stream::unfold((receiver, Some(options_only)), |(mut receiver, options_only)| async move {
        if options_only.is_some() {
            let first = receiver.recv().await.or(options_only)?;
            return Some((first, (receiver, None)));
        }
        match timeout(KEEPALIVE_INTERVAL, receiver.recv()).await {
            Ok(line) => line.map(|line| (line, (receiver, None))),
            Err(_) => Some((ImportUsersRequest::default(), (receiver, None))),
        }
    })
}

/// What the reader of a file and the receiver of the answers share. Dropping it ends the reader.
pub struct Exchange {
    /// The lines that wait for an answer.
    pub window: Arc<Window>,
    /// The rejected lines.
    pub rejects: Arc<Rejects>,
    /// The progress of the server.
    pub progress: Progress,
    rejected_here: Arc<AtomicI64>,
}

impl Exchange {
    /// An exchange that has not begun.
    pub fn new(rejects: Arc<Rejects>) -> Self {
        let (window, rejected_here) = (Arc::default(), Arc::default());
        Self { window, rejects, progress: Progress::default(), rejected_here }
    }

    /// The reader of the file.
    pub fn reader(&self, requests: Sender<ImportUsersRequest>, options: Options) -> FileReader {
        FileReader {
            window: self.window.clone(),
            rejects: self.rejects.clone(),
            requests,
            rejected: self.rejected_here.clone(),
            options,
        }
    }

    /// The lines that the reader rejected, without sending them.
    pub fn rejected_here(&self) -> i64 {
        self.rejected_here.load(Ordering::Relaxed)
    }

    /// Whether all of this number of lines are answered or rejected.
    pub fn is_complete(&self, lines: i64) -> bool {
        self.progress.lines + self.rejected_here() >= lines
    }

    /// Takes an answer. Returns the bytes of all answered lines.
    ///
    /// # Errors
    /// The rejects cannot be written.
    pub fn apply(&mut self, answer: &ImportUsersResponse) -> io::Result<u64> {
        for reject in &answer.rejects {
            self.rejects.add(Rejected {
                line: reject.line,
                reason: &reject.reason,
                message: &reject.message,
                identity_index: reject.identity_index,
                column: None,
                skipped: reject.skipped,
                owner: &reject.owner,
                original: self.window.get(reject.line),
            })?;
        }
        if let Some(progress) = answer.progress {
            self.progress = progress;
        }
        Ok(self.window.answer(self.progress.line))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.window.close();
    }
}
