//! `polynym backup`.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use tonic::Request;

use crate::client::Session;
use crate::config::{Client, Flags};
use crate::failure::Failure;
use crate::{files, output};
use polynym_proto::v1::BackupStoreRequest;

/// The examples of `polynym backup`, with the restore of the backup.
pub const EXAMPLES: &str = "\
Examples:
  polynym backup polynym-2026-01-31.redb
  polynym restore polynym-2026-01-31.redb --store embedded:/var/lib/polynym

The server keeps serving. It needs free space for a copy of the data in the store's folder. The file
has a checksum, which `polynym restore` compares before it creates a store.";

/// `polynym backup`.
#[derive(Args)]
pub struct Backup {
    /// The file to write. It must not exist.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The server.
    #[command(flatten)]
    settings: Flags<Client>,
}

pub async fn run(command: Backup) -> Result<(), Failure> {
    let path = &command.file;
    let failure = |error: std::io::Error| files::failure(path, error);
    if path.exists() {
        return Err(files::failure(path, "the file exists"));
    }
    let session = Session::open(&command.settings).await?;
    let folder = files::folder(path);
    let mut draft = tempfile::NamedTempFile::new_in(folder).map_err(failure)?;

    // Without a deadline: the time depends on the size of the store.
    let request = Request::new(BackupStoreRequest {});
    let mut chunks = session.answer(session.admin().backup_store(request).await)?;
    let (mut bytes, mut total) = (0, 0);
    while let Some(chunk) = chunks.message().await.map_err(|error| session.failure(error))? {
        draft.write_all(&chunk.data).map_err(failure)?;
        bytes += chunk.data.len() as i64;
        total = chunk.total_bytes;
    }
    if bytes == 0 || bytes != total {
        return Err(Failure::Other(format!("the backup ended after {bytes} of {total} bytes")));
    }

    draft.as_file().sync_all().map_err(failure)?;
    draft.persist_noclobber(path).map_err(|error| failure(error.error))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failure)?;
    output::print(&format!("{}: {bytes} bytes\n", path.display()))
}
