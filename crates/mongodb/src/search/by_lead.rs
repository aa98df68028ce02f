//! Searches. MongoDB evaluates one condition, with the index of all attributes or that of identity
//! keys, and the directory evaluates the others.

use std::collections::HashMap;

use locality_uuid::LocalityId;
use mongodb::Collection;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::options::{FindOptions, Hint};

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::schema::attributes::{ATTRIBUTES, VALUE, has_element, scalar_value};
use crate::schema::bson::{by_id, id_value, key_of};
use crate::schema::claim::read_claim;
use crate::schema::fields::{ID, REVISION, TENANT, WIRE};
use crate::schema::user::StoredUser;
use crate::search::filters::{
    CLASSES, after_id, by_attributes, by_tenant, claim_key, condition, identifier, of_tenant,
    prefix_range,
};
use crate::search::range::RangeSearch;
use crate::search::user_names::UserNames;
use polynym_directory::{
    AccessPath, Position, Range, Scalar, Scanned, SearchedUser, Tenant, View, search::Field,
};
use polynym_identifier::{Identifier, IdentityKey, Kind};
use polynym_store_common::attribute_names::AttributeId;
use polynym_store_common::searched::fixed_attribute_id;
use polynym_store_common::unreadable::{Kind as Record, readable};

impl Collections {
    /// The users that `path` finds after `after`, in its order, at most `limit`.
    pub async fn search(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Scanned<SearchedUser, Position>, Fault> {
        let view = path.view(view);
        match path {
            AccessPath::All => {
                let users = self.users_of(tenant, after.map(|after| after.id), limit, view);
                Ok(users.await?.by_id())
            }
            AccessPath::Equals { field, value } => {
                let Some(token) = self.field_token(tenant, field).await? else {
                    return Ok(Scanned::default());
                };
                let condition = doc! { VALUE: scalar_value(value.into()) };
                let (filter, after) = (has_element(token, condition), after.map(|after| after.id));
                Ok(self.users_by_id(tenant, filter, after, limit, view).await?.by_id())
            }
            AccessPath::Range { field, ranges } => {
                let Some(token) = self.field_token(tenant, field).await? else {
                    return Ok(Scanned::default());
                };
                let mut found = Scanned::default();
                let value = after.and_then(|after| after.value.as_ref());
                for range in Range::from_value(ranges, value) {
                    let start = after.filter(|_| value.is_some_and(|value| range.contains(value)));
                    let rest = limit - found.users.len();
                    let search =
                        RangeSearch { collections: self, tenant, path, token, range, view };
                    let part = search.run(start, rest).await?;
                    found.users.extend(part.users);
                    found.next = part.next;
                    if found.next.is_some() {
                        break;
                    }
                }
                Ok(found)
            }
            AccessPath::Identity(identifiers) => {
                let mut ids = self.owners_by_id(tenant, identifiers).await?;
                ids.retain(|id| after.is_none_or(|after| *id > after.id));
                ids.truncate(limit);
                let mut users = self.users_with(tenant, &ids, view).await?;
                let users = ids.iter().filter_map(|id| users.remove(id)).collect();
                let next = ids.last().copied().filter(|_| ids.len() == limit);
                Ok(Scanned { users, next }.by_id())
            }
            AccessPath::IdentityPrefix { kind, prefix } => {
                let search = PrefixSearch { tenant, path, kind: *kind, prefix, limit, view };
                self.by_identity_prefix(&search, after).await
            }
        }
    }

    /// The number of entries that a search by `path` reads, at most `limit`.
    pub async fn probe(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        limit: usize,
    ) -> Result<usize, Fault> {
        let (collection, filter, hint) = match path {
            AccessPath::All => (&self.users, doc! { TENANT: tenant.as_str() }, by_tenant()),
            AccessPath::Identity(identifiers) => {
                return Ok(self.owners_by_id(tenant, identifiers).await?.len().min(limit));
            }
            AccessPath::IdentityPrefix { kind, prefix } => {
                let range = prefix_range(tenant, *kind, prefix, None);
                (&self.identities, range, Hint::Keys(doc! { ID: 1 }))
            }
            AccessPath::Equals { field, .. } | AccessPath::Range { field, .. } => {
                let Some(token) = self.field_token(tenant, field).await? else { return Ok(0) };
                return self.probe_index(tenant, path, token, limit).await;
            }
        };
        self.count(collection, filter, hint, limit).await
    }

    async fn probe_index(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        token: AttributeId,
        limit: usize,
    ) -> Result<usize, Fault> {
        let conditions = match path {
            AccessPath::Equals { value, .. } => vec![doc! { VALUE: scalar_value(value.into()) }],
            AccessPath::Range { ranges, .. } => {
                let of_class =
                    |class| ranges.iter().filter_map(move |range| condition(range, class));
                CLASSES.into_iter().flat_map(of_class).collect()
            }
            _ => Vec::new(),
        };
        let mut count = 0;
        for condition in conditions {
            let filter = of_tenant(tenant, has_element(token, condition));
            count += self.count(&self.users, filter, by_attributes(), limit - count).await?;
            if count >= limit {
                break;
            }
        }
        Ok(count)
    }

    /// The number of documents that a filter finds, at most `limit`.
    async fn count(
        &self,
        from: &Collection<RawDocumentBuf>,
        filter: Document,
        hint: Hint,
        limit: usize,
    ) -> Result<usize, Fault> {
        let mut options = self.time_limit();
        options.limit = Some(limit as i64);
        options.projection = Some(doc! { ID: 1 });
        options.hint = Some(hint);
        Ok(self.find_documents(from, filter, options).await?.len())
    }

    /// The token of a field, if a user of the tenant has it.
    pub async fn field_token(
        &self,
        tenant: &Tenant,
        field: &Field,
    ) -> Result<Option<AttributeId>, Fault> {
        match fixed_attribute_id(field) {
            Ok(token) => Ok(Some(token)),
            Err(name) => self.token(tenant.as_str(), name).await,
        }
    }

    /// Users of a tenant that a filter finds, in the order of their ids.
    pub async fn users_by_id(
        &self,
        tenant: &Tenant,
        filter: Document,
        after: Option<LocalityId>,
        limit: usize,
        view: View,
    ) -> Result<Scanned<SearchedUser>, Fault> {
        let remaining = after_id(after, of_tenant(tenant, filter));
        let mut options = self.find_options(doc! { ID: 1 }, limit);
        options.hint = Some(by_attributes());
        self.found_users(remaining, options, limit, view).await
    }

    /// All users of a tenant in the order of their ids.
    async fn users_of(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
        view: View,
    ) -> Result<Scanned<SearchedUser>, Fault> {
        let filter = after_id(after, of_tenant(tenant, doc! {}));
        self.found_users(filter, self.find_options(doc! { ID: 1 }, limit), limit, view).await
    }

    /// The users that a filter finds, at most `limit`, with the fields that a search needs.
    async fn found_users(
        &self,
        filter: Document,
        mut options: FindOptions,
        limit: usize,
        view: View,
    ) -> Result<Scanned<SearchedUser>, Fault> {
        options.projection = Some(match view {
            View::Full => doc! { REVISION: 1, WIRE: 1, ATTRIBUTES: 1 },
            View::Basic => doc! { REVISION: 1, WIRE: 1 },
        });
        let found = self.find_documents(&self.users, filter, options).await?;
        let searched = |names: &UserNames, stored: StoredUser| match view {
            View::Full => Ok(SearchedUser::new(names.record(&stored)?.user, view)),
            View::Basic => {
                let wire = stored.wire.without_attributes();
                let stored = StoredUser { wire: wire.clone(), ..stored };
                let user = stored.decode_without_attributes()?.user;
                Ok(SearchedUser { user, basic: Some(wire) })
            }
        };
        self.scanned(&found, limit, searched).await
    }

    /// The users of a tenant with these ids, by id; the id itself for one that cannot be read.
    pub async fn users_with(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<HashMap<LocalityId, Result<SearchedUser, LocalityId>>, Fault> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let filter = by_id(ids.iter().copied().map(id_value).collect());
        let options = self.find_options(doc! { ID: 1 }, 0);
        let users = self.found_users(filter, options, ids.len(), view).await?.users;
        let of_tenant = users.into_iter().filter_map(|found| match &found {
            Ok(user) => (user.user.tenant == *tenant).then_some((user.user.id, found)),
            Err(id) => Some((*id, found)),
        });
        Ok(of_tenant.collect())
    }

    /// The owners of identifiers, by their ids.
    async fn owners_by_id(
        &self,
        tenant: &Tenant,
        identifiers: &[Identifier],
    ) -> Result<Vec<LocalityId>, Fault> {
        let keys: Vec<_> =
            identifiers.iter().map(|identifier| claim_key(tenant, identifier)).collect();
        let (filter, options) =
            (doc! { ID: { "$in": &keys } }, self.find_options(doc! {}, keys.len()));
        let found = self.find_documents(&self.identities, filter, options).await?;
        let owner = |document: &RawDocumentBuf| Ok(read_claim(document)?.1.resolves_to());
        let owners = found.iter().map(owner).collect::<Result<Vec<_>, Fault>>()?;
        let mut ids: Vec<_> = owners.into_iter().flatten().collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Identity keys that a filter finds, in their order, with their owners.
    async fn owners_of(
        &self,
        filter: Document,
        limit: usize,
    ) -> Result<Vec<(String, Option<LocalityId>)>, Fault> {
        let options = self.find_options(doc! { ID: 1 }, limit);
        let found = self.find_documents(&self.identities, filter, options).await?;
        let owner = |document: &RawDocumentBuf| {
            let claim = readable(Record::Claim, read_claim(document));
            Ok((key_of(document)?.to_owned(), claim.and_then(|(_, claim)| claim.resolves_to())))
        };
        found.iter().map(owner).collect()
    }

    /// Users with an identity that has the prefix, in the order of their least such identity.
    async fn by_identity_prefix(
        &self,
        search: &PrefixSearch<'_>,
        after: Option<&Position>,
    ) -> Result<Scanned<SearchedUser, Position>, Fault> {
        let PrefixSearch { tenant, path, kind, prefix, limit, view } = *search;
        let last = after.and_then(|after| match &after.value {
            Some(Scalar::String(value)) => Some(claim_key(tenant, &identifier(kind, value))),
            _ => None,
        });
        let range = prefix_range(tenant, kind, prefix, last.as_deref());
        let owners = self.owners_of(range, limit).await?;
        let ids: Vec<_> = owners.iter().filter_map(|(_, owner)| *owner).collect();
        let owned = self.users_with(tenant, &ids, view).await?;
        let least = |found: &SearchedUser| match path.position(&found.user)?.value {
            Some(Scalar::String(value)) => Some(claim_key(tenant, &identifier(kind, &value))),
            _ => None,
        };
        let at = |(key, owner): &(String, Option<LocalityId>)| match owned.get(&(*owner)?)? {
            Ok(found) => (least(found).as_ref() == Some(key)).then(|| Ok(found.clone())),
            Err(unreadable) => Some(Err(*unreadable)),
        };
        let users = owners.iter().filter_map(at).collect();
        let last = owners.last().filter(|_| owners.len() == limit);
        Ok(Scanned { users, next: last.and_then(|(key, owner)| position(key, *owner)) })
    }
}

/// The position at an identity key, in the order of keys: only the value counts.
fn position(key: &str, owner: Option<LocalityId>) -> Option<Position> {
    let key = IdentityKey::from_stored(key.to_owned())?;
    let value = Some(Scalar::String(key.parts().2.to_owned()));
    Some(Position { value, id: owner.unwrap_or_else(|| LocalityId::from([0; 16])) })
}

/// A search for users with an identity that has a prefix.
struct PrefixSearch<'s> {
    tenant: &'s Tenant,
    path: &'s AccessPath,
    kind: Kind,
    prefix: &'s str,
    /// The number of users to find.
    limit: usize,
    view: View,
}
