//! Random operations against a model: the directory's rules once more, in the plainest way there is, on a list of users
//! in memory. It uses none of the code that decides in `directory`.

use std::collections::HashMap;
use std::sync::Arc;

use super::decoded;
use super::ensure::{ensure, equal};
use super::fixture::{identifier, tenant};
use super::step::{ATTRIBUTES, Action, Etag, NAMES, Step, TENANTS, all, set};
use super::{Failure, Place};
use crate::directory::{
    Change, Consistency, Draft, DraftIdentity, Error, Identity, Limits, Mutation, Outcome, Request, Store, Timestamp,
    User,
};
use crate::identifier::{Identifier, IdentityKey, Kind, RULES_VERSION};
use crate::locality::{Generator, LocalityId, Mode};

const START: i64 = 1_767_225_600_000;

/// Does `steps` on the store of a place that nothing has used yet, and on a model. After each step both must have
/// answered alike, and have the same users and owners.
///
/// # Errors
/// A [`Failure`] that names the step and the difference.
pub async fn run(place: Arc<dyn Place>, steps: &[Step]) -> Result<(), Failure> {
    let ids = Generator::builder(Mode::Variable).random_origin().build();
    let mut model = Model { now: START, ..Model::default() };
    let mut store = place.open().await?;
    for (n, step) in steps.iter().enumerate() {
        if let Some(mutation) = model.mutation(step, ids.next_id())? {
            let outcome = store.mutate(mutation.clone()).await.and_then(Outcome::into_user);
            model.judge(&mutation, step, outcome).map_err(|e| format!("step {n}, {step:?}: {e}"))?;
        } else {
            drop(store);
            store = place.open().await?;
        }
        model.compare(&*store).await.map_err(|e| format!("after step {n}, {step:?}: {e}"))?;
    }
    Ok(())
}

#[derive(Default)]
struct Model {
    /// In the order in which they were created, with their first etags.
    users: Vec<(User, String)>,
    /// Fingerprint, user and time of each request that was answered.
    requests: HashMap<String, (u64, LocalityId, i64)>,
    now: i64,
}

impl Model {
    /// The mutation that a step stands for, given what is there; none where the store is to be opened again.
    fn mutation(&mut self, step: &Step, new_id: LocalityId) -> Result<Option<Mutation>, Failure> {
        self.now += step.elapsed;
        let time = Timestamp::from_millis(self.now);
        let Some(change) = step.action.change(time)? else { return Ok(None) };
        let user = self.users.get(step.user % (self.users.len() + 1));
        let user = user.filter(|_| !matches!(change, Change::Create(_)));
        let tenant = tenant(TENANTS[step.tenant])?;
        let key = |id| format!("{tenant},{id}");
        Ok(Some(Mutation {
            request: step.request.map(|(id, fingerprint)| Request { key: key(id), fingerprint }),
            user_id: user.map_or(new_id, |(user, _)| user.id),
            etag: user.and_then(|(user, first)| match step.etag {
                Etag::Any => None,
                Etag::Current => Some(user.etag()),
                Etag::First => Some(first.clone()),
                Etag::Wrong => Some("etag".to_owned()),
            }),
            time,
            limits: Limits { identities: step.room, attributes: step.room, ..Limits::default() },
            change,
            tenant: tenant.clone(),
        }))
    }

    /// Holds the store's answer against the model's, and takes over what the mutation has done.
    fn judge(&mut self, mutation: &Mutation, step: &Step, found: Result<User, Error>) -> Result<(), Failure> {
        if let Some(remembered) = self.remembered(mutation) {
            return matches(&found, &remembered.map_err(|error| vec![error]));
        }
        let wanted = self.after(mutation, step).map_err(|error| vec![error]).and_then(|after| {
            let takers = self.taken(mutation, &after);
            if takers.is_empty() { Ok(after) } else { Err(takers) }
        });
        matches(&found, &wanted)?;
        let Ok(user) = wanted else { return Ok(()) };
        if let Some(request) = &mutation.request {
            self.requests.insert(request.key.clone(), (request.fingerprint, user.id, self.now));
        }
        match self.users.iter_mut().find(|(other, _)| other.id == user.id) {
            Some((before, _)) => *before = user,
            None => self.users.push((user.clone(), user.etag())),
        }
        Ok(())
    }

    fn remembered(&self, mutation: &Mutation) -> Option<Result<User, Error>> {
        let request = mutation.request.as_ref()?;
        let (fingerprint, id, time) = self.requests.get(&request.key)?;
        if self.now - time >= 86_400_000 {
            return None;
        }
        let user = self.users.iter().find(|(user, _)| user.id == *id).map(|(user, _)| user.clone());
        Some(user.filter(|_| *fingerprint == request.fingerprint).ok_or(Error::RequestIdReused))
    }

    /// What the user becomes, if nobody else has what it would take.
    fn after(&self, mutation: &Mutation, step: &Step) -> Result<User, Error> {
        let before = self.users.iter().map(|(user, _)| user);
        let before = before.filter(|user| user.tenant == mutation.tenant).find(|user| user.id == mutation.user_id);
        let mut after = match (before, &mutation.change) {
            (Some(user), _) if mutation.etag.as_ref().is_some_and(|etag| *etag != user.etag()) => {
                return Err(Error::EtagMismatch);
            }
            (Some(user), _) => user.clone(),
            (None, Change::Create(draft)) => created(mutation, draft),
            (None, _) => return Err(Error::UserNotFound),
        };
        self.alter(&mut after, &step.action, &mutation.change)?;
        for kind in Kind::ALL {
            let mut same: Vec<_> = after.identities.iter_mut().filter(|i| i.identifier.kind() == kind).collect();
            if !same.is_empty() && same.iter().all(|identity| !identity.primary) {
                same[0].primary = true;
            }
        }
        if before.is_some_and(|before| *before != after) && mutation.time > after.update_time {
            after.update_time = mutation.time;
        }
        let grown = |what, had: Option<usize>, has: usize| match step.room {
            limit if has > limit && has > had.unwrap_or(0) => Err(Error::TooMany { what, limit, count: has }),
            _ => Ok(()),
        };
        grown("identities", before.map(|user| user.identities.len()), after.identities.len())?;
        grown("attributes", before.map(|user| user.attributes.len()), after.attributes.len())?;
        Ok(after)
    }

