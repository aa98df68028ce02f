//! A watch as lines, or as server-sent events.

use polynym_lines::json;
use polynym_proto::v1;
use polynym_transport::lines::{
    InvalidQuery, LineForm, LineFormat, LineMethod, LineRequest, LineWriter,
};
use prost::Message;
use url::form_urlencoded;
use v1::watch_response::Kind;
use v1::{EventType, WatchRequest, WatchResponse};

use super::lines::{invalid, upper, without_query};

/// Watches, which can be server-sent events.
pub static LINES: LineMethod = LineMethod { takes_lines: false, has_events: true, format };

/// The format of a watch. That of a browser's `EventSource` has its request in the query.
fn format(request: LineRequest<'_>) -> Result<LineFormat, InvalidQuery> {
    let mut fields = match request.is_get {
        true => query(request.query)?,
        false => without_query(request).map(|()| WatchRequest::default())?,
    };
    if let Some(id) = request.last_event_id {
        id.clone_into(&mut fields.resume_token);
    }
    Ok(LineFormat {
        fields: fields.encode_to_vec(),
        reader: None,
        writer: Box::new(WatchWriter { form: request.form }),
    })
}

/// The request in a query.
fn query(query: &str) -> Result<WatchRequest, InvalidQuery> {
    let mut request = WatchRequest::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "tenant" => request.tenant = value.into_owned(),
            "user_ids" => request.user_ids.push(value.into_owned()),
            "types" => {
                let kind = EventType::from_str_name(&format!("EVENT_TYPE_{}", upper(&value)));
                let kind =
                    kind.ok_or_else(|| invalid("types: write a type such as user_created"))?;
                request.types.push(kind.into());
            }
            "resume_token" => request.resume_token = value.into_owned(),
            _ => {
                let message = "the query has a parameter that is none of tenant, user_ids, types \
                    and resume_token";
                return Err(invalid(message));
            }
        }
    }
    Ok(request)
}

/// Writes the responses of a watch.
struct WatchWriter {
    form: LineForm,
}

impl LineWriter for WatchWriter {
    fn write(&mut self, message: &[u8], text: &mut Vec<u8>) -> Result<(), String> {
        let response = WatchResponse::decode(message).map_err(|error| error.to_string())?;
        let data = json::from_message(&response)?;
        let lines = match self.form {
            LineForm::Json => format!("{data}\n"),
            LineForm::Events => {
                let is_heartbeat = matches!(response.kind, Some(Kind::Heartbeat(_)));
                let name = if is_heartbeat { "event: heartbeat\n" } else { "" };
                format!("{name}id: {}\ndata: {data}\n\n", response.resume_token)
            }
        };
        text.extend_from_slice(lines.as_bytes());
        Ok(())
    }

    fn end(&mut self, _: i64, _: &mut Vec<u8>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_a_request() {
        let parsed = query("tenant=a%20b&types=user_created&types=user_disabled&user_ids=x");
        let parsed = parsed.unwrap_or_else(|error| panic!("{}", error.message));
        assert_eq!(
            (parsed.tenant.as_str(), parsed.types.len(), parsed.user_ids.len()),
            ("a b", 2, 1)
        );
        for wrong in ["types=x", "types=unspecifie", "user=1"] {
            assert!(query(wrong).is_err(), "{wrong}");
        }
    }
}
