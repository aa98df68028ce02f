//! Filters and hints of searches.

use std::ops::Bound;

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::Hint;

use crate::schema::attributes::{ATTRIBUTES_INDEX, VALUE, scalar_value};
use crate::schema::bson::id_value;
use crate::schema::fields::{ID, TENANT};
use polynym_directory::{Class, Range, Tenant};
use polynym_identifier::{Identifier, IdentityKey, Kind};

/// The classes of values, in order. MongoDB compares values of one class only.
pub const CLASSES: [Class; 4] = [Class::Number, Class::String, Class::Bool, Class::Time];

/// Restricts a filter to ids after `after`.
pub fn after_id(after: Option<LocalityId>, mut filter: Document) -> Document {
    if let Some(after) = after {
        filter.insert(ID, doc! { "$gt": id_value(after) });
    }
    filter
}

/// Restricts a filter to a tenant.
pub fn of_tenant(tenant: &Tenant, filter: Document) -> Document {
    let mut own = doc! { TENANT: tenant.as_str() };
    own.extend(filter);
    own
}

/// The index of all attributes.
pub fn by_attributes() -> Hint {
    Hint::Name(ATTRIBUTES_INDEX.to_owned())
}

/// The index of a tenant's users.
pub fn by_tenant() -> Hint {
    Hint::Keys(doc! { TENANT: 1, ID: 1 })
}

/// The filter for identity keys of a kind that have a prefix and come after `after`.
pub fn prefix_range(tenant: &Tenant, kind: Kind, prefix: &str, after: Option<&str>) -> Document {
    let first = claim_key(tenant, &identifier(kind, prefix));
    let end = format!("{first}{}", char::MAX);
    match after {
        Some(after) => doc! { ID: { "$gt": after, "$lt": end } },
        None => doc! { ID: { "$gte": Bson::String(first), "$lt": end } },
    }
}

/// An identifier in canonical form.
pub fn identifier(kind: Kind, canonical: &str) -> Identifier {
    Identifier::from_canonical(kind, canonical.to_owned())
}

/// The key of an identifier's claim.
pub fn claim_key(tenant: &Tenant, identifier: &Identifier) -> String {
    IdentityKey::new(tenant.as_str(), identifier).as_str().to_owned()
}

/// The condition for values of one class in a range; `None` if the range has no value of the class.
pub fn condition(range: &Range, class: Class) -> Option<Document> {
    let part = range.intersection(&Range::of_class(class));
    let mut bounds = Document::new();
    match &part.lower {
        Bound::Included(value) if value.class() == class => {
            bounds.insert("$gte", scalar_value(value.into()));
        }
        Bound::Excluded(value) if value.class() == class => {
            bounds.insert("$gt", scalar_value(value.into()));
        }
        Bound::Unbounded if class == Class::Number => {}
        _ => return None,
    }
    match &part.upper {
        Bound::Included(value) if value.class() == class => {
            bounds.insert("$lte", scalar_value(value.into()));
        }
        Bound::Excluded(value) if value.class() == class => {
            bounds.insert("$lt", scalar_value(value.into()));
        }
        // The end of the class.
        Bound::Excluded(value) if Some(value) == class.end().as_ref() => {}
        Bound::Unbounded if class == Class::Time => {}
        _ => return None,
    }
    if bounds.is_empty() {
        bounds.insert("$type", type_name(class));
    }
    Some(doc! { VALUE: bounds })
}

const fn type_name(class: Class) -> &'static str {
    match class {
        Class::Number => "number",
        Class::String => "string",
        Class::Bool => "bool",
        Class::Time => "date",
    }
}
