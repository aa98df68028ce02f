//! The events after a position of the feed that need not be sent again.

use std::collections::HashMap;

use locality_uuid::LocalityId;

/// By user, the first and the last number of events that were taken, or are not for the receiver.
#[derive(Default)]
pub struct Sent(HashMap<LocalityId, (u64, u64)>);

impl Sent {
    /// Whether an event need not be sent again.
    pub fn has(&self, user: LocalityId, sequence: u64) -> bool {
        self.0.get(&user).is_some_and(|(first, last)| (*first..=*last).contains(&sequence))
    }

    /// Adds events of a user. Those that it had stay if nothing is between them: an event that
    /// nobody sent is never among these, at the price of some that are sent twice.
    pub fn add(&mut self, user: LocalityId, (first, last): (u64, u64)) {
        let added = self.0.entry(user).or_insert((first, last));
        let touches = first <= added.1.saturating_add(1) && added.0 <= last.saturating_add(1);
        *added = match touches {
            true => (first.min(added.0), last.max(added.1)),
            false => (first, last),
        };
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_events_that_were_sent_again_hide_no_earlier_ones() {
        let (mut sent, user) = (Sent::default(), LocalityId::from([1; 16]));
        let has = |sent: &Sent, numbers: [u64; 4]| numbers.map(|number| sent.has(user, number));
        sent.add(user, (90, 100));
        assert_eq!(has(&sent, [51, 89, 90, 100]), [false, false, true, true]);
        sent.add(user, (51, 60));
        assert_eq!(has(&sent, [51, 60, 61, 90]), [true, true, false, false]);
        sent.add(user, (61, 100));
        assert_eq!(has(&sent, [50, 51, 100, 101]), [false, true, true, false]);
        sent.add(user, (50, 70));
        assert_eq!(has(&sent, [49, 50, 100, 101]), [false, true, true, false]);
        assert!(!sent.has(LocalityId::from([2; 16]), 60));
        sent.clear();
        assert!(!sent.has(user, 60));
    }
}
