//! The effect of each operation on users and held keys, computed as if there were no other users,
//! and then the conflicts with them.

use std::collections::BTreeSet;

use locality_uuid::LocalityId;
use polynym_directory::{
    Error, Identity, Mutation, MutationKind, MutationReport, NewIdentity, NewUser, Outcome,
    Policies, State, Takeover, Timestamp, Unknown, User, UserChange,
};
use polynym_identifier::{Guard, Identifier, IdentityKey, Kind};

use super::edits::{change_user, just_after};
use super::state::{Held, Person, ReferenceModel};
use super::{merges, transfers};
use crate::step::Action;

/// The user and the report in the answer to a mutation.
#[derive(Default)]
struct Effect {
    subject: Option<LocalityId>,
    report: MutationReport,
    takeovers: Vec<Takeover>,
}

impl Effect {
    fn new(subject: LocalityId, report: MutationReport) -> Self {
        Self { subject: Some(subject), report, takeovers: Vec::new() }
    }
}

impl ReferenceModel {
    /// The model after a mutation and the outcome, or all correct refusals.
    pub fn after(
        &self,
        mutation: &Mutation,
        action: &Action,
    ) -> Result<(ReferenceModel, Outcome), Vec<Error>> {
        let mut next = self.clone();
        let Effect { subject, report, takeovers } =
            next.execute(mutation, action).map_err(|error| vec![error])?;
        next.apply_consequences(self, mutation);
        let mut refusals = next.exceeded_limits(self, mutation);
        refusals.extend(next.collisions(self, mutation));
        if !refusals.is_empty() {
            return Err(refusals);
        }

        let is_unmerge = matches!(mutation.user_change(), Some(UserChange::Unmerge(_)));
        let shows_present = mutation.dry_run && !is_unmerge;
        let shown = if shows_present { self } else { &next };
        let user = subject.and_then(|id| shown.people.get(&id)).map(|person| person.user.clone());
        let report = match report {
            MutationReport::Preview(mut preview) => {
                preview.result = subject.map_or(preview.result, |id| next.people[&id].user.clone());
                MutationReport::Preview(preview)
            }
            other => other,
        };
        let takeovers = if mutation.dry_run { Vec::new() } else { takeovers };

        Ok((next, Outcome { user, report, takeovers, foreseen: Vec::new() }))
    }

    /// Executes the mutation.
    fn execute(&mut self, mutation: &Mutation, action: &Action) -> Result<Effect, Error> {
        let (id, change) = match &mutation.kind {
            MutationKind::User(id, change) => (*id, change),
            MutationKind::ReleaseHold(identifier) => {
                return self.release(mutation, identifier).map(|()| Effect::default());
            }
            MutationKind::Tenant(_)
            | MutationKind::ImportHold(_)
            | MutationKind::Bulk(..)
            | MutationKind::Delivery(..) => return Ok(Effect::default()),
        };
        match change {
            UserChange::Create(draft) => return Ok(self.create(mutation, id, draft)),
            UserChange::Expire => return Ok(self.expire(mutation, id)),
            UserChange::Merge(other, _) if *other == id => return Err(merges::merge_with_itself()),
            UserChange::Move(from, _) if *from == id => return Err(transfers::same_user()),
            _ => {}
        }

        let mut person = self.changeable(id, mutation)?;
        if mutation.etag.as_ref().is_some_and(|etag| *etag != person.user.etag()) {
            return Err(Error::EtagMismatch);
        }

        match change {
            UserChange::Purge => return Ok(Effect::new(id, self.purge(id))),
            UserChange::Merge(other, policy) => {
                return Ok(Effect::new(id, merges::merge(self, mutation, id, *other, *policy)?));
            }
            UserChange::Unmerge(other) => {
                return Ok(Effect::new(*other, merges::unmerge(self, mutation, id, *other)?));
            }
            UserChange::Move(from, identifier) => {
                let owner = self.changeable(*from, mutation)?;
                let giver = transfers::move_identity(owner, &mut person, identifier, mutation)?;
                self.people.extend([(id, person), (*from, giver)]);
                return Ok(Effect::new(id, MutationReport::Nothing));
            }
            _ => {}
        }

        let mut effect = Effect::new(id, MutationReport::Nothing);
        if let UserChange::Link(new) = change
            && person.position(&new.identifier).is_err()
        {
            effect.takeovers = self.take_over(mutation, id, std::slice::from_ref(new));
        }
        change_user(&mut person, mutation, change, action)?;
        self.people.insert(id, person);

        Ok(effect)
    }

    fn create(&mut self, mutation: &Mutation, id: LocalityId, draft: &NewUser) -> Effect {
        let user = User {
            id,
            tenant: mutation.tenant.clone(),
            display_name: draft.display_name.clone(),
            identities: Vec::new(),
            attributes: draft.attributes.clone(),
            state: State::Active,
            create_time: mutation.now.time,
            update_time: mutation.now.time,
            unknown: Unknown::default(),
        };
        let mut person = Person {
            user,
            guarded: BTreeSet::new(),
            disabled: false,
            merge: None,
            not_restored: Vec::new(),
        };
        for (at, new) in draft.identities.iter().enumerate() {
            person.add_identity(new, at, new.primary, mutation.now.time, mutation);
        }

        let takeovers = self.take_over(mutation, id, &draft.identities);
        self.people.insert(id, person);
        Effect { takeovers, ..Effect::new(id, MutationReport::Nothing) }
    }

