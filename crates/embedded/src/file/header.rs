//! The parts of the database's header that the store itself reads (redb, docs/design.md): the magic
//! number, the file's length, and the primary commit slot.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The first bytes of a redb file. The flags follow in the next byte.
const MAGIC: &[u8; 9] = b"redb\x1A\x0A\xA9\x0D\x0A";
/// The flag for the primary commit slot.
const PRIMARY: u8 = 1;
/// The offset of the sizes: five numbers of four bytes, little-endian.
const SIZES: u64 = 12;

/// Whether the file starts with the magic number.
pub fn is_database(file: &File) -> io::Result<bool> {
    let mut start = [0; MAGIC.len()];
    match file.read_exact_at(&mut start, 0) {
        Ok(()) => Ok(start == *MAGIC),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The length of the file in bytes according to its header. The database extends a file before its
/// header says so, and shortens it after: a sound file is never shorter than this.
pub fn file_length(file: &File) -> io::Result<u64> {
    let mut bytes = [0; 20];
    file.read_exact_at(&mut bytes, SIZES)?;
    let number = |n: usize| {
        let bytes = bytes[n * 4..].first_chunk();
        u64::from(bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    };
    let [page_size, header_pages, region_pages, regions, trailing_pages] =
        [0, 1, 2, 3, 4].map(number);
    let trailing = if trailing_pages > 0 { header_pages + trailing_pages } else { 0 };
    let pages = regions.saturating_mul(header_pages + region_pages).saturating_add(1 + trailing);
    Ok(pages.saturating_mul(page_size))
}

/// The primary commit slot. Each commit switches it.
pub fn primary_slot(file: &File) -> io::Result<u8> {
    let mut flags = [0];
    file.read_exact_at(&mut flags, MAGIC.len() as u64)?;
    Ok(flags[0] & PRIMARY)
}
