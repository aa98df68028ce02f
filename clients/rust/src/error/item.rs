//! The error of an item of a batch as that of a call of its own.

use polynym_proto::google::rpc;
use prost::Message;

const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// The status of an item without its index: the caller of a look-up has not made the batch.
pub fn without_index(mut item: rpc::Status) -> rpc::Status {
    item.message = rename(&item.message);
    for detail in item.details.iter_mut().filter(|detail| detail.type_url == BAD_REQUEST) {
        let Ok(mut bad) = rpc::BadRequest::decode(detail.value.as_slice()) else { continue };
        for violation in &mut bad.field_violations {
            violation.field = rename(&violation.field);
            violation.description = rename(&violation.description);
        }
        detail.value = bad.encode_to_vec();
    }
    item
}

/// A text with `identifier` in place of `identifiers[3]`.
fn rename(text: &str) -> String {
    let mut parts = text.split("identifiers[");
    let mut renamed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let after = part.trim_start_matches(|c: char| c.is_ascii_digit());
        match after.strip_prefix(']') {
            Some(rest) if after.len() < part.len() => renamed.extend(["identifier", rest]),
            _ => renamed.extend(["identifiers[", part]),
        }
    }
    renamed
}

#[cfg(test)]
mod tests {
    use tonic::Code;
    use tonic_types::StatusExt;

    use super::*;
    use crate::Error;

    #[test]
    fn an_item_has_the_error_of_a_call_of_its_own() {
        let field = "identifiers[44]".to_owned();
        let description = "no email".to_owned();
        let bad = rpc::BadRequest {
            field_violations: vec![rpc::bad_request::FieldViolation {
                field,
                description,
                ..Default::default()
            }],
        };
        let item = rpc::Status {
            code: Code::InvalidArgument.into(),
            message: "identifiers[44]: no email".to_owned(),
            details: vec![prost_types::Any {
                type_url: BAD_REQUEST.to_owned(),
                value: bad.encode_to_vec(),
            }],
        };
        let error = Error::of_item(item);
        assert_eq!(error.message(), "identifier: no email");
        assert_eq!(error.field(), Some("identifier"));
        let details = error.status().get_error_details();
        assert_eq!(details.bad_request().unwrap().field_violations[0].field, "identifier");
        assert!(!format!("{:?}", error.status()).contains("identifiers["));
    }

    #[test]
    fn other_texts_stay() {
        for text in
            ["identifiers: at most 1000", "identifiers[x]", "identifiers[]", "identifiers[7"]
        {
            assert_eq!(rename(text), text);
        }
        assert_eq!(rename("a identifiers[7].email: b"), "a identifier.email: b");
    }
}
