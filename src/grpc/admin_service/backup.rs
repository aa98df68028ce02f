//! BackupStore: streams a copy of the store.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, stream};
use tonic::{Code, Status};

use crate::grpc::status::status;
use polynym_access::Call;
use polynym_directory::{Directory, Error};
use polynym_proto::v1::BackupStoreResponse;
use polynym_transport::rich_status::plain;

/// The bytes of one message.
const CHUNK_BYTES: usize = 256 << 10;

pub type Responses = Pin<Box<dyn Stream<Item = Result<BackupStoreResponse, Status>> + Send>>;

/// Copies the store once the stream is read, then sends the copy as the caller reads it.
pub fn backup(directory: Arc<Directory>, caller: &Call) -> Result<Responses, Status> {
    if !caller.tenants.are_all() {
        let message = "a backup has all tenants: this credential is for some of them";
        return Err(plain(Code::PermissionDenied, "TENANT_DENIED", message));
    }
    let chunks = stream::try_unfold(BackupState::Start(directory), |state| async move {
        state.next_chunk().await.map_err(status)
    });
    Ok(Box::pin(chunks))
}

enum BackupState {
    Start(Arc<Directory>),
    Copied(File, u64),
}

impl BackupState {
    async fn next_chunk(self) -> Result<Option<(BackupStoreResponse, Self)>, Error> {
        let (copy, total) = match self {
            Self::Start(directory) => {
                let mut copy = directory.backup().await?;
                let total = copy.seek(SeekFrom::End(0)).map_err(unreadable)?;
                copy.rewind().map_err(unreadable)?;
                (copy, total)
            }
            Self::Copied(copy, total) => (copy, total),
        };
        let (data, copy) = tokio::task::spawn_blocking(move || read_chunk(copy))
            .await
            .map_err(|error| Error::Internal(error.into()))??;
        let has_data = !data.is_empty();
        let message = BackupStoreResponse { data, total_bytes: total as i64 };
        Ok(has_data.then_some((message, Self::Copied(copy, total))))
    }
}

fn read_chunk(mut copy: File) -> Result<(Vec<u8>, File), Error> {
    let mut data = Vec::with_capacity(CHUNK_BYTES);
    let chunk = copy.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut data);
    chunk.map_err(unreadable)?;
    Ok((data, copy))
}

fn unreadable(error: std::io::Error) -> Error {
    Error::Unavailable(error.into())
}
