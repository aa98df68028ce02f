//! Imports and exports as lines, as `polynym import` reads them and `polynym export` writes them.

use std::collections::HashSet;

use polynym_lines::{Parsed as ParsedLine, UserLine, json};
use polynym_proto::v1;
use polynym_transport::lines::{
    InvalidQuery, LineFormat, LineMethod, LineReader, LineRequest, LineWriter, MAX_LINE_BYTES,
    Parsed, RequestLine, without_values,
};
use prost::{Message, Name};
use serde::de::IgnoredAny;
use serde_json::Value;
use url::form_urlencoded;
use v1::import_users_request::Options;
use v1::import_users_response::{Progress, Reject};
use v1::{
    ExportUsersResponse, ExportedUser, ImportUsersRequest, ImportUsersResponse, OnConflict,
    OnExisting,
};

use crate::MAX_STREAM_BYTES;

/// The maximum values of a line: empty objects take many times their bytes when they are decoded.
const MAX_VALUES: usize = 50_000;

/// The remedy of a file that has become one line.
const KEEP_LINE_BREAKS: &str = "put each user on a line of its own; with curl, send the file by -T \
    FILE, or by --data-binary @FILE, as -d removes its line breaks";

/// Imports, whose requests are lines.
pub static IMPORT: LineMethod = LineMethod {
    takes_lines: true,
    has_events: false,
    format: |request| {
        let reader = ImportReader { options: options(request.query)? };
        let writer = ImportWriter { progress: Progress::default() };
        Ok(LineFormat {
            fields: Vec::new(),
            reader: Some(Box::new(reader)),
            writer: Box::new(writer),
        })
    },
};

/// Exports.
pub static EXPORT: LineMethod = LineMethod {
    takes_lines: false,
    has_events: false,
    format: |request| {
        without_query(request)?;
        Ok(LineFormat { fields: Vec::new(), reader: None, writer: Box::new(ExportWriter) })
    },
};

/// The options of an import from the query of its path.
fn options(query: &str) -> Result<Options, InvalidQuery> {
    let (mut options, mut seen) = (Options::default(), HashSet::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if name != "fields" && !seen.insert(name.clone()) {
            return Err(invalid("the query has a parameter twice: only fields may be repeated"));
        }
        let wrong = |form: &str| InvalidQuery { message: format!("{name}: write {form}") };
        let switch = || match &*value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(wrong("true or false")),
        };
        match &*name {
            "tenant" => options.tenant = value.into_owned(),
            "on_conflict" => {
                let choice = OnConflict::from_str_name(&format!("ON_CONFLICT_{}", upper(&value)));
                options.on_conflict =
                    choice.ok_or_else(|| wrong("reject or skip_identity"))?.into();
            }
            "on_existing" => {
                let choice = OnExisting::from_str_name(&format!("ON_EXISTING_{}", upper(&value)));
                options.on_existing =
                    choice.ok_or_else(|| wrong("reject, skip, update, fill or replace"))?.into();
            }
            "validate_only" => options.validate_only = switch()?,
            "sequential_ids" => options.sequential_ids = switch()?,
            "fields" => options.fields.push(value.into_owned()),
            "key" => options.key = value.into_owned(),
            _ => {
                let message = "the query has a parameter that is none of tenant, on_conflict, \
                    on_existing, validate_only, sequential_ids, fields and key";
                return Err(invalid(message));
            }
        }
    }
    Ok(options)
}

/// Checks that a request whose message is its body has no query.
pub fn without_query(request: LineRequest<'_>) -> Result<(), InvalidQuery> {
    match request.query {
        "" => Ok(()),
        _ => Err(invalid("the query has parameters: write them in the body, as JSON")),
    }
}

pub fn invalid(message: &str) -> InvalidQuery {
    InvalidQuery { message: message.to_owned() }
}

pub fn upper(value: &str) -> String {
    value.to_ascii_uppercase()
}

/// Reads the lines of an import.
struct ImportReader {
    options: Options,
}

impl LineReader for ImportReader {
    fn first(&self) -> Vec<u8> {
        let options = Some(self.options.clone());
        ImportUsersRequest { options, ..Default::default() }.encode_to_vec()
    }

