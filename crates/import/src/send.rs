//! Sends a file: a thread reads its lines, a stream sends them, and the answers come back.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use polynym_client::{Client, Error};
use polynym_proto::v1::ImportUsersRequest;
use polynym_proto::v1::import_users_request::Options;
use polynym_proto::v1::import_users_response::{Change, Progress};
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Request};

use crate::exchange::{Exchange, channel, requests};
use crate::reader::{FileReader, Findings, Format, ReadError};
use crate::rejects::Rejects;

/// An import to send.
pub struct Import {
    /// The options of the call.
    pub options: Options,
    /// The headers of the call.
    pub headers: MetadataMap,
    /// The format of the file.
    pub format: Format,
    /// The rejected lines.
    pub rejects: Arc<Rejects>,
    /// The time to wait, after a stop, for the answers to the lines that were sent.
    pub grace: Duration,
}

/// Follows an import.
pub trait Observer {
    /// The error that ends the import.
    type Error;

    /// A line was answered with what it changes.
    ///
    /// # Errors
    /// The import ends with this error.
    fn changed(&mut self, change: &Change) -> Result<(), Self::Error>;

    /// Lines of so many bytes are answered.
    fn progressed(&mut self, progress: &Progress, bytes: u64);
}

/// The end of an import.
pub struct Sent<E> {
    /// What reading the file has to tell; or why the import ended early.
    pub outcome: Result<Findings, SendError<E>>,
    /// The lines that the server has answered.
    pub progress: Progress,
    /// The lines that were rejected without being sent.
    pub rejected_here: i64,
}

/// The cause for which an import ended early.
#[derive(Debug, thiserror::Error)]
pub enum SendError<E> {
    /// It was stopped.
    #[error("the import was stopped")]
    Stopped,
    /// The server refused the call.
    #[error("the server refused the import: {0}")]
    Refused(Error),
    /// The call broke off.
    #[error("the connection was lost: {0}")]
    Lost(Error),
    /// The server ended the call before it had answered all lines.
    #[error("the server ended the import early: import the file again")]
    EndedEarly,
    /// The file has no line.
    #[error("the file is empty")]
    Empty,
    /// The file cannot be read.
    #[error(transparent)]
    Read(ReadError),
    /// The thread that reads the file failed.
    #[error("the file is not read: {0}")]
    Thread(io::Error),
    /// The rejects cannot be written.
    #[error("the rejects cannot be written: {0}")]
    Rejects(io::Error),
    /// The observer ended it.
    #[error("the observer ended the import")]
    Observer(E),
}

impl Import {
    /// Sends the lines of the file that `open` opens on a thread of its own, until all are
    /// answered, or `stop` returns. The reader of a file that never ends is not awaited.
    pub async fn send<R: Read, O: Observer>(
        self,
        client: &Client,
        open: impl FnOnce() -> Result<R, ReadError> + Send + 'static,
        stop: impl Future<Output = ()>,
        observer: &mut O,
    ) -> Sent<O::Error> {
        let mut exchange = Exchange::new(self.rejects);
        let (sender, receiver) = channel();
        let reader = exchange.reader(sender, self.options.clone());
        let outcome = match spawn(reader, open, self.format) {
            Ok(read) => {
                let call = Call { client, options: self.options, headers: self.headers, receiver };
                let answered = call.run(&mut exchange, observer, stop, self.grace).await;
                exchange.window.close();
                match answered {
                    Ok(()) => finish(read, &exchange).await,
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(SendError::Thread(error)),
        };
        let (progress, rejected_here) = (exchange.progress, exchange.rejected_here());
        Sent { outcome, progress, rejected_here }
    }
}

/// The number of the lines that were read, and what there is to tell.
type ReadOutcome = oneshot::Receiver<Result<(i64, Findings), ReadError>>;

fn spawn<R: Read>(
    reader: FileReader,
    open: impl FnOnce() -> Result<R, ReadError> + Send + 'static,
    format: Format,
) -> io::Result<ReadOutcome> {
    let (outcome, read) = oneshot::channel();
    std::thread::Builder::new().name("polynym-reader".to_owned()).spawn(move || {
        let _ = outcome.send(open().and_then(|file| reader.run(file, format)));
    })?;
    Ok(read)
}

/// Fails if the file was not read to its end, or the server ended early.
async fn finish<E>(read: ReadOutcome, exchange: &Exchange) -> Result<Findings, SendError<E>> {
    let failed = |_| SendError::Thread(io::Error::other("the reader of the file failed"));
    let (lines, findings) = read.await.map_err(failed)?.map_err(SendError::Read)?;
    match lines {
        0 => Err(SendError::Empty),
        lines if exchange.is_complete(lines) => Ok(findings),
        _ => Err(SendError::EndedEarly),
    }
}

/// The call of an import.
struct Call<'c> {
    client: &'c Client,
    options: Options,
    headers: MetadataMap,
    receiver: Receiver<ImportUsersRequest>,
}

impl Call<'_> {
    /// Sends the lines until all are answered. After a stop no more are sent, and the answers to
    /// those that were are awaited for a while.
    async fn run<O: Observer>(
        self,
        exchange: &mut Exchange,
        observer: &mut O,
        stop: impl Future<Output = ()>,
        grace: Duration,
    ) -> Result<(), SendError<O::Error>> {
        let window = exchange.window.clone();
        let (more, no_more) = oneshot::channel::<()>();
        let requests = requests(self.options, self.receiver).take_until(no_more);
        let request = Request::from_parts(self.headers, Extensions::default(), requests);
        let answers = async {
            let call = self.client.admin().import_users(request).await;
            let mut answers = call.map_err(SendError::Refused)?;
            while let Some(answer) = answers.message().await.map_err(SendError::Lost)? {
                let bytes = exchange.apply(&answer).map_err(SendError::Rejects)?;
                for change in &answer.changes {
                    observer.changed(change).map_err(SendError::Observer)?;
                }
                observer.progressed(&exchange.progress, bytes);
            }
            Ok(())
        };
        tokio::pin!(answers);
        tokio::select! {
            answered = &mut answers => return answered,
            () = stop => {}
        }
        window.close();
        drop(more);
        match timeout(grace, answers).await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(())) | Err(_) => Err(SendError::Stopped),
        }
    }
}
