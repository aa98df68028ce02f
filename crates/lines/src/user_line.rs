//! The lines of users: the JSON mapping of protocol buffers with sorted keys, as `json`
//! gives it, written without reflection, which exports of millions of users need.

use prost_types::Timestamp;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::content::INTERNALS;
use polynym_proto::v1::attribute_value::Kind as ValueKind;
use polynym_proto::v1::identifier::Kind as IdentifierKind;
use polynym_proto::v1::{AttributeValue, Identifier, Identity, Phone, Social, State, User};

/// The line of a user, with its internals in an export.
pub struct UserLine<'a> {
    /// The user.
    pub user: &'a User,
    /// The parts of the user that responses omit.
    pub internals: Option<Value>,
}

/// A part of a user.
struct Json<'a, T>(&'a T);

impl Serialize for UserLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let user = self.user;
        let mut map = serializer.serialize_map(None)?;
        if !user.attributes.is_empty() {
            map.serialize_entry("attributes", &Json(&user.attributes))?;
        }
        time(&mut map, "createTime", user.create_time.as_ref())?;
        time(&mut map, "deleteTime", user.delete_time.as_ref())?;
        text(&mut map, "displayName", &user.display_name)?;
        text(&mut map, "etag", &user.etag)?;
        if !user.identities.is_empty() {
            map.serialize_entry("identities", &Json(&user.identities))?;
        }
        if let Some(internals) = &self.internals {
            map.serialize_entry(INTERNALS, internals)?;
        }
        text(&mut map, "mergedInto", &user.merged_into)?;
        time(&mut map, "purgeTime", user.purge_time.as_ref())?;
        match State::try_from(user.state) {
            Ok(State::Unspecified) => {}
            Ok(state) => map.serialize_entry("state", state.as_str_name())?,
            Err(_) => map.serialize_entry("state", &user.state)?,
        }
        text(&mut map, "tenant", &user.tenant)?;
        time(&mut map, "updateTime", user.update_time.as_ref())?;
        text(&mut map, "userId", &user.user_id)?;
        map.end()
    }
}

impl Serialize for Json<'_, std::collections::BTreeMap<String, AttributeValue>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, Json(value))))
    }
}

impl Serialize for Json<'_, Vec<Identity>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Json))
    }
}

impl Serialize for Json<'_, Identity> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let identity = self.0;
        let mut map = serializer.serialize_map(None)?;
        text(&mut map, "display", &identity.display)?;
        if let Some(identifier) = &identity.identifier {
            map.serialize_entry("identifier", &Json(identifier))?;
        }
        time(&mut map, "importTime", identity.import_time.as_ref())?;
        time(&mut map, "linkTime", identity.link_time.as_ref())?;
        if identity.primary {
            map.serialize_entry("primary", &true)?;
        }
        text(&mut map, "verifiedBy", &identity.verified_by)?;
        time(&mut map, "verifyTime", identity.verify_time.as_ref())?;
        map.end()
    }
}

impl Serialize for Json<'_, Identifier> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.0.kind {
            None => {}
            Some(IdentifierKind::Email(email)) => map.serialize_entry("email", email)?,
            Some(IdentifierKind::Handle(handle)) => map.serialize_entry("handle", handle)?,
            Some(IdentifierKind::Phone(phone)) => map.serialize_entry("phone", &Json(phone))?,
            Some(IdentifierKind::Social(social)) => map.serialize_entry("social", &Json(social))?,
            Some(IdentifierKind::Url(url)) => map.serialize_entry("url", url)?,
        }
        map.end()
    }
}

impl Serialize for Json<'_, Phone> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        text(&mut map, "number", &self.0.number)?;
        text(&mut map, "region", &self.0.region)?;
        map.end()
    }
}

impl Serialize for Json<'_, Social> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        text(&mut map, "provider", &self.0.provider)?;
        text(&mut map, "subject", &self.0.subject)?;
        map.end()
    }
}

