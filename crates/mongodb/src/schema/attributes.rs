//! Attributes as documents in the array [`ATTRIBUTES`] of a user's document. Each has its token in
//! [`KEY`] and a scalar in [`VALUE`], by which the index of all attributes finds the user. A list
//! is one document for each item, with the item's position. Values that are not searched are in
//! [`UNSEARCHED`].
//!
//! The scalar is never an array: one array would make the index multikey in both of its fields, and
//! MongoDB bounds only one of them then.

use mongodb::bson::{Bson, DateTime, Document, RawBsonRef, RawDocument, doc};

use crate::client::error::Fault;
use crate::schema::bson::{read_fields, required};
use polynym_directory::{Policies, Scalar, ScalarRef, Timestamp, User, Value, search::scalars};
use polynym_store_common::attribute_names::{AttributeId, KnownNames};
use polynym_store_common::searched::{IndexedAttributes, derived_elements, field_elements};

/// Of a user: its attributes and the fields by which it is searched.
pub const ATTRIBUTES: &str = "a";
/// The name of the index of all attributes.
pub const ATTRIBUTES_INDEX: &str = "t_1_a_1__id_1";
/// Of an attribute: its token. Fixed fields of users have negative tokens.
pub const KEY: &str = "k";
/// Of an attribute: its value.
pub const VALUE: &str = "v";
/// Of an attribute: its value, if it is not searched.
pub const UNSEARCHED: &str = "x";
/// Of an item of a list: its position.
const POSITION: &str = "i";
/// Of an attribute: whether it is an empty list.
const EMPTY: &str = "l";

/// The array of a user's attributes. `tokens` has the names of all of its attributes.
pub fn attribute_array(user: &User, tokens: IndexedAttributes<'_>) -> Vec<Bson> {
    let field = |(token, scalar)| doc! { KEY: key(token), VALUE: scalar_value(scalar) }.into();
    let mut array: Vec<Bson> = field_elements(user).map(field).collect();
    let derived = |(token, text)| doc! { KEY: key(token), VALUE: Bson::String(text) }.into();
    array.extend(derived_elements(user).map(derived));
    for (name, value) in &user.attributes {
        if let Some(token) = tokens.names.id(name) {
            push_attribute(token, value, tokens.policies.indexes(name), &mut array);
        }
    }
    array
}

fn push_attribute(token: AttributeId, value: &Value, is_indexed: bool, array: &mut Vec<Bson>) {
    let element = |scalar: ScalarRef<'_>| {
        let field = if is_indexed && scalar.is_searched() { VALUE } else { UNSEARCHED };
        doc! { KEY: key(token), field: scalar_value(scalar) }
    };
    match value {
        Value::List(items) if items.is_empty() => {
            array.push(doc! { KEY: key(token), EMPTY: true }.into());
        }
        Value::List(items) => {
            for (position, item) in items.iter().enumerate() {
                let mut element = element(ScalarRef::Text(item));
                element.insert(POSITION, position as i32);
                array.push(element.into());
            }
        }
        Value::String(text) => array.push(element(ScalarRef::Text(text)).into()),
        Value::Int(number) => array.push(element(ScalarRef::Int(*number)).into()),
        Value::Double(number) => array.push(element(ScalarRef::Double(*number)).into()),
        Value::Bool(yes) => array.push(element(ScalarRef::Bool(*yes)).into()),
        Value::Time(time) => array.push(element(ScalarRef::Time(*time)).into()),
    }
}

/// A token as MongoDB's number.
pub const fn key(token: AttributeId) -> i32 {
    token as i32
}

/// A scalar as MongoDB's value.
pub fn scalar_value(scalar: ScalarRef<'_>) -> Bson {
    match scalar {
        ScalarRef::Int(number) => Bson::Int64(number),
        ScalarRef::Double(number) => Bson::Double(number),
        ScalarRef::Text(text) => Bson::String(text.to_owned()),
        ScalarRef::Bool(yes) => Bson::Boolean(yes),
        ScalarRef::Time(time) => Bson::DateTime(DateTime::from_millis(time.as_millis())),
    }
}

/// The elements of a user other than attributes.
pub fn field_array(user: &User) -> Vec<Bson> {
    let (names, policies) = (&KnownNames::default(), &Policies::default());
    attribute_array(user, IndexedAttributes { names, policies })
}

/// The elements in a user's array other than attributes, then the attributes.
pub fn parted(array: Option<RawBsonRef<'_>>) -> Result<(Vec<Bson>, Vec<Bson>), Fault> {
    let Some(array) = array.and_then(RawBsonRef::as_array) else { return Ok(Default::default()) };
    let elements = array.into_iter().map(|element| {
        let element = Bson::try_from(element.map_err(Fault::damaged)?).map_err(Fault::damaged)?;
        let key = element.as_document().and_then(|element| element.get_i32(KEY).ok());
        Ok::<_, Fault>((key.is_some_and(|key| key < 0), element))
    });
    let elements = elements.collect::<Result<Vec<_>, _>>()?;
    let (fields, attributes): (Vec<_>, Vec<_>) =
        elements.into_iter().partition(|(is_field, _)| *is_field);
    let without_mark = |parts: Vec<_>| parts.into_iter().map(|(_, element)| element).collect();
    Ok((without_mark(fields), without_mark(attributes)))
}

