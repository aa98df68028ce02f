//! Parses a line of JSON into a request. A line of a file of rejects contains the rejected line.

use serde_json::{Map, Value};

use crate::content;
use crate::unique_json::UniqueValue;
use polynym_proto::v1::ImportUsersRequest;

/// The kind of a line.
pub enum Parsed {
    /// A request to send.
    Request(Box<ImportUsersRequest>),
    /// A blank line, or the skipped identity of an imported user.
    Skipped,
}

/// The parts of a line in a file of rejects.
const REASON: &str = "reason";
const SKIPPED: &str = "skipped";
/// The key of the rejected line.
pub const ORIGINAL: &str = "original";

/// Parses a line.
///
/// # Errors
/// The error in words.
pub fn parse(text: &str) -> Result<Parsed, String> {
    if text.trim().is_empty() {
        return Ok(Parsed::Skipped);
    }
    let mut object = object(text)?;
    if object.contains_key(REASON) {
        if object.get(SKIPPED).and_then(Value::as_bool) == Some(true) {
            return Ok(Parsed::Skipped);
        }
        object = match object.remove(ORIGINAL) {
            Some(Value::Object(original)) => original,
            Some(Value::String(text)) => self::object(&text)?,
            _ => return Err("the file lacks the rejected line: correct its source".to_owned()),
        };
    }

    let content::Content { user, internals, tenant_record, ownerless_hold } =
        content::content(object)?;
    let request =
        ImportUsersRequest { user, internals, tenant_record, ownerless_hold, ..Default::default() };
    Ok(Parsed::Request(Box::new(request)))
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(UniqueValue(Value::Object(object))) => Ok(object),
        Ok(_) => Err("a line must be an object: {...}".to_owned()),
        Err(error) if error.is_eof() => Err(format!("the line is incomplete: {error}")),
        Err(error) if error.is_data() => Err(error.to_string()),
        Err(error) => Err(format!("the line is not JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> ImportUsersRequest {
        match parse(text) {
            Ok(Parsed::Request(request)) => *request,
            Ok(Parsed::Skipped) => panic!("{text}: skipped"),
            Err(error) => panic!("{text}: {error}"),
        }
    }

    #[test]
    fn a_reject_contains_the_line() {
        let line = r#"{"displayName":"Joe","identities":[{"identifier":{"handle":"joe"}}]}"#;
        let inside = format!(r#"{{"line":3,"reason":"X","message":"","original":{line}}}"#);
        assert_eq!(request(line), request(&inside));
        assert_eq!(request(line).user.unwrap().display_name, "Joe");
        let skipped = inside.replacen("{", r#"{"skipped":true,"#, 1);
        assert!(matches!(parse(&skipped), Ok(Parsed::Skipped)));
    }

    #[test]
    fn attributes_are_told_apart_by_their_spelling() {
        let value = r#"{"intValue":"1"}"#;
        let line = format!(r#"{{"attributes":{{"aB":{value},"a_b":{value}}}}}"#);
        assert_eq!(request(&line).user.unwrap().attributes.len(), 2);
    }

    #[test]
    fn errors_name_their_cause() {
        for (text, wanted) in [
            ("{", "incomplete"),
            ("[]", "an object"),
            ("nonsense", "not JSON"),
            (r#"{"fame":1}"#, "fame"),
            (r#"{"tenant_record":{},"userId":""}"#, "nothing else"),
            (r#"{"displayName":"a","displayName":"b"}"#, r#""displayName" occurs twice"#),
            (r#"{"attributes":{"a":{},"a":{}}}"#, r#""a" occurs twice"#),
            (r#"{"identities":[{"display":"a","display":"a"}]}"#, r#""display" occurs twice"#),
            (r#"{"displayName":"a","display_name":"b"}"#, "display_name occurs twice"),
            (r#"{"internals":{"undo":{"end_time":null,"endTime":null}}}"#, "end_time occurs twice"),
            (
                r#"{"identities":[{"verified_by":"a","verifiedBy":"b"}]}"#,
                "verified_by occurs twice",
            ),
        ] {
            let error = parse(text).err().unwrap();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