    fn parse(&mut self, number: i64, line: RequestLine<'_>) -> Parsed {
        let parsed = match line {
            RequestLine::Whole(bytes) => parse(number, bytes),
            RequestLine::TooLong(bytes) => Err(format!(
                "a line has at most {MAX_LINE_BYTES} bytes, this one has {bytes}: \
                     {KEEP_LINE_BREAKS}"
            )),
        };
        match parsed {
            Ok(Some(message)) => Parsed::Message(message),
            Ok(None) => Parsed::Nothing,
            Err(message) => {
                let (reason, message) = ("LINE_INVALID".to_owned(), without_values(&message));
                let reject = Reject { line: number, reason, message, ..Default::default() };
                let mut text = Vec::new();
                add_line("reject", message_json(&reject), &mut text);
                Parsed::Rejected(text)
            }
        }
    }
}

/// The encoded request of a line; none if the line has nothing to import.
fn parse(number: i64, line: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let values = line.iter().filter(|byte| matches!(byte, b',' | b'{' | b'[')).count();
    if values > MAX_VALUES {
        return Err(format!("a line has at most {MAX_VALUES} values"));
    }
    let text = str::from_utf8(line);
    let text = text.map_err(|_| "the line is not UTF-8: correct its source".to_owned())?;
    let text = text.trim_start_matches('\u{feff}');
    let parsed = polynym_lines::parse(text).map_err(|error| match has_several_objects(text) {
        true => format!("the line has several objects: {KEEP_LINE_BREAKS}"),
        false => error,
    });
    match parsed? {
        ParsedLine::Skipped => Ok(None),
        ParsedLine::Request(request) => {
            let message = ImportUsersRequest { line: number, ..*request }.encode_to_vec();
            match message.len() {
                0..=MAX_STREAM_BYTES => Ok(Some(message)),
                size => {
                    Err(format!("a user has at most {MAX_STREAM_BYTES} bytes, this one has {size}"))
                }
            }
        }
    }
}

/// Whether another object follows the first one of a line.
fn has_several_objects(text: &str) -> bool {
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let is_first_whole = objects.next().is_some_and(|first| first.is_ok());
    is_first_whole && text[objects.byte_offset()..].trim_start().starts_with('{')
}

/// Writes the rejects, the changes and the report of an import.
struct ImportWriter {
    progress: Progress,
}

impl LineWriter for ImportWriter {
    fn write(&mut self, message: &[u8], text: &mut Vec<u8>) -> Result<(), String> {
        let response = ImportUsersResponse::decode(message).map_err(|error| error.to_string())?;
        for reject in &response.rejects {
            add_line("reject", message_json(reject), text);
        }
        for change in &response.changes {
            add_line("change", message_json(change), text);
        }
        self.progress = response.progress.unwrap_or(self.progress);
        Ok(())
    }

    fn end(&mut self, rejected: i64, text: &mut Vec<u8>) {
        let Progress { lines, rejected: by_server, .. } = self.progress;
        let report =
            Progress { lines: lines + rejected, rejected: by_server + rejected, ..self.progress };
        add_line("report", json::with_defaults(&report).unwrap_or_default(), text);
    }
}

/// The JSON of a part of an import's response.
fn message_json(message: &impl Name) -> Value {
    // Every message of the API has a descriptor.
    json::from_message(message).unwrap_or_default()
}

fn add_line(key: &str, value: Value, text: &mut Vec<u8>) {
    text.extend_from_slice(serde_json::json!({ key: value }).to_string().as_bytes());
    text.push(b'\n');
}

/// Writes the tenant, the users and the holds of an export.
struct ExportWriter;

impl LineWriter for ExportWriter {
    fn write(&mut self, message: &[u8], text: &mut Vec<u8>) -> Result<(), String> {
        let part = ExportUsersResponse::decode(message).map_err(|error| error.to_string())?;
        if let Some(tenant) = &part.tenant_record {
            write_line(&polynym_lines::tenant_object(tenant)?, text)?;
        }
        if let Some(hold) = &part.ownerless_hold {
            write_line(&polynym_lines::hold_object(hold)?, text)?;
        }
        let one = ExportedUser { user: part.user, internals: part.internals };
        for ExportedUser { user, internals } in std::iter::once(one).chain(part.users) {
            let Some(user) = &user else { continue };
            let internals = internals.as_ref().map(polynym_lines::internals_object).transpose()?;
            write_line(&UserLine { user, internals }, text)?;
        }
        Ok(())
    }

