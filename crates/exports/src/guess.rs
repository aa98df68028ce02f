//! The format of a file, by its first bytes.

use std::collections::BTreeSet;

use csv::ReaderBuilder;

use crate::format::ExportFormat;
use crate::sheet;

/// The bytes at the beginning of a file by which its format is known.
pub const HEAD_BYTES: usize = 64 << 10;
/// The levels of JSON whose keys are looked at.
const LEVELS: usize = 3;

/// The format of a file that begins so; none if it is another one, or may be.
pub fn guess(head: &[u8]) -> Option<ExportFormat> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let starts = |text: &str| {
        head.get(..text.len()).is_some_and(|own| own.eq_ignore_ascii_case(text.as_bytes()))
    };
    match head.first()? {
        b'{' | b'[' => json(head),
        _ if starts("BEGIN:VCARD") => Some(ExportFormat::Vcard),
        _ => text(head),
    }
}

/// The format of a text: LDIF, or a table by its header.
fn text(head: &[u8]) -> Option<ExportFormat> {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.clone().find(|line| !line.is_empty() && !line.starts_with(b"#"))?;
    let starts = |line: &[u8], text: &str| {
        line.get(..text.len()).is_some_and(|own| own.eq_ignore_ascii_case(text.as_bytes()))
    };
    if starts(first, "dn:") || (starts(first, "version:") && lines.any(|line| starts(line, "dn:")))
    {
        return Some(ExportFormat::Ldif);
    }
    let header = head.split(|byte| *byte == b'\n').next()?;
    let separator = [b',', b';', b'\t'].into_iter();
    let separator =
        separator.max_by_key(|sign| header.iter().filter(|own| *own == sign).count())?;
    let mut reader =
        ReaderBuilder::new().has_headers(false).delimiter(separator).from_reader(header);
    let row = reader.records().next()?.ok()?;
    let names: Vec<_> = row.iter().collect();
    [ExportFormat::Okta, ExportFormat::Entra]
        .into_iter()
        .find(|format| sheet::is_header(*format, &names))
}

/// The format of JSON, by its keys.
fn json(head: &[u8]) -> Option<ExportFormat> {
    let [outer, inner, innermost] = keys(head);
    let is_list = head.first() == Some(&b'[');
    let users = if is_list { &inner } else { &outer };
    let has =
        |keys: &BTreeSet<String>, names: &[&str]| names.iter().all(|name| keys.contains(*name));
    let nested = |list: &str, names: &[&str]| outer.contains(list) && has(&innermost, names);
    let is_keycloak = (!is_list && has(&outer, &["realm"]))
        || has(users, &["username", "createdTimestamp"])
        || nested("users", &["username", "createdTimestamp"])
        || nested("users", &["username", "enabled"]);
    let is_firebase = nested("users", &["localId"]) || (is_list && has(&inner, &["localId"]));
    let is_auth0 = ["user_id", "Id"].iter().any(|name| users.contains(*name))
        && ["email_verified", "user_metadata", "app_metadata", "Email Verified"]
            .iter()
            .any(|name| users.contains(*name));
    let is_kratos =
        has(users, &["schema_id", "traits"]) || nested("identities", &["schema_id", "traits"]);
    let found = [
        (is_keycloak, ExportFormat::Keycloak),
        (is_firebase, ExportFormat::Firebase),
        (is_auth0, ExportFormat::Auth0),
        (is_kratos, ExportFormat::Kratos),
    ];
    let mut found = found.into_iter().filter(|(is_it, _)| *is_it);
    match (found.next(), found.next()) {
        (Some((_, format)), None) => Some(format),
        _ => None,
    }
}

/// The keys of the first levels, as far as the text goes.
pub fn keys(text: &[u8]) -> [BTreeSet<String>; LEVELS] {
    let mut keys = [const { BTreeSet::new() }; LEVELS];
    let (mut depth, mut n) = (0_usize, 0);
    while let Some(byte) = text.get(n) {
        n += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                // The first value has ended: the first of several lines.
                if depth == 0 {
                    break;
                }
            }
            b'"' => {
                let start = n;
                n = end_of_text(text, n);
                let rest = text.get(n + 1..).unwrap_or_default().trim_ascii_start();
                let level = depth.checked_sub(1).and_then(|level| keys.get_mut(level));
                if let (Some(level), true) = (level, rest.starts_with(b":")) {
                    let key = text.get(start..n).unwrap_or_default();
                    level.insert(String::from_utf8_lossy(key).into_owned());
                }
                n += 1;
            }
            _ => {}
        }
    }
    keys
}

/// The position of the quote that ends a text, or the end.
fn end_of_text(text: &[u8], start: usize) -> usize {
    let mut n = start;
    while let Some(byte) = text.get(n) {
        match byte {
            b'"' => return n,
            b'\\' => n += 2,
            _ => n += 1,
        }
    }
    text.len()
}
