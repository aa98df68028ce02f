//! The thread that reads the file: parses lines, sends requests, and adds the lines to the window.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use prost::Message;
use tokio::sync::mpsc::Sender;

use super::arguments::{Format, Import};
use super::csv::Rows;
use super::jsonl::{self, Parsed};
use super::lines::{Line, Lines, MAX_LINE_BYTES};
use super::mapping::Mapping;
use super::rejects::{Rejected, Rejects};
use super::window::{Original, Window};
use crate::failure::Failure;
use crate::files;
use polynym_proto::v1::ImportUsersRequest;

/// The maximum bytes of a request.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
const BUFFER_BYTES: usize = 256 << 10;

/// Reads a file.
pub struct FileReader {
    pub window: Arc<Window>,
    pub rejects: Arc<Rejects>,
    pub requests: Sender<ImportUsersRequest>,
    /// Lines that were rejected before they were sent.
    pub rejected: Arc<AtomicI64>,
}

impl FileReader {
    /// Reads the file. Returns the number of lines that are not blank.
    pub fn run(&self, command: &Import) -> Result<i64, Failure> {
        let path = &command.file;
        let failure = |error: String| files::failure(path, error);
        let reader: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(std::io::stdin()),
            false => Box::new(File::open(path).map_err(|error| failure(error.to_string()))?),
        };
        let is_csv = command.format.unwrap_or_else(|| format_of(path)) == Format::Csv;
        let read = if is_csv { self.csv(reader, command) } else { self.jsonl(reader) };
        read.map_err(|error| match error {
            ReadError::File(error) => failure(error),
            ReadError::Other(failure) => failure,
        })
    }

    fn jsonl(&self, reader: impl Read) -> Result<i64, ReadError> {
        let mut lines = Lines::new(BufReader::with_capacity(BUFFER_BYTES, reader));
        let mut count = 0;
        while let Some((number, line, bytes)) = lines.next().map_err(|e| file_error(&e))? {
            let parsed = match line {
                Line::Whole(line) => {
                    let text = String::from_utf8(line).map_err(|_| {
                        (None, "the line is not UTF-8: correct its source".to_owned())
                    });
                    text.and_then(|line| {
                        let text = line.trim_start_matches('\u{feff}');
                        let original = Original::Text(text.into());
                        match jsonl::parse(text) {
                            Ok(parsed) => Ok((original, parsed)),
                            Err(error) => Err((Some(original), error)),
                        }
                    })
                }
                Line::TooLong(bytes) => {
                    let message =
                        format!("a line has at most {MAX_LINE_BYTES} bytes, this has {bytes}");
                    self.reject(number, &message, None)?;
                    count += 1;
                    continue;
                }
            };
            let continues = match parsed {
                Ok((_, Parsed::Skipped)) => continue,
                Ok((original, Parsed::Request(request))) => {
                    self.send(number, original, *request, bytes)?
                }
                Err((original, error)) => self.reject(number, &error, original)?,
            };
            count += 1;
            if !continues {
                break;
            }
        }
        Ok(count)
    }

    fn csv(&self, reader: Box<dyn Read>, command: &Import) -> Result<i64, ReadError> {
        let (mut rows, header) = Rows::new(reader).map_err(ReadError::File)?;
        let mapping = Mapping::new(&command.maps, &header, &command.region)
            .map_err(|error| ReadError::Other(Failure::Usage(error)))?;
        let mut count = 0;
        while let Some(row) = rows.next().map_err(ReadError::File)? {
            if row.cells.as_ref().is_ok_and(|cells| cells.iter().all(str::is_empty)) {
                continue;
            }
            count += 1;
            let user = row.cells.and_then(|cells| mapping.user(&cells));
            let continues = match user {
                Err(error) => self.reject(row.line, &error, None)?,
                Ok(user) => {
                    let original = Original::User(Arc::new(user.clone()));
                    let request = ImportUsersRequest { user: Some(user), ..Default::default() };
                    self.send(row.line, original, request, row.bytes)?
                }
            };
            if !continues {
                break;
            }
        }
        Ok(count)
    }

    /// Sends a request. Returns whether the import continues.
    fn send(
        &self,
        line: i64,
        original: Original,
        request: ImportUsersRequest,
        bytes: usize,
    ) -> Result<bool, ReadError> {
        let request = ImportUsersRequest { line, ..request };
        let size = request.encoded_len();
        if size > MAX_MESSAGE_BYTES {
            let message =
                format!("a user has at most {MAX_MESSAGE_BYTES} bytes, this one has {size}");
            return self.reject(line, &message, Some(original));
        }
        Ok(self.window.push(line, original, bytes) && self.requests.blocking_send(request).is_ok())
    }

    /// Rejects a line. Returns whether the import continues.
    fn reject(
        &self,
        line: i64,
        message: &str,
        original: Option<Original>,
    ) -> Result<bool, ReadError> {
        self.rejected.fetch_add(1, Ordering::Relaxed);
        let (reason, identity_index, skipped) = ("LINE_INVALID", None, false);
        let rejected = Rejected { line, reason, message, identity_index, skipped, original };
        self.rejects.add(rejected).map_err(ReadError::Other)?;
        Ok(!self.window.is_closed())
    }
}

/// The error that ends reading.
enum ReadError {
    /// The file cannot be read.
    File(String),
    Other(Failure),
}

fn file_error(error: &std::io::Error) -> ReadError {
    ReadError::File(error.to_string())
}

fn format_of(path: &Path) -> Format {
    let is_csv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    if is_csv { Format::Csv } else { Format::Jsonl }
}