    /// Takes verified identities from owners who have not verified them, and phones from those who
    /// have long ago, if the policies allow it.
    fn take_over(
        &mut self,
        mutation: &Mutation,
        winner: LocalityId,
        new: &[NewIdentity],
    ) -> Vec<Takeover> {
        let mut losers = Vec::new();
        for new in new.iter().filter(|new| new.verification.is_some()) {
            for (id, person) in
                self.people.iter_mut().filter(|(_, person)| person.user.tenant == mutation.tenant)
            {
                let Ok(at) = person.position(&new.identifier) else { continue };
                if is_lost(mutation, &person.user.identities[at]) {
                    person.remove_identity(at);
                    losers.push(*id);
                }
            }
        }

        losers.sort_unstable();
        losers.dedup();
        losers.into_iter().map(|loser| Takeover { winner, loser }).collect()
    }

    fn release(&mut self, mutation: &Mutation, identifier: &Identifier) -> Result<(), Error> {
        let tenant = mutation.tenant.as_str();
        let removed = self.holds.remove(&IdentityKey::new(tenant, identifier));
        let held = removed.filter(|held| held.until > mutation.now.time).ok_or(Error::NotHeld)?;
        if let Some(guard) = identifier.guard().map(|guard| IdentityKey::of_guard(tenant, &guard)) {
            let same = |other: &Held| {
                other.guard && (other.owner, other.until) == (held.owner, held.until)
            };
            if self.holds.get(&guard).is_some_and(same) {
                self.holds.remove(&guard);
            }
        }

        Ok(())
    }

    fn expire(&mut self, mutation: &Mutation, id: LocalityId) -> Effect {
        let nothing = Effect::default();
        let person =
            self.people.get_mut(&id).filter(|person| person.user.tenant == mutation.tenant);
        let Some(person) =
            person.filter(|person| person.expires_at().is_some_and(|due| due <= mutation.now.time))
        else {
            return nothing;
        };

        match person.user.state {
            State::Deleted { .. } => Effect { report: self.purge(id), ..nothing },
            _ => {
                person.merge = None;
                Effect::new(id, MutationReport::Nothing)
            }
        }
    }

    /// Removes a user and all users merged into it.
    fn purge(&mut self, id: LocalityId) -> MutationReport {
        let gone: Vec<_> = self
            .people
            .keys()
            .copied()
            .filter(|other| *other == id || self.leads_to(*other, id))
            .collect();
        for id in &gone {
            self.people.remove(id);
        }

        for held in self.holds.values_mut().filter(|held| held.owner == Some(id)) {
            held.owner = None;
        }
        MutationReport::Purged(gone)
    }

    /// Applies the consequences of a change: primary marks, holds and times.
    fn apply_consequences(&mut self, before: &ReferenceModel, mutation: &Mutation) {
        for person in self.people.values_mut() {
            for kind in Kind::ALL {
                let of_kind = |identity: &&mut Identity| identity.identifier.kind() == kind;
                let mut same: Vec<_> = person.user.identities.iter_mut().filter(of_kind).collect();
                if !same.is_empty() && same.iter().all(|identity| !identity.primary) {
                    same[0].primary = true;
                }
            }
        }

        let live: BTreeSet<_> =
            self.people.values().flat_map(Person::keys).map(|(key, _)| key).collect();
        let gives_up = matches!(
            mutation.user_change(),
            Some(
                UserChange::Unlink(_)
                    | UserChange::Replace(..)
                    | UserChange::Purge
                    | UserChange::Expire
            )
        );
        for (id, person) in before.people.iter().filter(|_| gives_up) {
            for (key, guard) in person.keys().into_iter().filter(|(key, _)| !live.contains(key)) {
                if let Some(until) = hold_end(&key, &mutation.policies, mutation.now.time) {
                    let owner = Some(*id).filter(|id| self.people.contains_key(id));
                    self.holds.insert(key, Held { owner, guard, until });
                }
            }
        }

        self.holds.retain(|key, _| !live.contains(key));
        let is_changed = |id: &LocalityId, user: &User| {
            before.people.get(id).is_some_and(|before| before.user != *user)
        };
        let changed: Vec<_> = self
            .people
            .iter()
            .filter(|(id, person)| is_changed(id, &person.user))
            .map(|(id, _)| *id)
            .collect();
        let last = changed.iter().map(|id| before.people[id].user.update_time).max();

        for id in changed {
            let time = mutation.now.time.max(last.map_or(mutation.now.time, just_after));
            self.people.entry(id).and_modify(|person| person.user.update_time = time);
        }
    }

