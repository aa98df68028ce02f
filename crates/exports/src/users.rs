//! The users of a file, one after another.

use std::io::{BufReader, Read};

use polynym_proto::v1::User;
use polynym_table::encoding;

use crate::format::ExportFormat;
use crate::json::JsonUsers;
use crate::notes::Notes;
use crate::{auth0, firebase, keycloak, kratos, ldif, sheet, vcard};

/// The bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// How a file is read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The region of telephone numbers in national form; may be empty.
    pub region: String,
}

/// A user of a file.
#[derive(Debug)]
pub struct Entry {
    /// The line in which the user begins, from 1; higher than that of the user before, if several
    /// are in one line.
    pub line: i64,
    /// The bytes of the file since the user before.
    pub bytes: usize,
    /// The user, or why there is none: the fault and its remedy.
    pub user: Result<User, String>,
}

/// The users of a file.
pub trait Users {
    /// The next user; none at the end.
    ///
    /// # Errors
    /// The rest of the file cannot be read: in words, with the line.
    fn next_user(&mut self) -> Result<Option<Entry>, String>;

    /// What was left out so far.
    fn notes(&self) -> &Notes;
}

/// Opens a file of a format. UTF-16 with its mark is read as well as UTF-8.
///
/// # Errors
/// The file is compressed, or is no such file: in words.
pub fn open<'r>(
    format: ExportFormat,
    reader: impl Read + 'r,
    options: &ReadOptions,
) -> Result<Box<dyn Users + 'r>, String> {
    let region = &options.region;
    if format.is_table() {
        return Ok(Box::new(sheet::Sheet::open(format, reader, region)?));
    }
    let text = encoding::open(reader, None)
        .map_err(|error| error.replace("--format csv", &format!("--format {}", format.name())))?;
    let reader = BufReader::with_capacity(BUFFER_BYTES, text.reader);
    Ok(match format {
        ExportFormat::Keycloak => Box::new(JsonUsers::open(reader, &keycloak::SHAPE, region)?),
        ExportFormat::Firebase => Box::new(JsonUsers::open(reader, &firebase::SHAPE, region)?),
        ExportFormat::Kratos => Box::new(JsonUsers::open(reader, &kratos::SHAPE, region)?),
        ExportFormat::Auth0 => Box::new(JsonUsers::open(reader, &auth0::SHAPE, region)?),
        ExportFormat::Vcard => Box::new(vcard::Cards::new(reader, region)),
        _ => Box::new(ldif::Entries::new(reader, region)),
    })
}
