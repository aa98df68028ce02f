//! Files without a name: the system removes them when they are closed, however the server ends.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;

use super::pool::Taken;
use super::stop::Stop;

/// The bytes that are read at once for a download.
const CHUNK_BYTES: usize = 64 << 10;

/// A file without a name, which takes its bytes from a pool.
pub struct KeptFile {
    file: File,
    bytes: AtomicU64,
    taken: Mutex<Taken>,
    max_bytes: u64,
    is_cut: AtomicBool,
}

impl KeptFile {
    /// An empty file of at most this number of bytes.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(taken: Taken, max_bytes: u64) -> io::Result<Self> {
        Ok(Self {
            file: tempfile::tempfile()?,
            bytes: AtomicU64::new(0),
            taken: Mutex::new(taken),
            max_bytes,
            is_cut: AtomicBool::new(false),
        })
    }

    /// The bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Whether some bytes did not fit.
    pub fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Acquire)
    }

    /// Appends all of these bytes, or none if they do not fit: then nothing fits from then on.
    /// Returns whether they fit.
    ///
    /// # Errors
    /// Those of the system.
    pub fn append(&self, bytes: &[u8]) -> io::Result<bool> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (end, more) = (self.bytes(), bytes.len() as u64);
        if self.is_cut() || end + more > self.max_bytes || !taken.grow(more) {
            self.is_cut.store(true, Ordering::Release);
            return Ok(false);
        }
        self.file.write_all_at(bytes, end)?;
        self.bytes.store(end + more, Ordering::Release);
        Ok(true)
    }

    /// Reads the file from its beginning, until it is stopped.
    pub fn reader(self: &Arc<Self>, stop: Stop) -> impl Read + Send + 'static {
        KeptReader { file: self.clone(), position: 0, stop }
    }

    /// The file as the body of a response.
    pub fn body(self: &Arc<Self>) -> Body {
        let next = |(file, position): (Arc<Self>, u64)| async move {
            let chunk = tokio::task::spawn_blocking(move || {
                let mut chunk = vec![0; CHUNK_BYTES];
                let read = file.file.read_at(&mut chunk, position)?;
                chunk.truncate(read);
                Ok::<_, io::Error>((file, chunk))
            });
            let (file, chunk) = chunk.await.map_err(io::Error::other)??;
            let end = position + chunk.len() as u64;
            Ok::<_, io::Error>((!chunk.is_empty()).then(|| (Bytes::from(chunk), (file, end))))
        };
        Body::from_stream(stream::try_unfold((self.clone(), 0), next))
    }
}

struct KeptReader {
    file: Arc<KeptFile>,
    position: u64,
    stop: Stop,
}

impl Read for KeptReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Err(io::Error::other("it was stopped"));
        }
        let read = self.file.file.read_at(buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

/// Appends to a file, and leaves out what does not fit.
pub struct Appender(pub Arc<KeptFile>);

impl Write for Appender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imports::Space;

    #[test]
    fn a_file_is_cut_at_its_maximum() {
        let taken = Space::default().bytes.take("ana", 0).unwrap();
        let file = Arc::new(KeptFile::new(taken, 8).unwrap());
        let mut appender = Appender(file.clone());
        for line in ["12345\n", "123\n", "\n"] {
            appender.write_all(line.as_bytes()).unwrap();
        }
        let mut text = String::new();
        let stop = Stop::default();
        file.reader(stop.clone()).read_to_string(&mut text).unwrap();
        assert_eq!((&*text, file.is_cut(), file.bytes()), ("12345\n", true, 6));
        stop.set();
        assert!(file.reader(stop).read_to_string(&mut text).is_err());
    }
}
