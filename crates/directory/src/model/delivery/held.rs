//! Events that a receiver has not taken: each holds up the later ones of its user alone.

use std::collections::BTreeMap;
use std::time::Duration;

use locality_uuid::LocalityId;

use crate::timestamp::Timestamp;

/// The users with held events. A delivery that would hold those of more is paused.
pub const MAX_HELD_USERS: usize = 1_000;
/// The time after the first attempt for which an event is sent again.
pub const RETRIED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// The held events of users. It has numbers alone: the events are read when they are sent, so that
/// a purge leaves nothing to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldUsers(BTreeMap<LocalityId, Held>);

/// Events of a user that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The number of the first one in the history of the user.
    pub first: u64,
    /// The number of the last one.
    pub last: u64,
    /// The attempts to send the first one.
    pub attempts: u32,
    /// The time of the first of these attempts; none before it.
    pub since: Option<Timestamp>,
    /// The time of the next attempt.
    pub next_time: Timestamp,
}

impl Held {
    /// Events that were not sent yet.
    pub const fn new(first: u64, last: u64, next_time: Timestamp) -> Self {
        Self { first, last, attempts: 0, since: None, next_time }
    }

    /// Notes an attempt to send the first event. Returns whether it was the last one.
    pub fn fail(&mut self, now: Timestamp, pause: Duration) -> bool {
        let since = *self.since.get_or_insert(now);
        self.attempts = self.attempts.saturating_add(1);
        self.next_time = now.plus(pause);
        now >= since.plus(RETRIED_FOR)
    }
}

impl HeldUsers {
    /// The number of users.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The users, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (LocalityId, &Held)> {
        self.0.iter().map(|(user, held)| (*user, held))
    }

    /// The events of a user.
    pub fn get(&self, user: LocalityId) -> Option<&Held> {
        self.0.get(&user)
    }

    /// Holds events of a user, beside those that it has held. Returns whether there is room.
    pub fn hold(&mut self, user: LocalityId, events: Held) -> bool {
        if let Some(held) = self.0.get_mut(&user) {
            if events.first < held.first {
                *held = Held { first: events.first, last: held.last, ..events.clone() };
            }
            held.last = held.last.max(events.last);
            return true;
        }
        let has_room = self.0.len() < MAX_HELD_USERS;
        if has_room {
            self.0.insert(user, events);
        }
        has_room
    }

    /// Holds an event of the feed, if its user has held ones. Returns whether it does. The event
    /// may be an earlier one: later ones are sent again, or the user is there again after a purge.
    pub fn hold_later(&mut self, user: LocalityId, sequence: u64) -> bool {
        let held = self.0.get_mut(&user);
        held.is_some_and(|held| {
            if sequence < held.first {
                *held = Held::new(sequence, held.last, held.next_time);
            }
            held.last = held.last.max(sequence);
            true
        })
    }

    /// Replaces the events of a user; none ends the wait.
    pub fn set(&mut self, user: LocalityId, held: Option<Held>) {
        match held {
            Some(held) => self.0.insert(user, held),
            None => self.0.remove(&user),
        };
    }

    /// Begins again: the time in which nothing was sent does not count, and all are sent now.
    pub fn restart(&mut self, now: Timestamp) {
        for held in self.0.values_mut() {
            *held = Held::new(held.first, held.last, held.next_time.min(now));
        }
    }

    /// Up to `limit` users whose time has come, those that have waited longest first.
    pub fn due(&self, now: Timestamp, limit: usize) -> Vec<(LocalityId, Held)> {
        let due = self.0.iter().filter(|(_, held)| held.next_time <= now);
        let mut due: Vec<_> = due.map(|(user, held)| (*user, held.clone())).collect();
        due.sort_by_key(|(user, held)| (held.next_time, *user));
        due.truncate(limit);
        due
    }

    /// The time when the next user is due.
    pub fn next_time(&self) -> Option<Timestamp> {
        self.0.values().map(|held| held.next_time).min()
    }
}

impl FromIterator<(LocalityId, Held)> for HeldUsers {
    fn from_iter<I: IntoIterator<Item = (LocalityId, Held)>>(users: I) -> Self {
        Self(users.into_iter().take(MAX_HELD_USERS).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(n: u16) -> LocalityId {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&n.to_be_bytes());
        LocalityId::from(bytes)
    }

    const fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn a_held_event_holds_up_the_later_ones_of_its_user() {
        let mut held = HeldUsers::default();
        assert!(held.hold(user(1), Held::new(3, 3, at(5))));
        assert!(held.hold_later(user(1), 4));
        assert!(!held.hold_later(user(2), 1));
        assert_eq!(held.get(user(1)), Some(&Held::new(3, 4, at(5))));
        assert!(held.hold_later(user(1), 2));
        assert_eq!(held.get(user(1)), Some(&Held::new(2, 4, at(5))));
        assert_eq!((held.due(at(4), 10).len(), held.due(at(5), 10).len()), (0, 1));
        held.set(user(1), None);
        assert!(held.is_empty() && held.next_time().is_none());
    }

    #[test]
    fn events_that_are_sent_again_join_those_that_wait() {
        let mut held = HeldUsers::default();
        let mut waiting = Held::new(5, 9, at(100));
        assert!(!waiting.fail(at(50), Duration::from_secs(50)));
        held.hold(user(1), waiting.clone());
        held.hold(user(1), Held::new(7, 12, at(0)));
        assert_eq!(held.get(user(1)), Some(&Held { last: 12, ..waiting }));
        held.hold(user(1), Held::new(2, 3, at(0)));
        assert_eq!(held.get(user(1)), Some(&Held::new(2, 12, at(0))));
    }

    #[test]
    fn users_are_bounded_and_take_turns_by_time() {
        let mut held = HeldUsers::default();
        for n in 0..MAX_HELD_USERS as u16 {
            assert!(held.hold(user(n), Held::new(1, 1, at(2_000 - i64::from(n)))));
        }
        assert!(!held.hold(user(u16::MAX), Held::new(1, 1, at(0))));
        assert!(held.hold(user(1), Held::new(1, 2, at(0))) && held.len() == MAX_HELD_USERS);
        let due = held.due(at(5_000), 2);
        assert_eq!([due[0].0, due[1].0], [user(999), user(998)]);
        assert_eq!(held.next_time(), Some(at(1_001)));
    }

    #[test]
    fn an_event_is_sent_for_a_day() {
        let mut held = Held::new(1, 1, at(0));
        let pause = Duration::from_secs(10);
        assert!(!held.fail(at(100), pause));
        assert!(!held.fail(at(100 + 86_399), pause));
        assert!(held.fail(at(100 + 86_400), pause));
        assert_eq!((held.attempts, held.next_time), (3, at(100 + 86_410)));
        // A pause does not count.
        let mut users: HeldUsers = [(user(1), held)].into_iter().collect();
        users.restart(at(200_000));
        let mut held = users.get(user(1)).unwrap().clone();
        assert_eq!(held, Held::new(1, 1, at(100 + 86_410)));
        assert!(!held.fail(at(200_000), pause));
    }
}
