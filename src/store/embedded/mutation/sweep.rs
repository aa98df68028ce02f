//! Removal of expired records: requests, holds, events and notices.

use redb::ReadableTable;

use super::error::Fault;
use super::schema::decode_claim;
use super::transaction::Tables;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::mutation::Mutation;

impl Tables<'_> {
    /// Forgets requests whose time is over, and claims whose hold is: a few for each mutation, so
    /// that forgetting keeps up and never takes long. Nothing is forgotten by a time that is in
    /// doubt.
    pub fn sweep(&mut self, mutations: &[Mutation]) -> Result<(), Fault> {
        let certain = mutations.iter().filter(|mutation| !mutation.in_doubt);
        let Some(now) = certain.map(|mutation| mutation.time.as_millis()).max() else {
            return Ok(());
        };

        for _ in 0..mutations.len() * 2 {
            let journal = self.forget_history(now)?;
            let request = self.forget_request(now)?;
            let notice = self.forget_notice(now)?;
            if !self.forget_hold(now)? && !request && !journal && !notice {
                break;
            }
        }
        Ok(())
    }

    /// Whether there was an event whose time is over.
    fn forget_history(&mut self, now: i64) -> Result<bool, Fault> {
        let Some(journal) = &mut self.journal else { return Ok(false) };
        journal.sweep(now)
    }

    /// Whether there was a notice whose time is over.
    fn forget_notice(&mut self, now: i64) -> Result<bool, Fault> {
        let Some(inboxes) = &mut self.inboxes else { return Ok(false) };
        inboxes.sweep(Timestamp::from_millis(now))
    }

    /// Whether there was a hold that is over. A claim that is held no longer, or for longer, stays.
    fn forget_hold(&mut self, now: i64) -> Result<bool, Fault> {
        let oldest = self.hold_times.first()?;
        let Some((until, key)) =
            oldest.map(|(entry, _)| (entry.value().0, entry.value().1.to_owned()))
        else {
            return Ok(false);
        };
        if until > now {
            return Ok(false);
        }

        self.hold_times.remove((until, key.as_slice()))?;
        let claim = self.identities.get(key.as_slice())?.map(|claim| decode_claim(claim.value()));
        if claim.transpose()?.is_some_and(|claim| claim.hold == Some(Timestamp::from_millis(until)))
        {
            self.identities.remove(key.as_slice())?;
        }

        Ok(true)
    }
}
