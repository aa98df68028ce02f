//! BSON values of ids, keys, times and bytes, and readers of a document's fields.

use locality_uuid::LocalityId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{
    Binary, Bson, DateTime, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc,
};

use crate::client::error::Fault;
use crate::schema::fields::ID;
use polynym_directory::Timestamp;
use polynym_identifier::IdentityKey;

/// An id as MongoDB's UUID.
pub fn id_value(id: LocalityId) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() })
}

/// An identity key as MongoDB's string.
pub fn key_value(key: &IdentityKey) -> Bson {
    Bson::String(key.as_str().to_owned())
}

/// A time as MongoDB's date.
pub fn date(time: Timestamp) -> Bson {
    Bson::DateTime(DateTime::from_millis(time.as_millis()))
}

/// Bytes as MongoDB's binary value.
pub fn bytes(bytes: Vec<u8>) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })
}

/// The id of any document.
pub fn bson_id(document: &RawDocument) -> Result<Bson, Fault> {
    let id = document.get(ID).map_err(Fault::damaged)?;
    id.and_then(|id| Bson::try_from(id).ok()).ok_or_else(|| Fault::damaged("a document has no id"))
}

/// The filter for the documents with these ids.
pub fn by_id(mut ids: Vec<Bson>) -> Document {
    match ids.len() {
        1 => doc! { ID: ids.remove(0) },
        _ => doc! { ID: { "$in": ids } },
    }
}

/// The key of a claim's document.
pub fn key_of(document: &RawDocument) -> Result<&str, Fault> {
    required(ID, document.get(ID).map_err(Fault::damaged)?, RawBsonRef::as_str)
}

/// The id of a user's document.
pub fn id_of(document: &RawDocument) -> Result<LocalityId, Fault> {
    required(ID, document.get(ID).map_err(Fault::damaged)?, as_id)
}

/// The id of a user in a value of [`id_value`].
pub fn id_from(value: &Bson) -> Option<LocalityId> {
    let Bson::Binary(id) = value else { return None };
    <[u8; 16]>::try_from(id.bytes.as_slice()).ok().map(LocalityId::from)
}

/// The id of a document as text.
pub fn id_text(document: &RawDocument) -> String {
    let Ok(Some(id)) = document.get(ID) else { return String::new() };
    match (id.as_str(), id.as_binary()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(binary)) => match <[u8; 16]>::try_from(binary.bytes) {
            Ok(bytes) => LocalityId::from(bytes).to_string(),
            Err(_) => format!("{id:?}"),
        },
        _ => format!("{id:?}"),
    }
}

/// The values of these fields of a document, found in one pass.
pub fn read_fields<'d, const N: usize>(
    document: &'d RawDocument,
    names: [&str; N],
) -> Result<[Option<RawBsonRef<'d>>; N], Fault> {
    let mut found = [None; N];
    for element in document.iter_elements() {
        let element = element.map_err(Fault::damaged)?;
        if let Some(n) = names.iter().position(|name| element.key().as_str() == *name) {
            found[n] = Some(element.value().map_err(Fault::damaged)?);
        }
    }
    Ok(found)
}

/// The value of a field that the document must have.
pub fn required<'d, T>(
    name: &str,
    value: Option<RawBsonRef<'d>>,
    read: impl FnOnce(RawBsonRef<'d>) -> Option<T>,
) -> Result<T, Fault> {
    value
        .and_then(read)
        .ok_or_else(|| Fault::damaged(format!("field {name} is missing or has another type")))
}

/// The id in a UUID.
pub fn as_id(value: RawBsonRef<'_>) -> Option<LocalityId> {
    let bytes: [u8; 16] = value.as_binary()?.bytes.try_into().ok()?;
    Some(LocalityId::from(bytes))
}

/// An integer of any numeric type, as servers or administrators write it.
pub fn number(value: &Bson) -> Option<i64> {
    let whole = value.as_i64().or_else(|| value.as_i32().map(i64::from));
    whole.or_else(|| value.as_f64().map(|number| number as i64))
}

/// A document in its encoded form.
pub fn raw(document: &Document) -> Result<RawDocumentBuf, Fault> {
    RawDocumentBuf::try_from(document).map_err(Fault::damaged)
}
