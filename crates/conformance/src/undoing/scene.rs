//! A random history: its store, its users, and what the model knows of them.

use std::sync::Arc;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Backend, BulkPart, Clock, Directory, Limits, Record, StoreClock, Tenant, Timestamp, UserChange,
};

use super::model::{Entry, Histories, Users, Visible};
use crate::fixture::Fixture;
use crate::fixture::factory::Failure;
use crate::fixture::random::Random;

/// Counts of the changes and undoings in histories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Changes that had an effect.
    pub changes: u64,
    /// Operations that were undone.
    pub undone: u64,
    /// Users that became what they were before.
    pub reverted: u64,
    /// Users that stayed as they were, with a reason.
    pub kept: u64,
    /// Users that were deleted, because an operation had created them.
    pub deleted: u64,
    /// Operations that were undone by a bulk change.
    pub by_bulk: u64,
    /// Users that nothing blocked any more once what was named was undone.
    pub unblocked: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.changes += other.changes;
        self.undone += other.undone;
        self.reverted += other.reverted;
        self.kept += other.kept;
        self.deleted += other.deleted;
        self.by_bulk += other.by_bulk;
        self.unblocked += other.unblocked;
    }

    pub(super) const fn is_wild(&self) -> bool {
        self.changes > 20
            && self.reverted > 4
            && self.kept > 4
            && self.deleted > 0
            && self.by_bulk > 4
            && self.unblocked > 0
    }
}

/// A clock of the store that always agrees with the machine's.
struct Agreeing;

impl StoreClock for Agreeing {
    fn time(&self, wall: Timestamp) -> Option<Timestamp> {
        Some(wall)
    }
}

/// A random history in a tenant of its own.
pub struct History<'f> {
    pub f: &'f Fixture,
    pub directory: Arc<Directory>,
    clock: Clock,
    pub random: Random,
    pub tenant: Tenant,
    pub tenant_since: Timestamp,
    pub ids: Vec<LocalityId>,
    pub users: Users,
    pub histories: Histories,
    pub operations: Vec<String>,
    /// A stopped bulk change and what it does, by a server that has not heard of the stop.
    pub frozen: Option<(BulkPart, UserChange)>,
    pub tally: Tally,
}

impl<'f> History<'f> {
    pub fn new(f: &'f Fixture, seed: u64) -> Result<Self, Failure> {
        let clock = Clock::default();
        let backend = Backend { clock: Arc::new(Agreeing), ..f.store.clone() };
        let ids = Generator::new(Mode::Variable);
        // So few that the events are read more than once.
        let limits = Limits { undone_users: 1 + seed as usize % 3, ..Limits::default() };
        let directory = Directory::new(backend, ids, limits).with_clock(clock.clone());
        let timed = format!("timed-{}", timed_id(f.now(), seed));
        Ok(Self {
            f,
            directory: Arc::new(directory),
            clock,
            random: Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            tenant: Tenant::parse(&format!("undo-{seed}"))?,
            tenant_since: Timestamp::default(),
            ids: Vec::new(),
            users: Users::new(),
            histories: Histories::default(),
            operations: vec!["a".to_owned(), "b".to_owned(), timed],
            frozen: None,
            tally: Tally::default(),
        })
    }

    /// Reads the users, and adds their changes to their histories.
    pub async fn observe(&mut self, operation: &str, is_recorded: bool) -> Result<(), Failure> {
        let now = self.f.now();
        let users = self.read_users().await?;
        for (id, after) in &users {
            let before = self.users.get(id);
            let visible = |record: &Record| Visible::new(record, now);
            if before.map(visible) != Some(visible(after)) {
                let before = before.cloned();
                let operation = operation.to_owned();
                self.histories.add(*id, Entry { operation, before, is_recorded });
                self.tally.changes += 1;
            }
        }
        self.histories.retain(|id| users.contains_key(id));
        self.users = users;
        Ok(())
    }

    pub async fn read_users(&self) -> Result<Users, Failure> {
        let records = self.f.store.search.scan(&self.tenant, None, 1_000).await?;
        Ok(records.into_readable().map(|record| (record.id(), record)).collect())
    }

    /// Sets the clock of the directory to the time of the next mutation.
    pub fn set_clock(&self) {
        self.clock.set_ahead(self.f.now().as_millis() - Timestamp::now().as_millis());
    }
}

/// The text of a UUID with this time (version 7, RFC 9562).
fn timed_id(time: Timestamp, seed: u64) -> String {
    let millis = format!("{:012x}", time.as_millis());
    format!("{}-{}-7000-8000-{seed:012x}", &millis[..8], &millis[8..])
}
