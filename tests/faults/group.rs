//! A model of users that are merged and unmerged, with the names that move between them. Each group
//! of a few users and names has a short history of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::audit::State;
use crate::caller::{Call, Names, Reply};
use crate::ledger::{Entry, History};
use crate::linear::{Event, Model, check};

/// The users with the numbers `n * USERS ..` and the names with the numbers `n * NAMES ..`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Group {
    /// The owner of each name, and the call that linked it.
    owners: BTreeMap<usize, (usize, u64)>,
    /// The primary of each merged user, and the names that it owned then.
    merged: BTreeMap<usize, (usize, BTreeMap<usize, u64>)>,
}

/// A call and its answer, or the final state.
#[derive(Clone, Debug)]
pub enum GroupCall {
    Reply(Call, Reply, u64),
    Is { owners: BTreeMap<usize, usize>, merged: BTreeMap<usize, usize> },
}

impl Group {
    pub const USERS: usize = 3;
    pub const NAMES: usize = 4;

    /// The state of a group after a call, and the outcome. `link` identifies this call.
    fn apply(&self, call: &Call, link: u64) -> (Self, Reply) {
        let mut after = self.clone();
        let reply = match *call {
            Call::Resolve(name) => self
                .owner(name)
                .map_or(Reply::Nobody, |owner| Reply::Found(owner, self.listed(owner))),
            Call::Get(user) => match self.last(user) {
                last if last == user => Reply::User(Some(self.listed(user))),
                last => Reply::Part(last, self.listed(last)),
            },
            Call::Link(user, _) | Call::Unlink(user, _) | Call::Replace(user, ..) => {
                self.refusal(user).unwrap_or_else(|| after.change(user, call, link))
            }
            Call::Merge(primary, secondary) => {
                let refusal = self.refusal(primary).or_else(|| self.refusal(secondary));
                refusal.unwrap_or_else(|| after.merge(primary, secondary))
            }
            Call::Unmerge(primary, secondary) => {
                self.refusal(primary).unwrap_or_else(|| after.unmerge(primary, secondary))
            }
            Call::Create(..) => unreachable!("no call creates users here"),
        };
        (after, reply)
    }

    fn owner(&self, name: usize) -> Option<usize> {
        self.owners.get(&name).map(|(owner, _)| *owner)
    }

    fn listed(&self, user: usize) -> Names {
        self.owners.iter().filter(|(_, (owner, _))| *owner == user).map(|(name, _)| *name).collect()
    }

    /// The final primary of a user.
    fn last(&self, user: usize) -> usize {
        self.merged.get(&user).map_or(user, |(into, _)| self.last(*into))
    }

    /// The reason why a user cannot be changed.
    fn refusal(&self, user: usize) -> Option<Reply> {
        self.merged.get(&user).map(|(into, _)| Reply::Merged(user, *into))
    }

    /// The effect of a change to the names of one user.
    fn change(&mut self, user: usize, call: &Call, link: u64) -> Reply {
        let (old, new) = match *call {
            Call::Link(_, name) => (None, Some(name)),
            Call::Unlink(_, name) => (Some(name), None),
            Call::Replace(_, old, new) => (Some(old), Some(new)),
            _ => unreachable!("{call:?}"),
        };
        if old.is_some_and(|name| self.owner(name) != Some(user)) {
            return Reply::NotOwned;
        }
        if let Some((name, owner)) =
            new.and_then(|name| Some((name, self.owner(name)?))).filter(|(_, own)| *own != user)
        {
            return Reply::Taken(name, owner);
        }
        old.map(|name| self.owners.remove(&name));
        new.map(|name| self.owners.entry(name).or_insert((user, link)));
        Reply::Done(Some(self.listed(user)))
    }

    fn merge(&mut self, primary: usize, secondary: usize) -> Reply {
        let mut had = BTreeMap::new();
        for (name, (owner, link)) in
            self.owners.iter_mut().filter(|(_, (owner, _))| *owner == secondary)
        {
            *owner = primary;
            had.insert(*name, *link);
        }
        self.merged.insert(secondary, (primary, had));
        Reply::Done(Some(self.listed(primary)))
    }

    /// Names that the primary has released since stay released, even if it linked them again.
    fn unmerge(&mut self, primary: usize, secondary: usize) -> Reply {
        let Some((_, had)) =
            self.merged.get(&secondary).filter(|(into, _)| *into == primary).cloned()
        else {
            return Reply::NotMerged;
        };
        self.merged.remove(&secondary);
        for (name, link) in had {
            if self.owners.get(&name) == Some(&(primary, link)) {
                self.owners.insert(name, (secondary, link));
            }
        }
        Reply::Done(Some(self.listed(secondary)))
    }

    fn is(&self, owners: &BTreeMap<usize, usize>, merged: &BTreeMap<usize, usize>) -> bool {
        self.owners.iter().map(|(name, (owner, _))| (name, owner)).eq(owners)
            && self
                .merged
                .keys()
                .map(|user| (*user, self.last(*user)))
                .eq(merged.iter().map(|(a, b)| (*a, *b)))
    }
}

impl Model for Group {
    type State = Group;
    type Call = GroupCall;

