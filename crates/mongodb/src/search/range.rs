//! Searches by a range of values, in their order. MongoDB would sort all matching users before it
//! returns the first. A find without an order returns the first entries of the index, but those of
//! some shard: values of other shards may be less. So a part of the range is narrowed until one
//! bounded find returns all of its entries, wherever they are. Finds of entries return a value for
//! each user; then the users of the page are read by their ids.

use std::ops::Bound;

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, RawDocument, doc};

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::schema::attributes::{
    ATTRIBUTES, KEY, VALUE, has_element, key, read_scalar, scalar_value,
};
use crate::schema::bson::{id_of, read_fields};
use crate::schema::fields::ID;
use crate::search::filters::{CLASSES, after_id, by_attributes, condition, of_tenant};
use polynym_directory::{
    AccessPath, Class, Position, Range, Scalar, Scanned, SearchedUser, Tenant, View,
};
use polynym_store_common::attribute_names::AttributeId;

/// The entries that a find may return for each wanted one.
const READ_RATIO: usize = 4;
/// In a reply: the least value of a user.
const LEAST: &str = "l";

/// A search by a range of values, in their order.
pub struct RangeSearch<'s> {
    pub collections: &'s Collections,
    pub tenant: &'s Tenant,
    pub path: &'s AccessPath,
    pub token: AttributeId,
    pub range: &'s Range,
    pub view: View,
}

/// The first part of a range, with all of its entries in order.
struct Part {
    entries: Vec<Position>,
    /// Its upper bound, if it is not that of the range.
    end: Option<Bound<Scalar>>,
}

