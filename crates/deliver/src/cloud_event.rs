//! An event as a CloudEvent 1.0 in JSON.

use polynym_proto::v1;
use serde_json::{Value, json};

/// In front of the name of a type.
const TYPE_PREFIX: &str = "dev.polynym.";

/// The id of an event, by which receivers know it again.
pub fn event_id(event: &v1::Event) -> &str {
    &event.event_id
}

/// The body for an event. Without values it has the ids of users alone: neither what changed, nor
/// who changed it, nor why.
///
/// # Errors
/// The event has no form in JSON.
pub fn body(event: &v1::Event, with_values: bool) -> Result<Vec<u8>, String> {
    let data = match with_values {
        true => polynym_lines::json::from_message(event)?,
        false => ids(event)?,
    };
    let envelope = json!({
        "specversion": "1.0",
        "id": event_id(event),
        "source": format!("/tenants/{}", event.tenant),
        "type": format!("{TYPE_PREFIX}{}", type_name(event)),
        "subject": event.user_id,
        "time": time(event)?,
        "datacontenttype": "application/json",
        "sequence": event.sequence.to_string(),
        "data": data,
    });
    serde_json::to_vec(&envelope).map_err(|error| error.to_string())
}

/// The body by which a receiver is tried.
///
/// # Errors
/// It has no form in JSON.
pub fn test_body(id: &str, tenant: &str, time: &str) -> Result<Vec<u8>, String> {
    let envelope = json!({
        "specversion": "1.0",
        "id": id,
        "source": format!("/tenants/{tenant}"),
        "type": format!("{TYPE_PREFIX}test"),
        "time": time,
        "datacontenttype": "application/json",
        "data": {},
    });
    serde_json::to_vec(&envelope).map_err(|error| error.to_string())
}

/// The parts of an event that no purge removes.
fn ids(event: &v1::Event) -> Result<Value, String> {
    let other = event.change_set().map(|changes| changes.other_user_id.clone());
    let ids = v1::Event {
        event_id: event.event_id.clone(),
        time: event.time,
        tenant: event.tenant.clone(),
        user_id: event.user_id.clone(),
        sequence: event.sequence,
        ..v1::Event::default()
    };
    let mut ids = polynym_lines::json::from_message(&ids)?;
    if let (Some(other), Some(ids)) = (other.filter(|id| !id.is_empty()), ids.as_object_mut()) {
        ids.insert("otherUserId".to_owned(), Value::String(other));
    }
    Ok(ids)
}

/// The time of an event, as its JSON has it.
fn time(event: &v1::Event) -> Result<Value, String> {
    let alone = v1::Event { time: event.time, ..v1::Event::default() };
    let mut json = polynym_lines::json::from_message(&alone)?;
    Ok(json.get_mut("time").map(Value::take).unwrap_or_default())
}

/// The name of the type of an event, such as `user_created`.
fn type_name(event: &v1::Event) -> String {
    let name = event.event_type().as_str_name();
    name.strip_prefix("EVENT_TYPE_").unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use polynym_proto::v1::event::Change;

    fn event() -> v1::Event {
        let name = v1::FieldChange { path: "display_name".into(), ..v1::FieldChange::default() };
        let changes = v1::ChangeSet {
            fields: vec![name],
            other_user_id: "other".to_owned(),
            ..v1::ChangeSet::default()
        };
        v1::Event {
            event_id: "user:7".to_owned(),
            time: Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 5_000_000 }),
            tenant: "acme".to_owned(),
            user_id: "user".to_owned(),
            sequence: 7,
            caller: "ana".to_owned(),
            method: "UpdateUser".to_owned(),
            reason: "a request by mail".to_owned(),
            change: Some(Change::UserUpdated(changes)),
            ..v1::Event::default()
        }
    }

    fn parsed(with_values: bool) -> Value {
        serde_json::from_slice(&body(&event(), with_values).unwrap()).unwrap()
    }

    #[test]
    fn an_event_is_a_cloud_event_with_its_message() {
        let json = parsed(true);
        let data = &json["data"];
        assert_eq!(data["userUpdated"]["fields"][0]["path"], "display_name", "{json}");
        assert_eq!((&data["eventId"], &data["caller"]), (&"user:7".into(), &"ana".into()));
        let mut envelope = json.clone();
        envelope.as_object_mut().unwrap().remove("data");
        let expected = json!({
            "specversion": "1.0", "id": "user:7", "source": "/tenants/acme",
            "type": "dev.polynym.user_updated", "subject": "user", "sequence": "7",
            "time": "2023-11-14T22:13:20.005Z", "datacontenttype": "application/json",
        });
        assert_eq!(envelope, expected);
    }

    #[test]
    fn without_values_an_event_has_ids_alone() {
        let json = parsed(false);
        let expected = json!({
            "eventId": "user:7", "time": "2023-11-14T22:13:20.005Z", "tenant": "acme",
            "userId": "user", "sequence": "7", "otherUserId": "other",
        });
        assert_eq!(json["data"], expected);
        assert_eq!(json["type"], "dev.polynym.user_updated");
    }
}