impl Serialize for Json<'_, AttributeValue> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.0.kind {
            None => {}
            Some(ValueKind::StringValue(text)) => map.serialize_entry("stringValue", text)?,
            // JSON numbers have less than 64 bits.
            Some(ValueKind::IntValue(number)) => {
                map.serialize_entry("intValue", &number.to_string())?;
            }
            Some(ValueKind::DoubleValue(number)) => match double_name(*number) {
                Some(name) => map.serialize_entry("doubleValue", name)?,
                None => map.serialize_entry("doubleValue", number)?,
            },
            Some(ValueKind::BoolValue(yes)) => map.serialize_entry("boolValue", yes)?,
            Some(ValueKind::TimeValue(at)) => time(&mut map, "timeValue", Some(at))?,
            Some(ValueKind::ListValue(list)) => {
                let values = Some(("values", &list.values)).filter(|(_, list)| !list.is_empty());
                map.serialize_entry("listValue", &Map(values))?;
            }
        }
        map.end()
    }
}

/// An object of at most one entry.
struct Map<'a>(Option<(&'a str, &'a Vec<String>)>);

impl Serialize for Map<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0)
    }
}

/// The name of a value that is not a number in JSON.
fn double_name(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

fn text<M: SerializeMap>(map: &mut M, key: &'static str, value: &str) -> Result<(), M::Error> {
    if value.is_empty() { Ok(()) } else { map.serialize_entry(key, value) }
}

fn time<M: SerializeMap>(
    map: &mut M,
    key: &'static str,
    value: Option<&Timestamp>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, &value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use polynym_proto::v1::StringList;

    fn value(kind: ValueKind) -> AttributeValue {
        AttributeValue { kind: Some(kind) }
    }

    fn identity(kind: IdentifierKind) -> Identity {
        Identity { identifier: Some(Identifier { kind: Some(kind) }), ..Default::default() }
    }

    #[test]
    fn lines_equal_the_json_mapping() {
        let at = |nanos| Timestamp { seconds: 1_790_000_000, nanos };
        let (provider, subject) = ("github".to_owned(), "\u{1}\"\\/é".to_owned());
        let phone = Phone { number: "+1".to_owned(), region: "US".to_owned() };
        let values = [
            ("a", value(ValueKind::StringValue(String::new()))),
            ("b \"", value(ValueKind::IntValue(i64::MIN))),
            ("c", value(ValueKind::DoubleValue(1.0))),
            ("d", value(ValueKind::DoubleValue(f64::NAN))),
            ("e", value(ValueKind::DoubleValue(f64::NEG_INFINITY))),
            ("f", value(ValueKind::DoubleValue(1e300))),
            ("g", value(ValueKind::BoolValue(false))),
            ("h", value(ValueKind::TimeValue(at(120_000_000)))),
            ("i", value(ValueKind::ListValue(StringList::default()))),
            ("j", value(ValueKind::ListValue(StringList { values: vec!["x".to_owned()] }))),
            ("k", AttributeValue::default()),
        ];
        let user = User {
            user_id: "id".to_owned(),
            tenant: "default".to_owned(),
            state: State::Merged.into(),
            display_name: "Zoë".to_owned(),
            identities: vec![
                Identity {
                    display: "x".to_owned(),
                    link_time: Some(at(0)),
                    import_time: Some(at(2)),
                    verify_time: Some(at(1)),
                    verified_by: "me".to_owned(),
                    primary: true,
                    ..identity(IdentifierKind::Email("a@example.com".to_owned()))
                },
                identity(IdentifierKind::Handle(String::new())),
                identity(IdentifierKind::Phone(phone)),
                identity(IdentifierKind::Social(Social { provider, subject })),
                identity(IdentifierKind::Url("https://example.com".to_owned())),
                Identity::default(),
            ],
            attributes: values.map(|(name, value)| (name.to_owned(), value)).into(),
            create_time: Some(at(1_000)),
            update_time: Some(at(999_000_000)),
            delete_time: Some(Timestamp { seconds: -1, nanos: 0 }),
            purge_time: Some(Timestamp::default()),
            etag: "e".to_owned(),
            merged_into: "other".to_owned(),
        };
        for user in [user, User::default(), User { state: 99, ..Default::default() }] {
            let written = serde_json::to_string(&UserLine { user: &user, internals: None });
            let expected = json::from_message(&user).unwrap().to_string();
            assert_eq!(written.unwrap(), expected);
        }
    }
}
