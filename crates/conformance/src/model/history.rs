//! The owners of each key over time in the model, compared with the history of a store.

use std::collections::{BTreeMap, BTreeSet};

use locality_uuid::LocalityId;
use polynym_directory::{
    Backend, Error, Identity, LIST_BYTES, Now, PageLimit, State, Tenant, Timestamp, View,
    check_history, owners_at,
};
use polynym_identifier::IdentityKey;

use super::state::ReferenceModel;
use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{identifier, tenant};
use crate::step::{NAMES, TENANTS};

/// Events in a page: few, so that histories have several pages.
const PAGE_SIZE: usize = 3;

/// The ownerships of each key in the order of their begin.
#[derive(Clone, Default)]
pub struct Owners {
    spans: BTreeMap<IdentityKey, Vec<Span>>,
    /// Pairs of users that were merged or owned the same identity.
    related: BTreeSet<(LocalityId, LocalityId)>,
}

#[derive(Clone, Debug)]
struct Span {
    /// None if the user was purged.
    owner: Option<LocalityId>,
    begin: Timestamp,
    end: Option<Timestamp>,
}

impl Owners {
    /// Records the keys whose owners differ between two states.
    pub fn record(&mut self, before: &ReferenceModel, after: &ReferenceModel, now: Timestamp) {
        let is_changed = |id: &LocalityId| {
            before.people.get(id).map(|person| &person.user)
                != after.people.get(id).map(|person| &person.user)
        };
        let changed = after.people.iter().filter(|(id, _)| is_changed(id));
        let time = changed.map(|(_, person)| person.user.update_time).max().unwrap_or(now);
        let (had, has) = (owned(before), owned(after));
        for (key, owner) in had.iter().filter(|(key, owner)| has.get(*key) != Some(*owner)) {
            self.relate(*owner, has.get(key).copied());
            let spans = self.spans.get_mut(key).into_iter().flatten();
            for span in spans.filter(|span| span.owner == Some(*owner) && span.end.is_none()) {
                span.end = Some(time);
            }
        }
        for (key, owner) in has.iter().filter(|(key, owner)| had.get(*key) != Some(*owner)) {
            let span = Span { owner: Some(*owner), begin: time, end: None };
            self.spans.entry(key.clone()).or_default().push(span);
        }
        for (id, person) in &before.people {
            let states = [Some(person), after.people.get(id)].into_iter().flatten();
            for state in states.map(|person| person.user.state) {
                let merged = if let State::Merged { into } = state { Some(into) } else { None };
                self.relate(*id, merged);
            }
        }
        let gone = before.people.keys().filter(|id| !after.people.contains_key(id));
        self.forget(&gone.copied().collect(), &has, after);
    }

    fn relate(&mut self, one: LocalityId, other: Option<LocalityId>) {
        let pairs = other.map(|other| [(one, other), (other, one)]);
        self.related.extend(pairs.into_iter().flatten());
    }

    /// Forgets purged users. Of their keys, also forgets related users who do not own them now.
    fn forget(
        &mut self,
        gone: &BTreeSet<LocalityId>,
        has: &BTreeMap<IdentityKey, LocalityId>,
        after: &ReferenceModel,
    ) {
        let is_related =
            |owner: LocalityId| gone.iter().any(|gone| self.related.contains(&(*gone, owner)));
        for (key, spans) in &mut self.spans {
            let is_theirs =
                spans.iter().filter_map(|span| span.owner).any(|own| gone.contains(&own));
            let is_forgotten = |owner: LocalityId| {
                gone.contains(&owner)
                    || is_theirs && is_related(owner) && has.get(key) != Some(&owner)
            };
            for span in spans.iter_mut() {
                span.owner = span.owner.filter(|owner| !is_forgotten(*owner));
            }
            // Without a former owner, the present one has the identity since it was linked, even if
            // a merge brought it.
            if spans.iter().all(|span| span.owner.is_none() || span.end.is_none()) {
                spans.retain(|span| span.end.is_none());
                for span in spans.iter_mut() {
                    span.begin = link_time(after, span.owner, key).unwrap_or(span.begin);
                }
            }
        }
    }

    fn at(&self, key: &IdentityKey, time: Timestamp) -> Option<LocalityId> {
        let spans = self.spans.get(key)?;
        let span = spans.iter().find(|span| span.end.is_none_or(|end| time < end))?;
        span.owner.filter(|_| span.begin <= time)
    }

