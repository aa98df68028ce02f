//! What a delivery remembers of its attempts. It has ids alone, so that a purge leaves no values.

use std::collections::VecDeque;
use std::time::Duration;

use locality_uuid::LocalityId;

use crate::timestamp::Timestamp;

/// The attempts that a delivery remembers.
pub const MAX_ATTEMPTS: usize = 100;
/// The dead letters that a delivery remembers.
pub const MAX_DEAD_LETTERS: usize = 1_000;

/// An attempt to send an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The user of the event.
    pub user: LocalityId,
    /// The number of the event in the history of the user.
    pub sequence: u64,
    /// The time of the attempt.
    pub time: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// The result: the status of the reply, or why there was none.
    pub result: String,
}

/// An event that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The user of the event.
    pub user: LocalityId,
    /// The number of the event in the history of the user.
    pub sequence: u64,
    /// The time when it was given up.
    pub time: Timestamp,
    /// The result of the last attempt.
    pub result: String,
}

/// Numbers since the delivery was created, the last attempts, and the dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryLog {
    /// The number of events that the receiver has taken.
    pub delivered: u64,
    /// The number of attempts that failed.
    pub failed: u64,
    /// The number of dead letters.
    pub dead: u64,
    /// The time of the last event that the receiver has taken.
    pub last_delivered: Option<Timestamp>,
    /// The last attempts, the oldest first.
    pub attempts: VecDeque<Attempt>,
    /// The last dead letters, the oldest first.
    pub dead_letters: VecDeque<DeadLetter>,
}

impl DeliveryLog {
    /// Adds an attempt.
    pub fn add(&mut self, attempt: Attempt, is_delivered: bool) {
        if is_delivered {
            self.delivered += 1;
            self.last_delivered = Some(attempt.time);
        } else {
            self.failed += 1;
        }
        push(&mut self.attempts, attempt, MAX_ATTEMPTS);
    }

    /// Adds a dead letter.
    pub fn bury(&mut self, letter: DeadLetter) {
        self.dead += 1;
        push(&mut self.dead_letters, letter, MAX_DEAD_LETTERS);
    }
}

fn push<T>(list: &mut VecDeque<T>, item: T, limit: usize) {
    if list.len() >= limit {
        list.pop_front();
    }
    list.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_bounded_and_the_numbers_are_not() {
        let (mut log, user) = (DeliveryLog::default(), LocalityId::from([1; 16]));
        for n in 0..3_000 {
            let (time, result) = (Timestamp::from_millis(n), "500".to_owned());
            let attempt = Attempt {
                user,
                sequence: n as u64,
                time,
                took: Duration::ZERO,
                result: result.clone(),
            };
            log.add(attempt, n % 2 == 0);
            log.bury(DeadLetter { user, sequence: n as u64, time, result });
        }
        assert_eq!((log.delivered, log.failed, log.dead), (1_500, 1_500, 3_000));
        assert_eq!(log.last_delivered, Some(Timestamp::from_millis(2_998)));
        assert_eq!((log.attempts.len(), log.dead_letters.len()), (MAX_ATTEMPTS, MAX_DEAD_LETTERS));
        assert_eq!(log.attempts.back().map(|attempt| attempt.sequence), Some(2_999));
    }
}
