//! The users of an operation, by the events of their tenant: those of other users are not looked
//! into, however many there are.

use std::collections::BTreeSet;

use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::event::{Event, Origin};
use crate::model::tenant::Tenant;
use crate::service::scan_pace::Pace;
use crate::stores::{EventPosition, Histories, LIST_BYTES, PageLimit};
use crate::timestamp::Timestamp;

/// The most events in one read.
const READ_BATCH: usize = 256;
/// The reads of one step.
const READS_PER_STEP: usize = 8;

/// The users who have events of an operation, each once and in the order of their ids.
///
/// Events come by time. So they are read once, and the ids are kept. If there are more users than
/// may be kept, those with the greatest ids are left for another round of reading.
pub struct OperationUsers {
    tenant: Tenant,
    operation_id: String,
    since: Timestamp,
    /// Users who are returned whether they have events or not.
    others: Vec<LocalityId>,
    max_kept: usize,
    round: Round,
    /// Users up to this one were returned.
    after: Option<LocalityId>,
    is_at_end: bool,
}

/// A round of reading all events.
#[derive(Default)]
struct Round {
    users: BTreeSet<LocalityId>,
    /// Whether users with greater ids were left out.
    is_partial: bool,
    position: Option<EventPosition>,
    is_read: bool,
}

impl OperationUsers {
    /// The users of an operation of `tenant` that has no events before `since`, and `others`. At
    /// most `max_kept` ids are in memory.
    pub fn new(
        tenant: &Tenant,
        operation_id: &str,
        since: Option<Timestamp>,
        others: Vec<LocalityId>,
        max_kept: usize,
    ) -> Self {
        let mut users = Self {
            tenant: tenant.clone(),
            operation_id: operation_id.to_owned(),
            since: since.unwrap_or(Timestamp::MIN),
            others,
            max_kept: max_kept.max(1),
            round: Round::default(),
            after: None,
            is_at_end: false,
        };
        users.begin_round();
        users
    }

    /// Those with greater ids than this user.
    #[must_use]
    pub fn after(mut self, user: Option<LocalityId>) -> Self {
        self.after = user;
        self.begin_round();
        self
    }

    /// Whether all were returned.
    pub const fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Up to `limit` further users; none as long as events have to be read first.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    pub async fn next(
        &mut self,
        histories: &dyn Histories,
        limit: usize,
    ) -> Result<Vec<LocalityId>, Error> {
        let mut pace = Pace::default();
        for _ in 0..READS_PER_STEP {
            if self.round.is_read {
                break;
            }
            pace.rest().await;
            self.read(histories).await?;
        }
        match self.round.is_read {
            true => Ok(self.take(limit)),
            false => Ok(Vec::new()),
        }
    }

    /// Reads the next events.
    async fn read(&mut self, histories: &dyn Histories) -> Result<(), Error> {
        let times = self.since..Timestamp::MAX;
        let limit = PageLimit::new(READ_BATCH, LIST_BYTES);
        let part = histories.newest_events(&self.tenant, times, self.round.position, limit).await?;
        for (_, event) in &part.events {
            if self.is_own(event) {
                self.add(event.user);
            }
        }
        // They may be of the operation: the undoing tells that they cannot be read.
        for user in part.unreadable {
            self.add(user);
        }
        self.round.is_read = part.next.is_none();
        self.round.position = part.next;
        Ok(())
    }

    fn is_own(&self, event: &Event) -> bool {
        event.origin.operation_id == self.operation_id && event.origin.method != Origin::UNDO
    }

    fn add(&mut self, user: LocalityId) {
        if self.after.is_some_and(|after| user <= after) {
            return;
        }
        self.round.users.insert(user);
        if self.round.users.len() > self.max_kept {
            self.round.users.pop_last();
            self.round.is_partial = true;
        }
    }

    /// Takes the first users of the round.
    fn take(&mut self, limit: usize) -> Vec<LocalityId> {
        let users = &mut self.round.users;
        let taken = Vec::from_iter(std::iter::from_fn(|| users.pop_first()).take(limit));
        self.after = taken.last().copied().or(self.after);
        if self.round.users.is_empty() {
            match self.round.is_partial {
                true => self.begin_round(),
                false => self.is_at_end = true,
            }
        }
        taken
    }

    fn begin_round(&mut self) {
        self.round = Round::default();
        for user in self.others.clone() {
            self.add(user);
        }
    }
}
