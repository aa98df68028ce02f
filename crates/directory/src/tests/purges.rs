//! The steps of a purge, with histories in memory.

use std::collections::HashMap;

use locality_uuid::LocalityId;

use super::{Decision, Error, Limits, Mutation, ReadSet, Record, Timestamp, User, UserChange};
use super::{id, mutation, user};
use crate::history_part::{HistoryEvents, HistoryPart};
use crate::model::event::{ChangeSet, Event, EventKind, Origin};
use crate::model::user::State;
use crate::mutation::read_set::{MutationReport, Write, WriteSet};

fn other_id(n: usize) -> LocalityId {
    LocalityId::from((n as u128 + 1_000).to_be_bytes())
}

fn bare(id: LocalityId) -> Record {
    Record::new(User { id, ..user(&[]) })
}

/// Users and their events, the oldest first.
#[derive(Default)]
struct Histories {
    users: HashMap<LocalityId, Record>,
    events: HashMap<LocalityId, Vec<Event>>,
}

impl Histories {
    fn add_user(&mut self, record: Record) {
        self.users.insert(record.id(), record);
    }

    fn add_event(&mut self, user: LocalityId, other_user: Option<LocalityId>) {
        let events = self.events.entry(user).or_default();
        events.push(Event {
            tenant: self.users[&user].user.tenant.clone(),
            user,
            sequence: events.len() as u64 + 1,
            time: Timestamp::from_millis(1),
            origin: Origin::server("test"),
            kind: EventKind::UserMerged,
            changes: ChangeSet { other_user, ..ChangeSet::default() },
        });
    }

    fn part(&self, part: HistoryPart) -> HistoryEvents {
        let all = self.events.get(&part.user).map_or(&[][..], Vec::as_slice);
        let up_to = part.cursor.unwrap_or(u64::MAX);
        let mut events = all.iter().rev().filter(|event| event.sequence <= up_to);
        let read = events.by_ref().take(part.limit).cloned().collect();
        let next = events.next().map(|event| event.sequence);
        HistoryEvents { events: read, next, ..HistoryEvents::default() }
    }

    /// Decides a mutation. Returns its write set, and the rounds of reads that it took.
    fn decide(&self, mutation: &Mutation) -> Result<(Box<WriteSet>, usize), Error> {
        let (mut read_set, mut rounds) = (ReadSet::default(), 0);
        loop {
            let needs = match mutation.decide(&read_set)? {
                Decision::Ready(write_set) => return Ok((write_set, rounds)),
                Decision::NeedsReads(needs) => needs,
            };
            rounds += 1;
            let user = |id: &LocalityId| self.users.get(id).cloned();
            needs.users.iter().for_each(|id| read_set.add_user(*id, user(id)));
            needs.claims.into_iter().for_each(|key| read_set.add_claim(key, None));
            needs.histories.iter().for_each(|part| read_set.add_history(*part, self.part(*part)));
        }
    }

    fn apply(&mut self, write_set: &WriteSet) {
        for write in &write_set.writes {
            if let Write::RemoveEvents(user, cursor) = write
                && let Some(events) = self.events.get_mut(user)
            {
                events.retain(|event| event.sequence > *cursor);
            }
        }
    }
}

#[test]
fn a_purge_reads_many_other_users_in_few_rounds() {
    const OTHERS: usize = 300;
    let mut histories = Histories::default();
    histories.add_user(bare(id(1)));
    for other in (0..OTHERS).map(other_id) {
        histories.add_user(bare(other));
        histories.add_event(id(1), Some(other));
        histories.add_event(other, Some(id(1)));
    }
    let (write_set, rounds) = histories.decide(&mutation(UserChange::Purge)).unwrap();
    assert!(write_set.writes.contains(&Write::RemoveUser(id(1))));
    assert!(rounds < 60, "{rounds} rounds");
}

#[test]
fn the_last_step_of_a_purge_removes_few_events_of_all_merged_users_together() {
    const MERGED: usize = 40;
    const LIMIT: usize = 100;
    let (mut histories, mut primary) = (Histories::default(), bare(id(1)));
    primary.internals.merged = (0..MERGED).map(other_id).collect();
    histories.add_user(primary);
    for merged in (0..MERGED).map(other_id) {
        let mut record = bare(merged);
        record.user.state = State::Merged { into: id(1) };
        histories.add_user(record);
        (0..70).for_each(|_| histories.add_event(merged, None));
    }
    let limits = Limits { purge_events: LIMIT, ..Limits::default() };
    let mut purge = Mutation { limits, ..mutation(UserChange::Purge) };
    for step in 0..200 {
        let before: usize = histories.events.values().map(Vec::len).sum();
        let (write_set, _) = histories.decide(&purge).unwrap();
        histories.apply(&write_set);
        let after: usize = histories.events.values().map(Vec::len).sum();
        assert!(before - after <= LIMIT, "step {step} removes {} events", before - after);
        match &write_set.report {
            MutationReport::PurgeBegun(progress) => purge.purge = Some(progress.clone()),
            report => {
                assert!(
                    matches!(report, MutationReport::Purged(users) if users.len() == 1 + MERGED)
                );
                assert!(after <= LIMIT, "the last step removes {after} events");
                return;
            }
        }
    }
    panic!("the purge does not end");
}
