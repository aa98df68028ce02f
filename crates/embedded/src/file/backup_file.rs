//! The file of a backup: a page with a magic number, a checksum and the length of the file, then
//! the database. Earlier programs wrote the database alone.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use redb::StorageBackend;
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Fault, OpenError};
use crate::file::header;

/// The first bytes of a backup.
const MAGIC: &[u8; 16] = b"polynym-backup-1";
/// The header: a page, so that the pages of the database stay aligned.
const HEADER_BYTES: usize = 4_096;
/// The first byte of the checksum, which covers all bytes after it.
const CHECKSUM: usize = MAGIC.len();
/// The first byte of the length of the file.
const LENGTH: usize = CHECKSUM + size_of::<u128>();
/// The bytes that are read at once.
const PART_BYTES: usize = 1 << 20;

/// Whether a file begins like a backup.
pub fn is_backup(file: &File) -> io::Result<bool> {
    let mut start = [0; MAGIC.len()];
    match file.read_exact_at(&mut start, 0) {
        Ok(()) => Ok(start == *MAGIC),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The database in a backup that is being written.
#[derive(Debug)]
pub struct Body(pub File);

impl StorageBackend for Body {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len().saturating_sub(HEADER_BYTES as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset + HEADER_BYTES as u64)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length + HEADER_BYTES as u64)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset + HEADER_BYTES as u64)
    }
}

/// Completes a backup, whose database is closed, by its header. Calls `pause` after each part that
/// is read.
pub fn seal(file: &File, mut pause: impl FnMut() -> Result<(), Fault>) -> Result<(), Fault> {
    let mut header = [0; HEADER_BYTES];
    header[..CHECKSUM].copy_from_slice(MAGIC);
    header[LENGTH..][..size_of::<u64>()].copy_from_slice(&file.metadata()?.len().to_le_bytes());

    let (mut hash, mut parts) = (hash_of(&header), Parts::after_header(file));
    while let Some(part) = parts.next()? {
        hash.update(part);
        pause()?;
    }
    header[CHECKSUM..LENGTH].copy_from_slice(&hash.digest128().to_le_bytes());
    Ok(file.write_all_at(&header, 0)?)
}

/// The hash of what the checksum covers in the header.
fn hash_of(header: &[u8; HEADER_BYTES]) -> Xxh3 {
    let mut hash = Xxh3::new();
    hash.update(&header[LENGTH..]);
    hash
}

/// A backup that is to be restored.
pub struct BackupFile {
    path: PathBuf,
    file: File,
    /// None if an earlier program wrote the backup.
    header: Option<Box<[u8; HEADER_BYTES]>>,
}

impl BackupFile {
    /// Opens a backup, and checks its kind and its length.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let fault = |error: io::Error| match error.kind() {
            ErrorKind::UnexpectedEof => OpenError::damaged_backup(path, "its header is cut off"),
            _ => OpenError::io(path, error),
        };
        let file = File::open(path).map_err(fault)?;
        let (header, expected) = if is_backup(&file).map_err(fault)? {
            let mut header = Box::new([0; HEADER_BYTES]);
            file.read_exact_at(&mut *header, 0).map_err(fault)?;
            let length =
                header[LENGTH..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            (Some(header), length)
        } else if header::is_database(&file).map_err(fault)? {
            (None, header::file_length(&file).map_err(fault)?)
        } else {
            let reason = "it is another kind of file, or its first bytes are damaged";
            return Err(OpenError::NotBackup { path: path.to_owned(), reason });
        };

        let length = file.metadata().map_err(fault)?.len();
        if length != expected {
            let reason = format_args!("it has {length} bytes instead of {expected}");
            return Err(OpenError::damaged_backup(path, reason));
        }
        Ok(Self { path: path.to_owned(), file, header })
    }

    /// Whether the backup has a checksum.
    pub const fn has_checksum(&self) -> bool {
        self.header.is_some()
    }

    /// Writes the database to a new file that only this user can read, and compares the checksum.
    /// Returns the file.
    ///
    /// # Errors
    /// [`OpenError`]. The new file is then incomplete.
    pub fn extract(&self, to: &Path) -> Result<File, OpenError> {
        let unwritable = |error| OpenError::io(to, error);
        let mut new_file = OpenOptions::new();
        let private = new_file.write(true).create_new(true).mode(0o600);
        let mut target = private.open(to).map_err(unwritable)?;

        let mut hash = self.header.as_deref().map(hash_of);
        let mut parts = match hash {
            Some(_) => Parts::after_header(&self.file),
            None => Parts::new(&self.file, 0),
        };
        while let Some(part) = parts.next().map_err(|error| OpenError::io(&self.path, error))? {
            if let Some(hash) = &mut hash {
                hash.update(part);
            }
            target.write_all(part).map_err(unwritable)?;
        }
        if let (Some(hash), Some(header)) = (hash, &self.header)
            && hash.digest128().to_le_bytes() != header[CHECKSUM..LENGTH]
        {
            return Err(OpenError::damaged_backup(&self.path, "its checksum does not match"));
        }
        target.sync_all().map_err(unwritable)?;
        Ok(target)
    }
}

/// The bytes of a file from a position to its end.
struct Parts<'f> {
    file: &'f File,
    position: u64,
    buffer: Vec<u8>,
}

impl<'f> Parts<'f> {
    fn new(file: &'f File, position: u64) -> Self {
        Self { file, position, buffer: vec![0; PART_BYTES] }
    }

    fn after_header(file: &'f File) -> Self {
        Self::new(file, HEADER_BYTES as u64)
    }

    /// The next bytes; none at the end.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let count = loop {
            match self.file.read_at(&mut self.buffer, self.position) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                count => break count?,
            }
        };
        self.position += count as u64;
        Ok((count > 0).then(|| &self.buffer[..count]))
    }
}
