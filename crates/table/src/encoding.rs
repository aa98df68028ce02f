//! The text of a file: UTF-8, UTF-16 with its mark, or an encoding that is named.

use std::io::{self, Cursor, Read};

pub use encoding_rs::Encoding;
use encoding_rs::UTF_8;
use encoding_rs_io::{DecodeReaderBytes, DecodeReaderBytesBuilder};

/// The bytes by which a format is recognised.
const HEAD_BYTES: usize = 512;

/// Formats that are no text: their first bytes, and what they are.
const FORMATS: [(&[u8], &str); 9] = [
    (b"PK\x03\x04", "a workbook or another ZIP archive: save the sheet as CSV UTF-8"),
    (b"\xd0\xcf\x11\xe0", "a workbook of Excel 97 (.xls): save the sheet as CSV UTF-8"),
    (b"\x1f\x8b", "compressed by gzip: gunzip -c FILE | polynym import - --format csv"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd: zstdcat FILE | polynym import - --format csv"),
    (b"BZh", "compressed by bzip2: bzcat FILE | polynym import - --format csv"),
    (b"\xfd7zXZ", "compressed by xz: xzcat FILE | polynym import - --format csv"),
    (b"%PDF", "a PDF document: export the table as CSV"),
    (b"PAR1", "a Parquet file: export the table as CSV"),
    (b"SQLite format 3", "a database of SQLite: export the table as CSV"),
];

/// The text of a file, in UTF-8.
pub struct Text<R: Read> {
    /// The text. Bytes that are no UTF-8 remain, if the file has no other encoding.
    pub reader: DecodeReaderBytes<io::Chain<Cursor<Vec<u8>>, R>, Vec<u8>>,
    /// The name of the encoding, such as `UTF-8`.
    pub encoding: &'static str,
}

/// The encoding with this name, such as `windows-1252` or `latin1`, by the WHATWG Encoding
/// Standard.
///
/// # Errors
/// There is no such encoding.
pub fn named(label: &str) -> Result<&'static Encoding, String> {
    Encoding::for_label(label.as_bytes()).ok_or_else(|| {
        format!(
            "--encoding {label}: no such encoding; usual ones are utf-8, windows-1252, \
             iso-8859-15, windows-1250, windows-1251, utf-16le and macintosh"
        )
    })
}

/// Reads a file as text. A byte order mark decides, then `encoding`; without either it is UTF-8.
///
/// # Errors
/// The file cannot be read, or is no text: in words.
pub fn open<R: Read>(
    mut reader: R,
    encoding: Option<&'static Encoding>,
) -> Result<Text<R>, String> {
    let mut head = Vec::new();
    let read = reader.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head);
    read.map_err(|error| error.to_string())?;
    let marked = Encoding::for_bom(&head).map(|(encoding, _)| encoding);
    if let Some((_, what)) = FORMATS.iter().find(|(start, _)| head.starts_with(start)) {
        return Err(format!("the file is {what}"));
    }
    let encoding = marked.or(encoding);
    if encoding.is_none_or(|encoding| encoding == UTF_8) && head.contains(&0) {
        return Err(binary(&head).to_owned());
    }
    let reader = DecodeReaderBytesBuilder::new()
        .encoding(encoding.filter(|encoding| *encoding != UTF_8))
        .utf8_passthru(true)
        .strip_bom(true)
        .bom_override(true)
        .build(Cursor::new(head).chain(reader));
    Ok(Text { reader, encoding: encoding.map_or(UTF_8.name(), Encoding::name) })
}

/// What a file with zero bytes is.
fn binary(head: &[u8]) -> &'static str {
    let zeros = |odd: usize| head.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    match head.len() / 4 {
        most if odd > most && even == 0 => "the file is UTF-16: add --encoding utf-16le",
        most if even > most && odd == 0 => "the file is UTF-16: add --encoding utf-16be",
        _ => "the file is binary, no text: export it as CSV UTF-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], label: Option<&str>) -> Result<(String, &'static str), String> {
        let mut text = open(bytes, label.map(|label| named(label).unwrap()))?;
        let mut read = String::new();
        text.reader.read_to_string(&mut read).map_err(|error| error.to_string())?;
        Ok((read, text.encoding))
    }

    #[test]
    fn marks_and_names_decide() {
        let utf16: Vec<u8> = "\u{feff}Müller".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let german = "Müller".to_owned();
        assert_eq!(text(&utf16, None), Ok((german.clone(), "UTF-16LE")));
        assert_eq!(text(b"M\xfcller", Some("windows-1252")), Ok((german.clone(), "windows-1252")));
        assert_eq!(text("\u{feff}Müller".as_bytes(), Some("latin1")), Ok((german, "UTF-8")));
        assert_eq!(text(b"", None), Ok((String::new(), "UTF-8")));
        assert!(named("klingon").unwrap_err().contains("windows-1252"));
    }

    #[test]
    fn other_files_are_named() {
        for (bytes, part) in [
            (&b"PK\x03\x04xl/workbook.xml"[..], "workbook"),
            (b"\x1f\x8b\x08\x00", "gunzip"),
            (b"a\0b\0c\0d\0", "--encoding utf-16le"),
            (b"\0a\0b\0c\0d", "--encoding utf-16be"),
            (b"\x7fELF\0\0\0\0\x01\x01", "binary"),
        ] {
            let error = text(bytes, None).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