    fn end(&mut self, _: i64, _: &mut Vec<u8>) {}
}

fn write_line(line: &impl serde::Serialize, text: &mut Vec<u8>) -> Result<(), String> {
    serde_json::to_writer(&mut *text, line).map_err(|error| error.to_string())?;
    text.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use prost_reflect::DescriptorPool;

    use super::*;
    use polynym_proto::DESCRIPTORS;

    #[test]
    fn every_option_is_a_parameter() {
        let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
        let message = pool.get_message_by_name("polynym.v1.ImportUsersRequest.Options").unwrap();
        for field in message.fields() {
            let value = match field.name() {
                "on_conflict" | "on_existing" => "reject",
                _ if field.kind() == prost_reflect::Kind::Bool => "true",
                _ => "x",
            };
            let parsed = options(&format!("{}={value}", field.name()));
            let parsed = parsed.unwrap_or_else(|error| panic!("{}", error.message));
            assert_ne!(parsed, Options::default(), "{}", field.name());
        }
    }

    #[test]
    fn parameters_have_the_forms_of_the_document() {
        let parsed = options("tenant=a%20b&on_existing=update&fields=email&fields=state").unwrap();
        assert_eq!((parsed.tenant.as_str(), parsed.fields.len()), ("a b", 2));
        assert_eq!(parsed.on_existing(), OnExisting::Update);
        assert_eq!(options("on_existing=fill").unwrap().on_existing(), OnExisting::Fill);
        for wrong in ["on_conflict=x", "validate_only=1", "tenants=a", "on_existing=unspecifie"] {
            assert!(options(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_line_with_many_values_is_rejected_before_it_is_decoded() {
        let bomb = format!("[{}0]", "{},".repeat(MAX_VALUES));
        assert!(parse(1, bomb.as_bytes()).unwrap_err().contains("values"));
        assert_eq!(parse(1, b" "), Ok(None));
        assert!(parse(1, b"{\"displayName\":\"\xff\"}").unwrap_err().contains("UTF-8"));
        assert!(parse(7, b"{\"displayName\":\"Joe\"}").unwrap().is_some());
    }

    #[test]
    fn a_reject_is_short_whatever_its_line_has() {
        let line = format!("{{\"{}\":1}}", "x".repeat(100_000));
        let mut reader = ImportReader { options: Options::default() };
        let Parsed::Rejected(text) = reader.parse(1, RequestLine::Whole(line.as_bytes())) else {
            panic!("an unknown field")
        };
        assert!(text.len() < 1_000, "{}", text.len());
    }

    #[test]
    fn a_reject_repeats_no_value() {
        let mut reader = ImportReader { options: Options::default() };
        for (line, secret) in [
            (r#"{"identities":[{"identifier":{"phone":{"number":14155552671}}}]}"#, "2671"),
            (r#"{"joe@example.com":1}"#, "joe"),
            (r#"{"userId":["joe"]}"#, "joe"),
            (r#"{"joe@example.com":1,"joe@example.com":2}"#, "joe"),
            (r#"{"createTime":"joe@example.com"}"#, "joe"),
        ] {
            let Parsed::Rejected(text) = reader.parse(1, RequestLine::Whole(line.as_bytes()))
            else {
                panic!("{line}")
            };
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("LINE_INVALID") && !text.contains(secret), "{text}");
        }
    }

    #[test]
    fn objects_without_line_breaks_between_them_are_told_how_to_keep_these() {
        for joined in [r#"{"displayName":"Joe"}{"displayName":"Ann"}"#, "{} {"] {
            let error = parse(1, joined.as_bytes()).unwrap_err();
            assert!(error.contains("--data-binary"), "{joined}: {error}");
        }
        for other in ["{", "{}x", "[]"] {
            let error = parse(1, other.as_bytes()).unwrap_err();
            assert!(!error.contains("--data-binary"), "{other}: {error}");
        }
    }
}
