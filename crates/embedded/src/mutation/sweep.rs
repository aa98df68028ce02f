//! Removal of expired records: requests, holds, events and notices.

use redb::ReadableTable;

use crate::error::Fault;
use crate::mutation::transaction::Tables;
use crate::schema::claim::decode_claim;
use polynym_directory::{Mutation, Timestamp};

impl Tables<'_> {
    /// Removes a few expired records of each kind for each mutation: removal keeps up, and never
    /// takes long. Removes nothing while the time is uncertain.
    pub fn sweep(&mut self, mutations: &[Mutation]) -> Result<(), Fault> {
        let certain = mutations.iter().filter(|mutation| !mutation.now.clock_uncertain);
        let Some(now) = certain.map(|mutation| mutation.now.time).max() else { return Ok(()) };
        for _ in 0..mutations.len() * 2 {
            let event = self.journal.sweep(now)?;
            let notice = self.inboxes.sweep(now)?;
            let request = self.requests.sweep(now)?;
            if !self.sweep_hold(now)? && !request && !event && !notice {
                break;
            }
        }
        Ok(())
    }

    /// Removes the hold that ends first if it has ended. Returns whether it had. A claim that is no
    /// longer held, or held for longer, stays.
    fn sweep_hold(&mut self, now: Timestamp) -> Result<bool, Fault> {
        let first = self.hold_times.first()?.map(|(entry, _)| {
            let (end, key) = entry.value();
            (Timestamp::from_millis(end), key.to_owned())
        });
        let Some((end, key)) = first.filter(|(end, _)| *end <= now) else { return Ok(false) };
        self.hold_times.remove((end.as_millis(), key.as_slice()))?;
        let claim = self.identities.get(key.as_slice())?.map(|claim| decode_claim(claim.value()));
        if claim.transpose()?.is_some_and(|claim| claim.hold == Some(end)) {
            self.identities.remove(key.as_slice())?;
        }
        Ok(true)
    }
}