    fn step(state: &Group, call: &GroupCall) -> Option<Group> {
        match call {
            GroupCall::Is { owners, merged } => state.is(owners, merged).then(|| state.clone()),
            GroupCall::Reply(call, reply, link) => {
                let (after, expected) = state.apply(call, *link);
                let fits = match reply {
                    Reply::Unknown(_) | Reply::Done(None) => matches!(expected, Reply::Done(_)),
                    reply => *reply == expected,
                };
                fits.then_some(after)
            }
        }
    }

    fn is_read(call: &GroupCall) -> bool {
        !matches!(call, GroupCall::Reply(_, Reply::Done(_) | Reply::Unknown(_), _))
    }
}

/// The group of a call.
fn group_of(call: &Call) -> usize {
    match *call {
        Call::Resolve(name) => name / Group::NAMES,
        Call::Create(user, _)
        | Call::Link(user, _)
        | Call::Unlink(user, _)
        | Call::Replace(user, ..) => user / Group::USERS,
        Call::Merge(user, _) | Call::Unmerge(user, _) | Call::Get(user) => user / Group::USERS,
    }
}

/// Fails unless the calls of each group are linearizable, from users without names to the final
/// state.
pub fn check_all(entries: &[Entry], lag: Duration, now: u64, before: &State, after: &State) {
    assert!(before.owners.is_empty() && before.merged.is_empty(), "{before:?}");
    for group in 0..after.users.len().div_ceil(Group::USERS) {
        let of = |entry: &Entry| {
            group_of(&entry.call) == group && !matches!(entry.reply, Reply::Failed(_))
        };
        let event = |entry: &Entry, start: u64| {
            let end = if matches!(entry.reply, Reply::Unknown(_)) { None } else { Some(entry.end) };
            let call = GroupCall::Reply(entry.call.clone(), entry.reply.clone(), entry.start);
            Some(Event { call, start, end })
        };
        let mut events: Vec<_> = History::of(entries, lag, of).flat_map(event);
        let part = |map: &BTreeMap<usize, usize>, size: usize| {
            map.iter()
                .filter(|(key, _)| **key / size == group)
                .map(|(key, value)| (*key, *value))
                .collect()
        };
        let call = GroupCall::Is {
            owners: part(&after.owners, Group::NAMES),
            merged: part(&after.merged, Group::USERS),
        };
        events.push(Event { call, start: now, end: Some(now + 1) });
        let history: String = events.iter().map(|event| format!("\n  {event:?}")).collect();
        let outcome = check::<Group>(Group::default(), events);
        outcome.unwrap_or_else(|why| {
            panic!("group {group} has an impossible history: {why}\nthe history:{history}")
        });
    }
}

/// The model accepts its own sequential answers and rejects wrong ones.
#[test]
fn unrelated_groups_are_separated() {
    let [joe, ann, bob] = [0, 1, 2];
    let names = |names: &[usize]| names.iter().copied().collect::<Names>();
    let said = [
        (Call::Link(joe, 0), Reply::Done(Some(names(&[0])))),
        (Call::Link(ann, 1), Reply::Done(Some(names(&[1])))),
        (Call::Merge(joe, ann), Reply::Done(Some(names(&[0, 1])))),
        (Call::Get(ann), Reply::Part(joe, names(&[0, 1]))),
        (Call::Link(ann, 2), Reply::Merged(ann, joe)),
        (Call::Merge(bob, joe), Reply::Done(Some(names(&[0, 1])))),
        (Call::Get(ann), Reply::Part(bob, names(&[0, 1]))),
        (Call::Unmerge(bob, ann), Reply::NotMerged),
        (Call::Unlink(bob, 0), Reply::Done(Some(names(&[1])))),
        (Call::Link(bob, 0), Reply::Done(Some(names(&[0, 1])))),
        (Call::Unmerge(bob, joe), Reply::Done(Some(names(&[1])))),
        (Call::Resolve(0), Reply::Found(bob, names(&[0]))),
        (Call::Unmerge(joe, ann), Reply::Done(Some(names(&[1])))),
        (Call::Get(joe), Reply::User(Some(names(&[])))),
    ];
    let events = |wrong: Option<(usize, Reply)>| {
        let event = |(n, (call, reply)): (usize, &(Call, Reply))| {
            let reply =
                wrong.iter().find(|(at, _)| *at == n).map_or(reply, |(_, reply)| reply).clone();
            let (n, call) = (n as u64, call.clone());
            Event { call: GroupCall::Reply(call, reply, n), start: 2 * n, end: Some(2 * n + 1) }
        };
        said.iter().enumerate().map(event).collect::<Vec<_>>()
    };
    check::<Group>(Group::default(), events(None)).unwrap();
    for (n, reply) in [
        (3, Reply::Part(joe, names(&[0]))),
        (3, Reply::User(Some(names(&[1])))),
        (6, Reply::Part(joe, names(&[0, 1]))),
        (7, Reply::Done(Some(names(&[1])))),
        (10, Reply::Done(Some(names(&[0, 1])))),
        (12, Reply::NotMerged),
    ] {
        assert!(
            check::<Group>(Group::default(), events(Some((n, reply.clone())))).is_err(),
            "{n}: {reply:?}"
        );
    }
}
