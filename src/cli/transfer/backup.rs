//! `polynym backup`.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use tonic::Request;

use crate::cli::client::Session;
use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::output;
use crate::config::{Client, Flags};
use crate::proto::v1::BackupStoreRequest;

pub const EXAMPLES: &str = "\
Examples:
  polynym backup polynym-2026-01-31.redb
  polynym restore polynym-2026-01-31.redb --store embedded:/var/lib/polynym

The server goes on meanwhile. It needs as much space in the store's folder as the store has data.";

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
    let fault = |error: std::io::Error| files::fault(path, error);
    if path.exists() {
        return Err(Failure::Other(format!("{}: is there already", path.display())));
    }
    let session = Session::open(&command.settings).await?;
    let folder = files::folder(path);
    let mut draft = tempfile::NamedTempFile::new_in(folder).map_err(fault)?;

    // Has no deadline of its own: it takes as long as there is data.
    let request = Request::new(BackupStoreRequest {});
    let mut chunks = session.answer(session.admin().backup_store(request).await)?;
    let (mut bytes, mut total) = (0, 0);
    while let Some(chunk) = chunks.message().await.map_err(|status| session.failed(status, None))? {
        draft.write_all(&chunk.data).map_err(fault)?;
        bytes += chunk.data.len() as i64;
        total = chunk.total_bytes;
    }
    if bytes == 0 || bytes != total {
        return Err(Failure::Other(format!("the copy ended after {bytes} of {total} bytes")));
    }

    draft.as_file().sync_all().map_err(fault)?;
    draft.persist_noclobber(path).map_err(|error| fault(error.error))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(fault)?;
    output::print(&format!("{}: {bytes} bytes\n", path.display()))
}
