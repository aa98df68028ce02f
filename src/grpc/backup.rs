//! BackupStore: a stream of the bytes of a copy of the store.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, stream};
use tonic::{Code, Status};

use super::status::status;
use crate::access::Call;
use crate::directory::error::Error;
use crate::directory::service::Directory;
use crate::proto::v1::BackupStoreResponse;
use crate::transport::rich_status::plain;

/// The bytes of one message.
const CHUNK: usize = 256 << 10;

pub type Responses = Pin<Box<dyn Stream<Item = Result<BackupStoreResponse, Status>> + Send>>;

/// Copies the store, and sends the copy as the caller takes it. The copy begins once the stream is
/// read, and takes as long as there is data.
pub fn backup(directory: Arc<Directory>, caller: &Call) -> Result<Responses, Status> {
    if !caller.tenants.are_all() {
        let message = "a backup has all tenants: this credential is for some of them";
        return Err(plain(Code::PermissionDenied, "TENANT_DENIED", message));
    }
    let chunks = stream::try_unfold(Step::Begin(directory), |step| async move {
        step.next().await.map_err(status)
    });
    Ok(Box::pin(chunks))
}

enum Step {
    Begin(Arc<Directory>),
    Copied(File, u64),
}

impl Step {
    async fn next(self) -> Result<Option<(BackupStoreResponse, Self)>, Error> {
        let (file, total) = match self {
            Self::Begin(directory) => {
                let mut file = directory.backup().await?;
                let total = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
                file.rewind().map_err(unreadable)?;
                (file, total)
            }
            Self::Copied(file, total) => (file, total),
        };
        let read = tokio::task::spawn_blocking(move || read(file)).await;
        let (data, file) = read.map_err(|error| Error::Internal(error.into()))??;
        let more = !data.is_empty();
        let message = BackupStoreResponse { data, total_bytes: total as i64 };
        Ok(more.then_some((message, Self::Copied(file, total))))
    }
}

fn read(mut file: File) -> Result<(Vec<u8>, File), Error> {
    let mut data = Vec::with_capacity(CHUNK);
    file.by_ref().take(CHUNK as u64).read_to_end(&mut data).map_err(unreadable)?;
    Ok((data, file))
}

fn unreadable(error: std::io::Error) -> Error {
    Error::Unavailable(error.into())
}