    fn alter(&self, user: &mut User, action: &Action, change: &Change) -> Result<(), Error> {
        let time = Timestamp::from_millis(self.now);
        match (action, change) {
            (Action::Rename(name), _) => user.display_name = name.to_string(),
            (Action::Set(n, value), _) => {
                user.attributes.remove(ATTRIBUTES[*n]);
                user.attributes.extend(set(*n, *value));
            }
            (Action::SetAll(numbers), _) => user.attributes = all(numbers),
            (_, Change::Link(new)) if position(user, &new.identifier).is_none() => {
                user.identities.push(identity(new, time))
            }
            (_, Change::Link(new)) => {
                let known = position(user, &new.identifier).map(|at| &mut user.identities[at]);
                if let Some(known) = known.filter(|known| known.verification.is_none()) {
                    known.verification = new.verification.clone();
                }
            }
            (_, Change::Unlink(old)) => drop(user.identities.remove(position(user, old).ok_or(Error::NotOwned)?)),
            (_, Change::Verify(name, verification)) => {
                let at = position(user, name).ok_or(Error::NotOwned)?;
                user.identities[at].verification = verification.clone();
            }
            (_, Change::Replace(old, new)) => {
                let from = position(user, old).ok_or(Error::NotOwned)?;
                let primary = user.identities[from].primary && old.kind() == new.identifier.kind();
                match position(user, &new.identifier) {
                    Some(to) if to == from => user.identities[from].display = new.display.clone(),
                    Some(to) => {
                        user.identities[to].primary |= primary;
                        user.identities.remove(from);
                    }
                    None => user.identities[from] = Identity { primary, ..identity(new, time) },
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The refusals that are right where others own what `after` would take: which of several is named is left open.
    fn taken(&self, mutation: &Mutation, after: &User) -> Vec<Error> {
        let others = self.users.iter().map(|(user, _)| user).filter(|u| u.tenant == after.tenant && u.id != after.id);
        let others: Vec<_> = others.collect();
        let owner = |name: &Identifier| others.iter().find(|user| position(user, name).is_some());
        let refusal = |(n, identity): (usize, &Identity)| {
            let field = match &mutation.change {
                Change::Create(_) => format!("user.identities[{n}].identifier"),
                Change::Replace(..) => "new_identifier".to_owned(),
                _ => "identifier".to_owned(),
            };
            Some(Error::IdentityTaken { owner: owner(&identity.identifier)?.id, field })
        };
        after.identities.iter().enumerate().filter_map(refusal).collect()
    }

    /// Fails unless the store has exactly the users and owners that the model has.
    async fn compare(&self, store: &dyn Store) -> Result<(), Failure> {
        for name in TENANTS {
            let tenant = tenant(name)?;
            let ids: Vec<_> = self.users.iter().map(|(user, _)| user.id).collect();
            let users: Vec<_> =
                self.users.iter().map(|(user, _)| Some(user.clone()).filter(|u| u.tenant == tenant)).collect();
            equal(&decoded::users(store, &tenant, &ids).await?, &users, "the users")?;
            let names = NAMES.iter().map(|name| identifier(name)).collect::<Result<Vec<_>, _>>()?;
            let keys: Vec<_> = names.iter().map(|name| IdentityKey::new(tenant.as_str(), name)).collect();
            let owner = |name: &Identifier| users.iter().flatten().find(|user| position(user, name).is_some());
            let owners: Vec<_> = names.iter().map(|name| owner(name).cloned()).collect();
            equal(&decoded::owners(store, &keys, Consistency::Latest).await?, &owners, "the owners")?;
        }
        Ok(())
    }
}

/// Fails unless the outcome is the user that is wanted, or one of the refusals.
fn matches(found: &Result<User, Error>, wanted: &Result<User, Vec<Error>>) -> Result<(), Failure> {
    let holds = match (found, wanted) {
        (Ok(found), Ok(wanted)) => found == wanted,
        (Err(found), Err(wanted)) => wanted.iter().any(|wanted| format!("{wanted:?}") == format!("{found:?}")),
        _ => false,
    };
    ensure(holds, format!("the store answered {found:?}, the model {wanted:?}"))
}

/// Where in its list a user has this.
fn position(user: &User, wanted: &Identifier) -> Option<usize> {
    user.identities.iter().position(|identity| identity.identifier == *wanted)
}

fn created(mutation: &Mutation, draft: &Draft) -> User {
    User {
        id: mutation.user_id,
        tenant: mutation.tenant.clone(),
        display_name: draft.display_name.clone(),
        identities: draft.identities.iter().map(|new| identity(new, mutation.time)).collect(),
        attributes: draft.attributes.clone(),
        create_time: mutation.time,
        update_time: mutation.time,
    }
}

fn identity(new: &DraftIdentity, link_time: Timestamp) -> Identity {
    Identity {
        identifier: new.identifier.clone(),
        display: new.display.clone(),
        rules_version: RULES_VERSION,
        link_time,
        verification: new.verification.clone(),
        primary: new.primary,
    }
}
