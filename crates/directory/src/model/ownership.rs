//! Ended ownerships: the former owners of an identifier, each with its period.

use locality_uuid::LocalityId;

use super::user::Identity;
use crate::timestamp::Timestamp;

/// A period in which a user owned an identifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Ownership {
    /// The user; `None` once it is purged.
    pub user: Option<LocalityId>,
    /// The link time of the identity. If another user owned the identifier later, as before a
    /// merge, the ownership began when the other's ended.
    pub begin: Timestamp,
    /// The time when it ended.
    pub end: Timestamp,
    /// The identity at the end; `None` once the user is purged.
    pub identity: Option<Identity>,
}

/// The ownerships of one identifier that have ended, in the order of their ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndedOwnerships(pub Vec<Ownership>);

/// The owner of an identifier at a given time.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnerAt<'o> {
    /// The present owner, unless it linked the identifier after that time.
    Present,
    /// A former owner.
    Past(&'o Ownership),
    /// No user, or a purged one.
    Nobody,
    /// The owner at that time is no longer known.
    Forgotten {
        /// The earliest time at which the owner is known.
        earliest: Timestamp,
    },
}

impl EndedOwnerships {
    /// The maximum number of ownerships kept for one identifier. The oldest are dropped.
    pub const MAX: usize = 32;

    /// Adds the ownership that ended last.
    pub fn push(&mut self, ended: Ownership) {
        self.0.push(ended);
        let surplus = self.0.len().saturating_sub(Self::MAX);
        self.0.drain(..surplus);
    }

    /// Forgets a user.
    pub fn forget(&mut self, user: LocalityId) {
        for ownership in self.0.iter_mut().filter(|ownership| ownership.user == Some(user)) {
            (ownership.user, ownership.identity) = (None, None);
        }
    }

    /// Whether users are left. Without them a store keeps nothing: nobody owned the identifier.
    pub fn has_users(&self) -> bool {
        self.0.iter().any(|ownership| ownership.user.is_some())
    }

    /// The owner at `time`. If two ownerships overlap, as under clock skew, the earlier one counts.
    pub fn at(&self, time: Timestamp) -> OwnerAt<'_> {
        let Some(n) = self.0.iter().position(|ownership| time < ownership.end) else {
            return OwnerAt::Present;
        };
        let one = &self.0[n];
        if n == 0 && self.0.len() == Self::MAX && time < one.begin {
            return OwnerAt::Forgotten { earliest: one.begin };
        }
        let import_time = one.identity.as_ref().and_then(|identity| identity.import_time);
        if let Some(earliest) = import_time.filter(|imported| time < *imported) {
            return OwnerAt::Forgotten { earliest };
        }
        match one.user {
            Some(_) if one.begin <= time => OwnerAt::Past(one),
            _ => OwnerAt::Nobody,
        }
    }
}

/// The loss of an unverified identity to another user, who verified it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// The user who has the identity now.
    pub winner: LocalityId,
    /// The user who had it before.
    pub loser: LocalityId,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(user: u8, begin: i64, end: i64) -> Ownership {
        let user = Some(LocalityId::from([user; 16]));
        let [begin, end] = [begin, end].map(Timestamp::from_millis);
        Ownership { user, begin, end, identity: None }
    }

    fn owner(ended: &EndedOwnerships, time: i64) -> Option<u8> {
        match ended.at(Timestamp::from_millis(time)) {
            OwnerAt::Past(one) => one.user.map(|id| id.as_bytes()[0]),
            OwnerAt::Present => Some(0),
            _ => None,
        }
    }

    #[test]
    fn the_earlier_of_overlapping_owners_counts() {
        // The second got it by a merge, with the link time of the first.
        let mut ended = EndedOwnerships(vec![owned(1, 10, 20), owned(2, 10, 30), owned(3, 40, 50)]);
        let owners: Vec<_> = [9, 10, 19, 20, 29, 30, 39, 40, 49, 50]
            .into_iter()
            .map(|time| owner(&ended, time))
            .collect();
        let [one, two, three, present] = [1, 2, 3, 0].map(Some);
        assert_eq!(owners, [None, one, one, two, two, None, None, three, three, present]);

        ended.forget(LocalityId::from([2; 16]));
        assert!(ended.has_users());
        assert_eq!([owner(&ended, 19), owner(&ended, 20), owner(&ended, 29)], [one, None, None]);
    }

    #[test]
    fn the_oldest_are_dropped() {
        let mut ended = EndedOwnerships::default();
        for n in 0..40 {
            ended.push(owned(1, n * 10, n * 10 + 5));
        }
        assert_eq!(ended.0.len(), EndedOwnerships::MAX);
        let earliest = Timestamp::from_millis(80);
        assert_eq!(ended.at(Timestamp::from_millis(7)), OwnerAt::Forgotten { earliest });
        assert_eq!(owner(&ended, 80), Some(1));
        assert_eq!(owner(&ended, 85), None);
    }
}