    /// The times at which owners changed, and the milliseconds around them.
    fn times_to_check(&self) -> BTreeSet<Timestamp> {
        let spans = self.spans.values().flatten();
        let times = spans.flat_map(|span| [Some(span.begin), span.end]).flatten();
        let around = |time: Timestamp| [-1, 0, 1].map(|by| time.as_millis() + by);
        times.flat_map(around).map(Timestamp::from_millis).collect()
    }

    /// Fails unless the store knows each owner at each time.
    pub async fn compare(
        &self,
        state: &ReferenceModel,
        store: &Backend,
        now: Timestamp,
    ) -> Result<(), Failure> {
        for name in TENANTS {
            let tenant = tenant(name)?;
            let key = |name: &&str| Ok(IdentityKey::new(tenant.as_str(), &identifier(name)?));
            let keys = NAMES.iter().map(key).collect::<Result<Vec<_>, Failure>>()?;
            for time in self.times_to_check() {
                let at = (&tenant, Now::certain(now));
                let answer = owners_at(store, at, &keys, time, View::Basic).await?;
                let found = answer.ok_or("a former owner is unavailable")?;
                for (key, result) in keys.iter().zip(found) {
                    let found = match result {
                        Ok(found) => Some(found.user.decode()?.id),
                        Err(Error::IdentityNotFound) => None,
                        Err(error) => return Err(error.into()),
                    };
                    let owner = self.at(key, time);
                    let owner =
                        owner.filter(|id: &LocalityId| state.present(*id, &tenant, now).is_ok());
                    let what = format!("the owner of {} at {time:?}", key.as_str());
                    equal(&found, &owner, &what)?;
                }
            }
        }
        Ok(())
    }
}

/// The time when the identity of a present owner was linked.
fn link_time(
    state: &ReferenceModel,
    owner: Option<LocalityId>,
    key: &IdentityKey,
) -> Option<Timestamp> {
    let user = &state.people.get(&owner?)?.user;
    let is_same =
        |identity: &&Identity| IdentityKey::new(user.tenant.as_str(), &identity.identifier) == *key;
    Some(user.identities.iter().find(is_same)?.link_time)
}

fn owned(state: &ReferenceModel) -> BTreeMap<IdentityKey, LocalityId> {
    let keys = |(id, person): (&LocalityId, &super::state::Person)| {
        let keys = person.keys().into_iter().filter(|(_, guard)| !guard);
        keys.map(|(key, _)| (key, *id)).collect::<Vec<_>>()
    };
    state.people.iter().flat_map(keys).collect()
}

/// Fails unless undoing all events of each user leaves nothing, and no other user has events.
pub async fn compare_events(
    state: &ReferenceModel,
    store: &Backend,
    known: &[LocalityId],
) -> Result<(), Failure> {
    for id in known {
        let Some(person) = state.people.get(id) else {
            for name in TENANTS {
                let history = store
                    .histories
                    .history(&tenant(name)?, *id, None, PageLimit::new(1, LIST_BYTES))
                    .await?;
                ensure(history.is_none(), "a history of an unknown user")?;
            }
            continue;
        };
        check_user(store, &person.user.tenant, *id, &person.user).await?;
    }
    Ok(())
}

async fn check_user(
    store: &Backend,
    tenant: &Tenant,
    id: LocalityId,
    user: &polynym_directory::User,
) -> Result<(), Failure> {
    let (mut events, mut cursor) = (Vec::new(), None);
    let limit = PageLimit::new(PAGE_SIZE, LIST_BYTES);
    loop {
        let page = store.histories.history(tenant, id, cursor, limit).await?;
        let history = page.ok_or("a user without a history")?;
        ensure(history.events.len() <= PAGE_SIZE, "a page exceeds its limit")?;
        events.extend(history.events);
        cursor = history.next;
        if cursor.is_none() {
            break;
        }
    }
    check_history(user, &events).map_err(|fault| format!("{id}: {fault}: {events:#?}"))?;
    equal(&events.last().map(|event| event.sequence), &Some(1), "the first event")?;
    let is_own = events.iter().all(|event| event.user == id && event.tenant == *tenant);
    ensure(is_own, "events of another user")
}
