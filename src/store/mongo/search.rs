//! Searches. MongoDB evaluates one condition alone, with the index of all attributes or that of
//! identity keys, and the directory the rest.
//!
//! Users in the order of their ids come as the index has them; for those in the order of values see
//! [`range_search`](super::range_search).

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{FindOptions, Hint};

use super::attributes::{ATTRIBUTES, VALUE, has_element, scalar_value};
use super::collections::Collections;
use super::error::Fault;
use super::range_search::{CLASSES, RangeSearch, condition};
use super::schema::{ID, REVISION, StoredUser, TENANT, WIRE, by_id, id_value, read_claim};
use super::validators::ATTRIBUTES_INDEX;
use crate::directory::model::tenant::Tenant;
use crate::directory::search::{Field, Lead, Position, Scalar, SearchedUser};
use crate::directory::stores::View;
use crate::identifier::{Identifier, IdentityKey, Kind};
use crate::store::attribute_names::AttributeId;
use crate::store::searched::fixed_attribute_id;

impl Collections {
    /// The users that `lead` finds, in its order: those after `after`, at most `limit`.
    pub async fn search(
        &self,
        tenant: &Tenant,
        lead: &Lead,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Vec<SearchedUser>, Fault> {
        let view = lead.view(view);
        match lead {
            Lead::All => self.users_of(tenant, after.map(|after| after.id), limit, view).await,
            Lead::Equals { field, value } => {
                let Some(token) = self.field_token(tenant, field).await? else {
                    return Ok(Vec::new());
                };
                let condition = doc! { VALUE: scalar_value(value.into()) };
                let filter = has_element(token, condition);
                let after = after.map(|after| after.id);
                self.users_by_id(tenant, filter, after, limit, view).await
            }
            Lead::Range { field, range } => {
                let Some(token) = self.field_token(tenant, field).await? else {
                    return Ok(Vec::new());
                };
                let search = RangeSearch { collections: self, tenant, lead, token, limit, view };
                search.run(range, after).await
            }
            Lead::Identity(identifiers) => {
                let mut ids = self.owners_by_id(tenant, identifiers).await?;
                ids.retain(|id| after.is_none_or(|after| *id > after.id));
                ids.truncate(limit);
                self.users_with(tenant, &ids, view).await
            }
            Lead::IdentityPrefix { kind, prefix } => {
                let search = PrefixSearch { tenant, lead, kind: *kind, prefix, limit, view };
                self.by_identity_prefix(&search, after).await
            }
        }
    }

    /// The number of entries that a search by `lead` reads, at most `limit`.
    pub async fn probe(&self, tenant: &Tenant, lead: &Lead, limit: usize) -> Result<usize, Fault> {
        let (collection, filter, hint) = match lead {
            Lead::All => (&self.users, doc! { TENANT: tenant.as_str() }, by_tenant()),
            Lead::Identity(identifiers) => {
                return Ok(self.owners_by_id(tenant, identifiers).await?.len().min(limit));
            }
            Lead::IdentityPrefix { kind, prefix } => {
                let range = prefix_range(tenant, *kind, prefix, None);
                (&self.identities, range, Hint::Keys(doc! { ID: 1 }))
            }
            Lead::Equals { field, .. } | Lead::Range { field, .. } => {
                let Some(token) = self.field_token(tenant, field).await? else { return Ok(0) };
                return self.probe_index(tenant, lead, token, limit).await;
            }
        };
        self.count(collection, filter, hint, limit).await
    }

    async fn probe_index(
        &self,
        tenant: &Tenant,
        lead: &Lead,
        token: AttributeId,
        limit: usize,
    ) -> Result<usize, Fault> {
        let conditions = match lead {
            Lead::Equals { value, .. } => vec![doc! { VALUE: scalar_value(value.into()) }],
            Lead::Range { range, .. } => {
                CLASSES.iter().filter_map(|class| condition(range, *class)).collect()
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
        from: &mongodb::Collection<mongodb::bson::RawDocumentBuf>,
        filter: Document,
        hint: Hint,
        limit: usize,
    ) -> Result<usize, Fault> {
        let options = FindOptions::builder().limit(limit as i64).projection(doc! { ID: 1 });
        let options = options.hint(hint).max_time(self.timeout).build();
        Ok(self.all(from, filter, options).await?.len())
    }

    /// The token of a field; none where no user of the tenant has it.
    async fn field_token(
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
    pub(super) async fn users_by_id(
        &self,
        tenant: &Tenant,
        filter: Document,
        after: Option<LocalityId>,
        limit: usize,
        view: View,
    ) -> Result<Vec<SearchedUser>, Fault> {
        let filter = behind(after, of_tenant(tenant, filter));
        let options = FindOptions::builder().sort(doc! { ID: 1 }).limit(limit as i64);
        let options = options.hint(by_attributes()).max_time(self.timeout).build();
        self.found_users(filter, options, view).await
    }

    /// All users of a tenant in the order of their ids. Stores of older schemas have no index of
    /// them that could be hinted at.
    async fn users_of(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
        view: View,
    ) -> Result<Vec<SearchedUser>, Fault> {
        let filter = behind(after, of_tenant(tenant, doc! {}));
        let options = FindOptions::builder().sort(doc! { ID: 1 }).limit(limit as i64);
        self.found_users(filter, options.max_time(self.timeout).build(), view).await
    }

    /// The users that a filter finds. Only the fields are read that a search needs.
    pub(super) async fn found_users(
        &self,
        filter: Document,
        mut options: FindOptions,
        view: View,
    ) -> Result<Vec<SearchedUser>, Fault> {
        options.projection = Some(match view {
            View::Full => doc! { REVISION: 1, WIRE: 1, ATTRIBUTES: 1 },
            View::Basic => doc! { REVISION: 1, WIRE: 1 },
        });
        let mut users = Vec::new();
        for document in self.all(&self.users, filter, options).await? {
            let mut stored = StoredUser::read(&document)?;
            users.push(match view {
                View::Full => SearchedUser::of(self.record(stored).await?.user, view),
                View::Basic => {
                    stored.wire = stored.wire.without_attributes();
                    let user = stored.decode_without_attributes()?.user;
                    SearchedUser { user, basic: Some(stored.wire) }
                }
            });
        }
        Ok(users)
    }

    /// The users of a tenant with these ids, by id.
    async fn users_with(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<SearchedUser>, Fault> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let filter = by_id(ids.iter().copied().map(id_value).collect());
        let options = FindOptions::builder().sort(doc! { ID: 1 }).max_time(self.timeout);
        let mut users = self.found_users(filter, options.build(), view).await?;
        users.retain(|found| found.user.tenant == *tenant);
        Ok(users)
    }

    /// The owners of identifiers, by their ids.
    async fn owners_by_id(
        &self,
        tenant: &Tenant,
        identifiers: &[Identifier],
    ) -> Result<Vec<LocalityId>, Fault> {
        let keys: Vec<_> = identifiers.iter().map(|own| claim_key(tenant, own)).collect();
        let owners = self.owners_of(doc! { ID: { "$in": &keys } }, keys.len()).await?;
        let mut ids: Vec<_> = owners.into_iter().filter_map(|(_, owner)| owner).collect();
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
        let options = FindOptions::builder().sort(doc! { ID: 1 }).limit(limit as i64);
        let options = options.max_time(self.timeout).build();
        let found = self.all(&self.identities, filter, options).await?;
        let owner = |document| {
            let (key, claim) = read_claim(document)?;
            Ok((key.to_owned(), claim.resolves_to()))
        };
        found.iter().map(|document| owner(document)).collect()
    }

    /// Users with an identity whose value begins so, in the order of the least such value.
    async fn by_identity_prefix(
        &self,
        search: &PrefixSearch<'_>,
        after: Option<&Position>,
    ) -> Result<Vec<SearchedUser>, Fault> {
        let PrefixSearch { tenant, lead, kind, prefix, limit, view } = *search;
        let mut last = after.and_then(|after| match &after.value {
            Some(Scalar::String(value)) => Some(claim_key(tenant, &identifier(kind, value))),
            _ => None,
        });
        let mut users = Vec::new();
        while users.len() < limit {
            let range = prefix_range(tenant, kind, prefix, last.as_deref());
            let owners = self.owners_of(range, limit).await?;
            let is_last = owners.len() < limit;
            last = owners.last().map(|(key, _)| key.clone());
            let ids: Vec<_> = owners.iter().filter_map(|(_, owner)| *owner).collect();
            let owned = self.users_with(tenant, &ids, view).await?;
            for (key, owner) in owners {
                let found = owned.iter().find(|found| Some(found.user.id) == owner);
                let Some(found) = found else { continue };
                let least = lead.position(&found.user).and_then(|position| position.value);
                let is_least = matches!(
                    least,
                    Some(Scalar::String(value))
                        if claim_key(tenant, &identifier(kind, &value)) == key
                );
                if is_least {
                    users.push(found.clone());
                }
            }
            if is_last {
                break;
            }
        }
        users.truncate(limit);
        Ok(users)
    }
}

/// A search for users with an identity whose value begins with a text.
struct PrefixSearch<'s> {
    tenant: &'s Tenant,
    lead: &'s Lead,
    kind: Kind,
    prefix: &'s str,
    /// Users to find.
    limit: usize,
    view: View,
}

/// The filter of those of the users whose ids are greater.
fn behind(after: Option<LocalityId>, mut filter: Document) -> Document {
    if let Some(after) = after {
        filter.insert(ID, doc! { "$gt": id_value(after) });
    }
    filter
}

pub(super) fn of_tenant(tenant: &Tenant, filter: Document) -> Document {
    let mut own = doc! { TENANT: tenant.as_str() };
    own.extend(filter);
    own
}

pub(super) fn by_attributes() -> Hint {
    Hint::Name(ATTRIBUTES_INDEX.to_owned())
}

fn by_tenant() -> Hint {
    Hint::Keys(doc! { TENANT: 1, ID: 1 })
}

fn identifier(kind: Kind, canonical: &str) -> Identifier {
    Identifier::from_canonical(kind, canonical.to_owned())
}

fn claim_key(tenant: &Tenant, identifier: &Identifier) -> String {
    IdentityKey::new(tenant.as_str(), identifier).as_str().to_owned()
}

/// The filter of identity keys of a kind whose values begin so: those after `after`.
fn prefix_range(tenant: &Tenant, kind: Kind, prefix: &str, after: Option<&str>) -> Document {
    let first = claim_key(tenant, &identifier(kind, prefix));
    let end = format!("{first}{}", char::MAX);
    match after {
        Some(after) => doc! { ID: { "$gt": after, "$lt": end } },
        None => doc! { ID: { "$gte": Bson::String(first), "$lt": end } },
    }
}
