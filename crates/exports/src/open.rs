//! Opens a file of any format.

use std::io::{BufReader, Read};

use polynym_table::encoding;

use crate::format::ExportFormat;
use crate::json::JsonUsers;
use crate::users::{ReadOptions, Users};
use crate::{auth0, firebase, keycloak, kratos, ldif, sheet, vcard};

/// The bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Opens a file of a format. UTF-16 with its mark is read as well as UTF-8, and the
/// encoding that the options name.
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
        return Ok(Box::new(sheet::Sheet::open(format, reader, options)?));
    }
    let text = encoding::open(reader, options.encoding)
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
