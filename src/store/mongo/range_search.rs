//! Searches by a range of values, in their order. MongoDB would have to sort all users that it
//! finds before it gives the first; so a page is read in parts that are sorted here.

use std::ops::Bound;

use locality_uuid::LocalityId;
use mongodb::bson::{Document, doc};
use mongodb::options::FindOptions;

use super::attributes::{VALUE, has_element, scalar_value};
use super::collections::Collections;
use super::error::Fault;
use super::search::{by_attributes, of_tenant};
use crate::directory::model::tenant::Tenant;
use crate::directory::search::{Class, Lead, Position, Range, Scalar, SearchedUser};
use crate::directory::stores::View;
use crate::store::attribute_names::AttributeId;

/// The classes of values, in their order. MongoDB compares values of one class alone.
pub const CLASSES: [Class; 4] = [Class::Number, Class::String, Class::Bool, Class::Time];

/// A search by a range of values, in their order.
pub struct RangeSearch<'s> {
    pub collections: &'s Collections,
    pub tenant: &'s Tenant,
    pub lead: &'s Lead,
    pub token: AttributeId,
    /// Users to find.
    pub limit: usize,
    pub view: View,
}

impl RangeSearch<'_> {
    /// The users in a part of the lead's range: those after `after`.
    pub async fn run(
        &self,
        range: &Range,
        after: Option<&Position>,
    ) -> Result<Vec<SearchedUser>, Fault> {
        let mut users = Vec::new();
        let mut after = after.and_then(|after| Some((after.value.clone()?, after.id)));
        for class in CLASSES {
            if after.as_ref().is_some_and(|(value, _)| value.class() > class) {
                continue;
            }
            self.read_class(range, class, after.take(), &mut users).await?;
            if users.len() >= self.limit {
                break;
            }
        }
        Ok(users)
    }

    /// Adds the users whose least value is of one class.
    async fn read_class(
        &self,
        range: &Range,
        class: Class,
        after: Option<(Scalar, LocalityId)>,
        users: &mut Vec<SearchedUser>,
    ) -> Result<(), Fault> {
        let mut rest = range.clone();
        if let Some((value, id)) = after.filter(|(value, _)| value.class() == class) {
            self.read_value(&value, Some(id), users).await?;
            rest.lower = Bound::Excluded(value);
        }
        while users.len() < self.limit {
            let Some(bounds) = condition(&rest, class) else { return Ok(()) };
            let some = self.find(bounds, Some(self.limit - users.len())).await?;
            let is_all = some.len() < self.limit - users.len();
            let least = |found: &SearchedUser| least(found, self.lead, &rest);
            let Some(greatest) = some.iter().filter_map(least).max().filter(|_| !is_all) else {
                self.add(some, &rest, users);
                return Ok(());
            };
            // All users before the greatest value that was found, and then those at it.
            let before = rest
                .intersection(&Range { upper: Bound::Excluded(greatest.clone()), ..Range::ALL });
            if let Some(bounds) = condition(&before, class) {
                self.add(self.find(bounds, None).await?, &before, users);
            }
            self.read_value(&greatest, None, users).await?;
            rest.lower = Bound::Excluded(greatest);
        }
        Ok(())
    }

    /// Adds the users whose least value is this one, after `after`, by their ids.
    async fn read_value(
        &self,
        value: &Scalar,
        mut after: Option<LocalityId>,
        users: &mut Vec<SearchedUser>,
    ) -> Result<(), Fault> {
        while users.len() < self.limit {
            let room = self.limit - users.len();
            let filter = has_element(self.token, doc! { VALUE: scalar_value(value.into()) });
            let (tenant, view) = (self.tenant, self.view);
            let found = self.collections.users_by_id(tenant, filter, after, room, view).await?;
            let is_all = found.len() < room;
            after = found.last().map(|found| found.user.id);
            let is_least = |found: &SearchedUser| {
                self.lead.position(&found.user).and_then(|position| position.value).as_ref()
                    == Some(value)
            };
            users.extend(found.into_iter().filter(is_least));
            if is_all {
                break;
            }
        }
        Ok(())
    }

    /// Users with a value in these bounds, in any order.
    async fn find(
        &self,
        bounds: Document,
        limit: Option<usize>,
    ) -> Result<Vec<SearchedUser>, Fault> {
        let filter = of_tenant(self.tenant, has_element(self.token, bounds));
        let mut options =
            FindOptions::builder().hint(by_attributes()).max_time(self.collections.timeout).build();
        options.limit = limit.map(|limit| limit as i64);
        self.collections.found_users(filter, options, self.view).await
    }

    /// Adds those of the users whose least value is in a part of the lead's range, in their order.
    fn add(&self, found: Vec<SearchedUser>, part: &Range, users: &mut Vec<SearchedUser>) {
        let position = |found: &SearchedUser| self.lead.position(&found.user);
        let is_in = |found: &SearchedUser| {
            position(found)
                .and_then(|position| position.value)
                .is_some_and(|value| part.contains(&value))
        };
        let mut found: Vec<_> = found.into_iter().filter(is_in).collect();
        found.sort_by_cached_key(position);
        users.extend(found);
        users.truncate(self.limit);
    }
}

/// The least value of a user in a part of the lead's range.
fn least(found: &SearchedUser, lead: &Lead, part: &Range) -> Option<Scalar> {
    let field = lead.field()?.clone();
    let part = Lead::Range { field, range: part.clone() };
    part.position(&found.user)?.value
}

/// The condition on values of one class in a range; none where the range has none.
pub fn condition(range: &Range, class: Class) -> Option<Document> {
    let whole = Range {
        lower: class.first().map_or(Bound::Unbounded, Bound::Included),
        upper: class.end().map_or(Bound::Unbounded, Bound::Excluded),
    };
    let part = range.intersection(&whole);
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
