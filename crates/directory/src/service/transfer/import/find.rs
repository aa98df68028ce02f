//! Finds the users that lines are about, before the transactions that decide: those check again
//! that a user has the key of its line.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;

use super::{Draft, Import, LineOutcome};
use crate::encoded::encoded_user::EncodedUser;
use crate::error::{Error, Invalid};
use crate::model::attribute::Value;
use crate::model::imported_user::Effect;
use crate::model::imported_user::reimport::{LineField, OnExisting};
use crate::model::tenant::Tenant;
use crate::model::user::{State, User};
use crate::mutation::{MutationKind, UserChange, reimport};
use crate::search::{AccessPath, Field, Scalar, scalars};
use crate::stores::{Consistency, View};
use polynym_identifier::IdentityKey;

/// The limit of concurrent searches for the users of a batch of lines.
const MAX_SEARCHES: usize = 8;

/// The next step of a line.
pub(super) enum Step {
    /// Its mutation.
    Mutate(Box<Draft>),
    /// None: this is its outcome.
    Done(LineOutcome),
}

impl Import {
    /// The next step of each draft. The mutation of a draft whose user exists changes that user; a
    /// draft that changes nothing is done.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn find_users(
        &self,
        drafts: Vec<Result<Box<Draft>, Error>>,
    ) -> Result<Vec<Result<Step, Error>>, Error> {
        if !self.options.reimport.finds_users() {
            return Ok(drafts.into_iter().map(|draft| draft.map(Step::Mutate)).collect());
        }
        let keyed = drafts.into_iter().map(|draft| draft.and_then(|draft| self.keyed(draft)));
        let drafts: Vec<_> = keyed.collect();
        let mut owners = self.owners(&drafts).await?;
        let steps = drafts.into_iter().enumerate().map(|(n, draft)| {
            let draft = draft?;
            match &without_deleted(owners.remove(&n).unwrap_or_default())[..] {
                [] => Ok(Step::Mutate(draft)),
                [first, others @ ..] => match others.iter().find(|other| other.id != first.id) {
                    Some(other) => Err(Error::LineAmbiguous { users: [first.id, other.id] }),
                    None => Ok(self.step(draft, first)),
                },
            }
        });
        Ok(steps.collect())
    }

    /// A draft that its user can be found by: otherwise each import would create another.
    fn keyed(&self, draft: Box<Draft>) -> Result<Box<Draft>, Error> {
        let Some(imported) = draft.imported() else { return Ok(draft) };
        let has_key = match &self.options.reimport.key {
            _ if imported.has_id => true,
            Some(LineField::Attribute(name)) => {
                imported.attributes.get(name).and_then(scalar).is_some()
            }
            _ => imported
                .identities
                .iter()
                .any(|identity| self.options.reimport.finds_by(&identity.new.identifier)),
        };
        match has_key {
            true => Ok(draft),
            false => {
                let message = "has no user_id and not the key of the import: its user cannot be \
                    found among those who exist";
                Err(Error::invalid(Invalid::Field, "user", message))
            }
        }
    }

    /// The next step of a draft about this user.
    fn step(&self, mut draft: Box<Draft>, user: &User) -> Step {
        let leaves = |imported| reimport::leaves(&draft.mutation, imported, user);
        // The transaction decides whether the line restores a deleted user.
        let skips = self.options.reimport.on_existing == OnExisting::Skip && !is_deleted(user);
        if skips || draft.imported().is_some_and(leaves) {
            let (effect, rejects) = (Some(Effect::Unchanged), draft.rejects);
            return Step::Done(LineOutcome { effect, rejects, ..LineOutcome::default() });
        }
        if let MutationKind::User(id, UserChange::Import(imported)) = &mut draft.mutation.kind
            && !imported.has_id
        {
            (*id, imported.is_found) = (user.id, true);
        }
        Step::Mutate(draft)
    }

    /// The users that each draft names, by its position.
    async fn owners(
        &self,
        drafts: &[Result<Box<Draft>, Error>],
    ) -> Result<BTreeMap<usize, Vec<User>>, Error> {
        let (mut keys, mut ids, mut searches) = (Vec::new(), BTreeMap::new(), Vec::new());
        for (n, draft) in drafts.iter().enumerate() {
            let Ok(draft) = draft else { continue };
            let (Some(imported), tenant) = (draft.imported(), &draft.mutation.tenant) else {
                continue;
            };
            match (draft.mutation.user_id(), &self.options.reimport.key) {
                (Some(id), _) if imported.has_id => {
                    ids.entry(tenant).or_insert_with(Vec::new).push((n, id));
                }
                (_, Some(LineField::Attribute(name))) => {
                    let value = imported.attributes.get(name).and_then(scalar);
                    searches.extend(value.map(|value| (n, tenant, name, value)));
                }
                _ => {
                    let identifiers =
                        imported.identities.iter().map(|identity| &identity.new.identifier);
                    let named = identifiers.filter(|one| self.options.reimport.finds_by(one));
                    for key in named.map(|one| IdentityKey::new(tenant.as_str(), one)) {
                        match self.trial.as_ref().and_then(|trial| trial.claim(&key)) {
                            None => keys.push((n, key)),
                            Some(claim) => {
                                let owner = claim.and_then(|claim| claim.resolves_to());
                                let own = ids.entry(tenant).or_insert_with(Vec::new);
                                own.extend(owner.map(|owner| (n, owner)));
                            }
                        }
                    }
                }
            }
        }

        let mut owners = self.by_keys(&keys).await?;
        for (tenant, ids) in ids {
            for (n, users) in self.by_ids(tenant, &ids).await? {
                owners.entry(n).or_default().extend(users);
            }
        }
        let searches = searches.into_iter().map(|(n, tenant, name, value)| async move {
            Ok::<_, Error>((n, self.by_attribute(tenant, name, value).await?))
        });
        let found = stream::iter(searches.collect::<Vec<_>>()).buffered(MAX_SEARCHES);
        owners.extend(found.try_collect::<Vec<_>>().await?);
        Ok(owners)
    }

    async fn by_keys(
        &self,
        keys: &[(usize, IdentityKey)],
    ) -> Result<BTreeMap<usize, Vec<User>>, Error> {
        let lookups = &self.directory.backend.lookups;
        let mut owners: BTreeMap<usize, Vec<User>> = BTreeMap::new();
        let mut rest = keys;
        while !rest.is_empty() {
            let wanted: Vec<_> = rest.iter().map(|(_, key)| key.clone()).collect();
            let latest = Consistency::Latest;
            let resolved = lookups.resolve(&wanted, latest, View::Full, Duration::ZERO).await?;
            let count = resolved.found.len().max(1);
            for ((n, _), found) in rest.iter().zip(resolved.found) {
                if let Some(found) = found? {
                    let user = self.foreseen_user(decoded(&found.user)?);
                    owners.entry(*n).or_default().extend(user);
                }
            }
            rest = rest.get(count..).unwrap_or_default();
        }
        Ok(owners)
    }

    async fn by_ids(
        &self,
        tenant: &Tenant,
        ids: &[(usize, LocalityId)],
    ) -> Result<Vec<(usize, Vec<User>)>, Error> {
        let lookups = &self.directory.backend.lookups;
        let (mut users, mut unread) = (Vec::new(), Vec::new());
        for (n, id) in ids {
            match self.trial.as_ref().and_then(|trial| trial.user(*id)) {
                None => unread.push((*n, *id)),
                Some(record) => {
                    let record = record.filter(|record| record.user.tenant == *tenant);
                    users.extend(record.map(|record| (*n, vec![record.user])));
                }
            }
        }
        let mut rest = &*unread;
        while !rest.is_empty() {
            let wanted: Vec<_> = rest.iter().map(|(_, id)| *id).collect();
            let found = lookups.get(tenant, &wanted, View::Full).await?;
            let count = found.len().max(1);
            for ((n, _), user) in rest.iter().zip(found) {
                if let Some(user) = user? {
                    users.push((*n, vec![decoded(&user)?]));
                }
            }
            rest = rest.get(count..).unwrap_or_default();
        }
        Ok(users)
    }

    /// The users with this value of an attribute: at most two, which is one too many.
    async fn by_attribute(
        &self,
        tenant: &Tenant,
        name: &str,
        value: Scalar,
    ) -> Result<Vec<User>, Error> {
        let own = Field::Attribute(name.to_owned());
        let path = AccessPath::Equals { field: own, value: value.clone() };
        let search = &self.directory.backend.search;
        let found = search.search(tenant, &path, None, 2, View::Full).await?;
        if let Some(id) = found.unreadable().next() {
            return Err(Error::Internal(format!("the user {id} cannot be read").into()));
        }
        let users = found.into_readable().filter_map(|found| self.foreseen_user(found.user));
        let has = |user: &User| user.attributes.get(name).and_then(scalar).as_ref() == Some(&value);
        Ok(users.filter(has).collect())
    }

    /// A user as it would be after the earlier lines of a dry run; none if it would be removed.
    fn foreseen_user(&self, user: User) -> Option<User> {
        let foreseen = self.trial.as_ref().and_then(|trial| trial.user(user.id));
        foreseen.map_or(Some(user), |record| record.map(|record| record.user))
    }
}

/// The users that a line may be about. Deleted ones count only if no others do, and then the first:
/// the transaction decides whether the line restores it, and takes identities from the others.
fn without_deleted(mut users: Vec<User>) -> Vec<User> {
    match users.iter().all(is_deleted) {
        true => users.truncate(1),
        false => users.retain(|user| !is_deleted(user)),
    }
    users
}

const fn is_deleted(user: &User) -> bool {
    matches!(user.state, State::Deleted { .. })
}

fn decoded(user: &EncodedUser) -> Result<User, Error> {
    user.decode().map_err(|error| Error::Internal(error.into()))
}

/// The value of an attribute by which users can be found; none if it is a list, or a text that is
/// too long for the index.
fn scalar(value: &Value) -> Option<Scalar> {
    match value {
        Value::List(_) => None,
        single => scalars(single).next().map(Scalar::from),
    }
}