/// The attributes in a user's array, in its order.
pub fn read_attributes(array: Option<RawBsonRef<'_>>) -> Result<Vec<(AttributeId, Value)>, Fault> {
    let mut attributes: Vec<(AttributeId, Value)> = Vec::new();
    let Some(value) = array else { return Ok(attributes) };
    let array = value.as_array().ok_or_else(|| Fault::damaged("attributes are not an array"))?;
    for element in array {
        let document = element.map_err(Fault::damaged)?.as_document();
        let element = document.ok_or_else(|| Fault::damaged("an attribute is not a document"))?;
        let (token, part) = read_element(element)?;
        match (attributes.last_mut(), part) {
            _ if token < 0 => {}
            (Some((last, Value::List(items))), Part::Item(item))
                if *last == token as AttributeId =>
            {
                items.push(item);
            }
            (_, Part::Item(item)) => {
                attributes.push((token as AttributeId, Value::List(vec![item])))
            }
            (_, Part::Whole(value)) => attributes.push((token as AttributeId, value)),
        }
    }
    Ok(attributes)
}

/// The part of an attribute in one document.
enum Part {
    Whole(Value),
    Item(String),
}

fn read_element(element: &RawDocument) -> Result<(i32, Part), Fault> {
    let [key, searched, unsearched, position, empty] =
        read_fields(element, [KEY, VALUE, UNSEARCHED, POSITION, EMPTY])?;
    let token = required(KEY, key, RawBsonRef::as_i32)?;
    if empty.is_some() {
        return Ok((token, Part::Whole(Value::List(Vec::new()))));
    }
    let value = required(VALUE, searched.or(unsearched), read_value)?;
    match (position, value) {
        (Some(_), Value::String(item)) => Ok((token, Part::Item(item))),
        (_, value) => Ok((token, Part::Whole(value))),
    }
}

fn read_value(value: RawBsonRef<'_>) -> Option<Value> {
    Some(match value {
        RawBsonRef::String(text) => Value::String(text.to_owned()),
        RawBsonRef::Int64(number) => Value::Int(number),
        RawBsonRef::Int32(number) => Value::Int(number.into()),
        RawBsonRef::Double(number) => Value::Double(number),
        RawBsonRef::Boolean(yes) => Value::Bool(yes),
        RawBsonRef::DateTime(time) => Value::Time(Timestamp::from_millis(time.timestamp_millis())),
        _ => return None,
    })
}

/// The scalar in a value of an element.
pub fn read_scalar(value: RawBsonRef<'_>) -> Option<Scalar> {
    let value = read_value(value)?;
    scalars(&value).next().map(Scalar::from)
}

/// The filter for users with an element of this token that meets `condition`.
pub fn has_element(token: AttributeId, condition: Document) -> Document {
    let mut element = doc! { KEY: key(token) };
    element.extend(condition);
    doc! { ATTRIBUTES: { "$elemMatch": element } }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use mongodb::bson::RawDocumentBuf;

    use super::*;
    use polynym_directory::{AttributeDefinition, NewUser, Tenant};

    #[test]
    fn stored_attributes_are_read_back() {
        let text = |length| "x".repeat(length);
        let values = [
            ("bool", Value::Bool(false)),
            ("double", Value::Double(-0.0)),
            ("empty list", Value::List(Vec::new())),
            ("int", Value::Int(i64::MIN)),
            ("list", Value::List(vec!["b".to_owned(), text(257), String::new(), "b".to_owned()])),
            ("list of one", Value::List(vec!["a".to_owned()])),
            ("long", Value::String(text(4_096))),
            ("text", Value::String(String::new())),
            ("time", Value::Time(Timestamp::from_millis(-1))),
        ];
        let attributes = values.iter().cloned().map(|(name, value)| (name.to_owned(), value));
        let draft = NewUser { attributes: attributes.collect(), ..NewUser::default() };
        let user = draft.user([1; 16].into(), Tenant::DEFAULT, Timestamp::from_millis(1));
        let mut names = KnownNames::new(Timestamp::default(), 5);
        for (name, _) in &values {
            names.push(name);
        }
        let unindexed = AttributeDefinition { indexed: false, ..AttributeDefinition::default() };
        let attributes = BTreeMap::from([("int".to_owned(), unindexed)]);
        let policies = Policies { attributes, ..Policies::default() };
        let tokens = IndexedAttributes { names: &names, policies: &policies };
        let document = doc! { ATTRIBUTES: attribute_array(&user, tokens) };
        let raw = RawDocumentBuf::try_from(&document).unwrap();
        let read = read_attributes(raw.get(ATTRIBUTES).unwrap()).unwrap();
        let named = read.into_iter().map(|(token, value)| (names.name(token).unwrap(), value));
        assert!(named.eq(values));
    }
}