impl RangeSearch<'_> {
    /// The first users after `after`, at most `limit`.
    pub async fn run(
        &self,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Scanned<SearchedUser, Position>, Fault> {
        let entries = self.entries(after, limit).await?;
        let users = self.users_at(&entries).await?;
        Ok(Scanned { users, next: entries.into_iter().nth(limit - 1) })
    }

    /// The users at these positions, without those that have changed since: they have others.
    async fn users_at(
        &self,
        entries: &[Position],
    ) -> Result<Vec<Result<SearchedUser, LocalityId>>, Fault> {
        let ids: Vec<_> = entries.iter().map(|entry| entry.id).collect();
        let mut users = self.collections.users_with(self.tenant, &ids, self.view).await?;
        let user = |entry: &Position| match users.remove(&entry.id)? {
            Ok(user) => {
                (self.path.position(&user.user).as_ref() == Some(entry)).then_some(Ok(user))
            }
            unreadable => Some(unreadable),
        };
        Ok(entries.iter().filter_map(user).collect())
    }

    /// The first positions after `after`, at most `wanted`.
    async fn entries(
        &self,
        after: Option<&Position>,
        wanted: usize,
    ) -> Result<Vec<Position>, Fault> {
        let mut entries = Vec::new();
        let start = after.and_then(|after| Some((after.value.as_ref()?, after.id)));
        for class in CLASSES {
            let start = start.filter(|(value, _)| value.class() >= class);
            if start.is_some_and(|(value, _)| value.class() > class) {
                continue;
            }
            self.add_class(class, start, wanted, &mut entries).await?;
            if entries.len() >= wanted {
                break;
            }
        }
        entries.truncate(wanted);
        Ok(entries)
    }

    /// Adds positions of one class, until there are `wanted`.
    async fn add_class(
        &self,
        class: Class,
        start: Option<(&Scalar, LocalityId)>,
        wanted: usize,
        entries: &mut Vec<Position>,
    ) -> Result<(), Fault> {
        let mut rest = self.range.clone();
        if let Some((value, id)) = start {
            entries.extend(self.entries_of(value, Some(id), wanted).await?);
            rest.lower = Bound::Excluded(value.clone());
        }
        while entries.len() < wanted {
            let part = self.first_part(&rest, class, wanted - entries.len()).await?;
            entries.extend(part.entries);
            match part.end {
                Some(Bound::Included(value)) => rest.lower = Bound::Excluded(value),
                Some(Bound::Excluded(value)) => {
                    let wanted = wanted.saturating_sub(entries.len());
                    entries.extend(self.entries_of(&value, None, wanted).await?);
                    rest.lower = Bound::Excluded(value);
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// The first part of a range whose entries fit in one find. Each attempt excludes most of the
    /// entries that the one before has returned, so that few attempts suffice on any distribution.
    async fn first_part(&self, rest: &Range, class: Class, wanted: usize) -> Result<Part, Fault> {
        let (mut part, mut end) = (rest.clone(), None);
        loop {
            let Some((mut entries, is_all)) = self.find(&part, class, wanted).await? else {
                return Ok(Part { entries: Vec::new(), end });
            };
            entries.sort_unstable();
            if is_all {
                return Ok(Part { entries, end });
            }
            let value = entries.get(wanted - 1).and_then(|entry| entry.value.clone());
            let value = value.ok_or_else(|| Fault::damaged("users have no values of their own"))?;
            // Too many users have this value: they are read by their ids.
            let is_repeated = matches!(&end, Some(Bound::Included(last)) if *last == value);
            let bound = if is_repeated { Bound::Excluded } else { Bound::Included };
            part.upper = bound(value);
            end = Some(part.upper.clone());
        }
    }

    /// Entries of a part of the range, in no order, and whether these are all; `None` if the part
    /// has no value of the class.
    async fn find(
        &self,
        part: &Range,
        class: Class,
        wanted: usize,
    ) -> Result<Option<(Vec<Position>, bool)>, Fault> {
        let Some(bounds) = condition(part, class) else { return Ok(None) };
        let limit = wanted.saturating_mul(READ_RATIO);
        let mut options = self.collections.time_limit();
        (options.limit, options.hint) = (Some(limit as i64), Some(by_attributes()));
        options.projection = Some(self.least_value(class));
        let filter = self.first_with(bounds, &part.lower, class);
        let collections = self.collections;
        let found = collections.find_documents(&collections.users, filter, options).await?;
        let is_all = found.len() < limit;
        let entry = |document: &RawDocument| {
            let [value] = read_fields(document, [LEAST])?;
            let value = value.and_then(read_scalar).filter(|value| part.contains(value));
            let id = id_of(document)?;
            Ok::<_, Fault>(value.map(|value| Position { value: Some(value), id }))
        };
        let entries = found.iter().filter_map(|document| entry(document).transpose());
        Ok(Some((entries.collect::<Result<_, _>>()?, is_all)))
    }

    /// Entries of one value after `after`, in the order of ids.
    async fn entries_of(
        &self,
        value: &Scalar,
        after: Option<LocalityId>,
        wanted: usize,
    ) -> Result<Vec<Position>, Fault> {
        // To MongoDB, zero is no limit.
        if wanted == 0 {
            return Ok(Vec::new());
        }
        let mut options = self.collections.find_options(doc! { ID: 1 }, wanted);
        (options.projection, options.hint) = (Some(doc! { ID: 1 }), Some(by_attributes()));
        let equal = doc! { VALUE: scalar_value(value.into()) };
        let lower = Bound::Included(value.clone());
        let filter = after_id(after, self.first_with(equal, &lower, value.class()));
        let collections = self.collections;
        let found = collections.find_documents(&collections.users, filter, options).await?;
        let entry = |id| Position { value: Some(value.clone()), id };
        found.iter().map(|document| Ok(entry(id_of(document)?))).collect()
    }

    /// The filter for users with a value in these bounds, and none in the range below `lower` or in
    /// the ranges of the path before it.
    fn first_with(&self, bounds: Document, lower: &Bound<Scalar>, class: Class) -> Document {
        let mut filter = of_tenant(self.tenant, has_element(self.token, bounds));
        let upper = match lower {
            Bound::Included(value) => Some(Bound::Excluded(value.clone())),
            Bound::Excluded(value) => Some(Bound::Included(value.clone())),
            Bound::Unbounded => None,
        };
        let upper = upper.filter(|_| *lower != self.range.lower);
        let begun = upper.map(|upper| self.range.intersection(&Range { upper, ..Range::ALL }));
        let begun = begun.and_then(|begun| condition(&begun, class));
        let earlier = self.earlier().iter();
        let earlier = earlier.flat_map(|range| CLASSES.map(|class| condition(range, class)));
        let found: Vec<_> =
            earlier.flatten().chain(begun).map(|bounds| has_element(self.token, bounds)).collect();
        if !found.is_empty() {
            filter.insert("$nor", found);
        }
        filter
    }

    /// The ranges of the path before this one, in which users were already found.
    fn earlier(&self) -> &[Range] {
        let AccessPath::Range { ranges, .. } = self.path else { return &[] };
        let own = ranges.iter().position(|range| range == self.range);
        ranges.get(..own.unwrap_or_default()).unwrap_or_default()
    }

    /// The projection to the least value of a user in the range.
    fn least_value(&self, class: Class) -> Document {
        let own = doc! { "$eq": [format!("$$one.{KEY}"), key(self.token)] };
        let mut conditions = vec![Bson::from(own)];
        let bounds = condition(self.range, class).unwrap_or_default();
        let bounds = bounds.get_document(VALUE).cloned().unwrap_or_default();
        for (comparison, value) in bounds.into_iter().filter(|(name, _)| name != "$type") {
            let value = doc! { "$literal": value };
            conditions.push(doc! { comparison: [format!("$$one.{VALUE}"), value] }.into());
        }
        let own = doc! {
            "input": format!("${ATTRIBUTES}"), "as": "one", "cond": { "$and": conditions },
        };
        let values = doc! {
            "input": { "$filter": own }, "as": "one", "in": format!("$$one.{VALUE}"),
        };
        doc! { LEAST: { "$min": { "$map": values } } }
    }
}