    /// The refusals for limits that the mutation exceeds: those of its user and, if it undoes a
    /// merge, of the user that it restores.
    fn exceeded_limits(&self, before: &ReferenceModel, mutation: &Mutation) -> Vec<Error> {
        let restored = match mutation.user_change() {
            Some(UserChange::Unmerge(secondary)) => Some(*secondary),
            _ => None,
        };
        let users = mutation.user_id().into_iter().chain(restored);
        users.flat_map(|id| self.limits_exceeded_by(id, before, mutation)).collect()
    }

    fn limits_exceeded_by(
        &self,
        id: LocalityId,
        before: &ReferenceModel,
        mutation: &Mutation,
    ) -> Vec<Error> {
        let identities = |state: &ReferenceModel| {
            state.people.get(&id).map_or(0, |person| person.user.identities.len())
        };
        let attributes = |state: &ReferenceModel| {
            state.people.get(&id).map_or(0, |person| person.user.attributes.len())
        };
        let is_held = |held: &&Held| held.owner == Some(id) && held.until > mutation.now.time;
        let holds = |state: &ReferenceModel| state.holds.values().filter(is_held).count();
        let merged = |state: &ReferenceModel| {
            state.people.keys().filter(|other| state.leads_to(**other, id)).count()
        };
        let excess = |what, limit, count: &dyn Fn(&ReferenceModel) -> usize| {
            let (had, count) = (count(before), count(self));
            (count > limit && count > had && self.people.contains_key(&id))
                .then_some(Error::TooMany { what, limit, count })
        };
        let limits = mutation.limits;
        let exceeded_limits = [
            excess("identities", limits.identities, &identities),
            excess("attributes", limits.attributes, &attributes),
            excess("identifiers held for it", limits.holds, &holds),
            excess("users merged into it", limits.merged, &merged),
        ];

        exceeded_limits.into_iter().flatten().collect()
    }

    /// The refusals for keys that another user owns or that are held.
    fn collisions(&self, before: &ReferenceModel, mutation: &Mutation) -> Vec<Error> {
        let claims = |state: &ReferenceModel| -> Vec<(IdentityKey, bool, LocalityId)> {
            let of = |(id, person): (&LocalityId, &Person)| {
                let id = *id;
                person
                    .keys()
                    .into_iter()
                    .map(move |(key, guard)| (key, guard, id))
                    .collect::<Vec<_>>()
            };
            state.people.iter().flat_map(of).collect()
        };
        let (had, has) = (claims(before), claims(self));
        // Two handles of one user can have the same guard.
        let count = |all: &[_], wanted: &(IdentityKey, bool, LocalityId)| {
            all.iter().filter(|claim| *claim == wanted).count()
        };
        let is_new =
            |claim: &(IdentityKey, bool, LocalityId)| count(&has, claim) > count(&had, claim);
        let mut refusals = Vec::new();
        for (n, (key, guard, id)) in has.iter().enumerate().filter(|(_, claim)| is_new(claim)) {
            let field = field(mutation, key);
            let others = has.iter().enumerate().filter(|(m, (other, ..))| *m != n && other == key);
            for (_, (_, other_guard, owner)) in others {
                refusals.push(match *guard || *other_guard {
                    true => Error::IdentityConfusable { field: field.clone() },
                    false => Error::IdentityTaken { owner: *owner, field: field.clone() },
                });
            }
            let held = before
                .holds
                .get(key)
                .filter(|held| held.until > mutation.now.time && held.owner != Some(*id));
            if let Some(held) = held.filter(|_| had.iter().all(|(other, ..)| other != key)) {
                refusals.push(Error::IdentityHeld { until: held.until, field });
            }
        }

        refusals
    }
}

/// The field that names the identifier of a key, or the one that it guards.
fn field(mutation: &Mutation, key: &IdentityKey) -> String {
    let tenant = mutation.tenant.as_str();
    let is = |identifier: &Identifier| {
        let guard = identifier.guard().map(|guard| IdentityKey::of_guard(tenant, &guard));
        IdentityKey::new(tenant, identifier) == *key || guard.as_ref() == Some(key)
    };

    match mutation.user_change() {
        Some(UserChange::Create(draft)) => {
            let n = draft.identities.iter().position(|new| is(&new.identifier)).unwrap_or_default();
            format!("user.identities[{n}].identifier")
        }
        Some(UserChange::Replace(..)) => "new_identifier".to_owned(),
        _ => "identifier".to_owned(),
    }
}

fn hold_end(key: &IdentityKey, policies: &Policies, now: Timestamp) -> Option<Timestamp> {
    let stored = key.parts().1;
    let word = if stored == Guard::LOOKALIKE { "handle" } else { stored };
    let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == word)?;
    let time = policies.holds.get(&kind)?;
    Some(Timestamp::from_millis(now.as_millis() + time.as_millis() as i64))
}

/// Whether the owner of an identity loses it to a user who verifies it now.
fn is_lost(mutation: &Mutation, identity: &Identity) -> bool {
    let age = mutation.policies.phone_takeover_after.as_millis() as i64;
    let lapses = age > 0 && identity.identifier.kind() == Kind::Phone;
    match &identity.verification {
        None => lapses || mutation.policies.verified_wins,
        Some(old) => lapses && mutation.now.time.as_millis() - old.time.as_millis() >= age,
    }
}
