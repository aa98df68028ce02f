//! Searches by a range of values, in their order. MongoDB would sort all matching users before it
//! returns the first, so a page is read in parts that are sorted here.

use std::ops::Bound;

use locality_uuid::LocalityId;
use mongodb::bson::{Document, doc};
use mongodb::options::FindOptions;

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::schema::attributes::{VALUE, has_element, scalar_value};
use crate::search::filters::{CLASSES, by_attributes, condition, of_tenant};
use polynym_directory::model::tenant::Tenant;
use polynym_directory::search::{AccessPath, Class, Position, Range, Scalar, SearchedUser};
use polynym_directory::stores::View;
use polynym_store_common::attribute_names::AttributeId;

/// A search by a range of values, in their order.
pub struct RangeSearch<'s> {
    pub collections: &'s Collections,
    pub tenant: &'s Tenant,
    pub path: &'s AccessPath,
    pub token: AttributeId,
    /// The number of users to find.
    pub limit: usize,
    pub view: View,
}

impl RangeSearch<'_> {
    /// The users in one of the path's ranges, after `after`.
    pub async fn run(
        &self,
        range: &Range,
        after: Option<&Position>,
    ) -> Result<Vec<SearchedUser>, Fault> {
        let mut users = Vec::new();
        let mut start = after.and_then(|after| Some((after.value.clone()?, after.id)));
        for class in CLASSES {
            if start.as_ref().is_some_and(|(value, _)| value.class() > class) {
                continue;
            }
            self.read_class(range, class, start.take(), &mut users).await?;
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
            let sample = self.find(bounds, Some(self.limit - users.len())).await?;
            let is_all = sample.len() < self.limit - users.len();
            let least = |found: &SearchedUser| least(found, self.path, &rest);
            let Some(greatest) = sample.iter().filter_map(least).max().filter(|_| !is_all) else {
                self.add(sample, &rest, users);
                return Ok(());
            };
            // All users before the greatest value of the sample, and then those with it.
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

    /// Adds the users after `after` whose least value is `value`, in the order of their ids.
    async fn read_value(
        &self,
        value: &Scalar,
        mut after: Option<LocalityId>,
        users: &mut Vec<SearchedUser>,
    ) -> Result<(), Fault> {
        while users.len() < self.limit {
            let limit = self.limit - users.len();
            let filter = has_element(self.token, doc! { VALUE: scalar_value(value.into()) });
            let (tenant, view) = (self.tenant, self.view);
            let found = self.collections.users_by_id(tenant, filter, after, limit, view).await?;
            let is_all = found.len() < limit;
            after = found.last().map(|found| found.user.id);
            let is_least = |found: &SearchedUser| {
                self.path.position(&found.user).and_then(|position| position.value).as_ref()
                    == Some(value)
            };
            users.extend(found.into_iter().filter(is_least));
            if is_all {
                break;
            }
        }
        Ok(())
    }

    /// Users with a value in these bounds, in no order.
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

    /// Adds the users whose least value is in a part of the path's range, in order.
    fn add(&self, found: Vec<SearchedUser>, part: &Range, users: &mut Vec<SearchedUser>) {
        let position = |found: &SearchedUser| self.path.position(&found.user);
        let is_in = |found: &SearchedUser| {
            position(found)
                .and_then(|position| position.value)
                .is_some_and(|value| part.contains(&value))
        };
        let mut inside: Vec<_> = found.into_iter().filter(is_in).collect();
        inside.sort_by_cached_key(position);
        users.extend(inside);
        users.truncate(self.limit);
    }
}

/// The least value of a user in a part of the path's range.
fn least(found: &SearchedUser, path: &AccessPath, part: &Range) -> Option<Scalar> {
    let field = path.field()?.clone();
    let narrowed = AccessPath::Range { field, ranges: vec![part.clone()] };
    narrowed.position(&found.user)?.value
}
