//! The one thread that writes. It applies all waiting mutations in one transaction, syncs once, and
//! answers: a longer queue makes larger groups. After a failed write the store is degraded: it
//! rejects mutations until a write succeeds again.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use redb::WriteTransaction;
use tokio::sync::oneshot;

use crate::error::{DegradedReason, DegradedState, Fault, chain};
use crate::file::lock::FileId;
use crate::file::opener::{Open, Opener};
use crate::job::{Answer, Job, SideWrite};
use crate::last_seen::{self, LastSeen};
use crate::lookup::export::ExportSnapshots;
use crate::lookup::snapshot::{Caches, Published};
use crate::measure::group_size;
use crate::mutation::degraded::Degraded;
use crate::mutation::transaction::Tables;
use crate::recent_events::{EventChanges, RecentEvents};
use polynym_directory::{Error, LogPause, Mutation};

/// The most writes beside mutations of one commit: mutations wait for it.
const MAX_SIDE_WRITES: usize = 16;

/// The pause between two lines of the log about expired records: each commit tries again.
static SWEEP_LOG: LogPause = LogPause::new(Duration::from_secs(60));

/// The channels to the callers of mutations, in the order of the mutations.
type Callers = Vec<oneshot::Sender<Answer>>;

/// The state that the writer shares with the callers of the store.
pub struct Shared {
    pub published: Arc<Published>,
    pub degraded: Arc<DegradedState>,
    pub last_seen: Arc<LastSeen>,
    pub caches: Caches,
    /// Notified of each commit once it can be read.
    pub recent: Arc<RecentEvents>,
    pub exports: Arc<ExportSnapshots>,
}

pub struct Writer {
    pub(super) opener: Opener,
    pub(super) shared: Shared,
    /// The most mutations of one commit.
    group_limit: usize,
    /// The database that serves reads, and mutations unless the store is degraded.
    pub(super) open: Option<Open>,
    pub(super) degraded: Option<Degraded>,
    /// The time when the file was last opened.
    pub(super) opened: Instant,
    /// The damaged file, which is not opened again.
    pub(super) damaged: Option<FileId>,
}

impl Writer {
    pub fn new(opener: Opener, open: Open, shared: Shared, group_limit: usize) -> Self {
        Self {
            opener,
            shared,
            group_limit: group_limit.max(1),
            open: Some(open),
            degraded: None,
            opened: Instant::now(),
            damaged: None,
        }
    }

    /// Processes jobs until every sender of `jobs` is dropped.
    pub fn run(mut self, jobs: &Receiver<Job>) {
        self.watch_file();
        loop {
            let job = match &self.degraded {
                None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(degraded) => jobs.recv_timeout(degraded.until_retry()),
            };
            match job {
                Ok(job) => self.process(job, jobs),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.write_time();
                    return self.shared.published.store(None);
                }
            }
            if self.degraded.as_ref().is_some_and(|degraded| degraded.until_retry().is_zero()) {
                self.recover();
            }
        }
    }

    /// Processes a job and those that already wait, up to the limit of mutations.
    fn process(&mut self, first: Job, jobs: &Receiver<Job>) {
        let mut mutations = Vec::new();
        let mut callers: Callers = Vec::new();
        // Held until the mutations are answered.
        let mut permits = Vec::new();
        let (mut checks, mut writes_time, mut side_writes) = (Vec::new(), false, Vec::new());
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Mutate(waiting) => {
                    // Drops mutations whose callers have left.
                    for queued in waiting.into_iter().filter(|queued| !queued.answer.is_closed()) {
                        mutations.push(queued.mutation);
                        callers.push(queued.answer);
                        permits.push(queued.permit);
                    }
                }
                Job::Check(answer) => checks.push(answer),
                Job::KeepTime => writes_time = true,
                Job::SideWrite(write, answer) => side_writes.push((write, answer)),
                Job::Unreadable(reason, cause) => self.read_failed(reason, &cause),
                #[cfg(test)]
                Job::Panic => panic!("as asked"),
            }
            let is_full =
                mutations.len() >= self.group_limit || side_writes.len() >= MAX_SIDE_WRITES;
            next = if is_full { None } else { jobs.try_recv().ok() };
        }

        self.check_file();
        if !checks.is_empty() {
            self.watch_file();
        }
        for check in checks {
            let reason = self.degraded_reason();
            let _ = check.send(reason.map_or(Ok(()), |reason| Err(Fault::Degraded(reason))));
        }

        if writes_time {
            self.write_time();
        }
        if !mutations.is_empty() {
            self.mutate(&mutations, callers);
        }
        if !side_writes.is_empty() {
            self.write_side(side_writes);
        }
    }

    /// The database that accepts writes.
    fn writable(&self) -> Option<&Open> {
        self.open.as_ref().filter(|_| self.degraded.is_none())
    }

    /// Writes the last time seen, unless it is uncertain.
    fn write_time(&mut self) {
        let Some(open) = self.writable() else { return };
        let Some(time) = self.shared.last_seen.to_write(Instant::now()) else { return };
        let outcome = write(open, |transaction| last_seen::write(transaction, time));
        if let Err(fault) = outcome {
            self.enter_degraded(fault.degraded_by_commit(), &chain(&fault));
        }
    }

    /// Commits side writes in one transaction, and answers their callers.
    fn write_side(&mut self, side_writes: Vec<(SideWrite, oneshot::Sender<Result<(), Error>>)>) {
        let (writes, answers): (Vec<_>, Vec<_>) = side_writes.into_iter().unzip();
        let outcome = self.commit_side(writes);
        for answer in answers {
            let _ = answer.send(outcome.as_ref().copied().map_err(|make_error| make_error()));
        }
    }

    /// Commits side writes. On failure returns a function that makes the error of each caller.
    fn commit_side(&mut self, writes: Vec<SideWrite>) -> Result<(), Box<dyn Fn() -> Error>> {
        let Some(open) = self.writable() else {
            let reason = self.degraded_reason();
            return Err(Box::new(move || reason.map_or(Fault::Closed, Fault::Degraded).into()));
        };
        let outcome = write(open, |transaction| {
            writes.into_iter().try_for_each(|side_write| side_write(transaction))
        });
        match outcome {
            Ok(()) => {
                self.publish(EventChanges { rewrites: true, ..EventChanges::default() });
                Ok(())
            }
            // One unreadable record does not degrade the store, and nothing was written.
            Err(Fault::Damaged(cause)) => {
                tracing::error!(cause = chain(&*cause), "a write failed");
                Err(Box::new(|| Fault::damaged("a record of this write or of its group").into()))
            }
            Err(fault) => {
                let reason = fault.degraded_by_commit();
                self.enter_degraded(reason, &chain(&fault));
                Err(Box::new(move || Error::OutcomeUnknown(Fault::Degraded(reason).into())))
            }
        }
    }

    /// Degrades the store if its file is gone: the next program to open the path must find every
    /// acknowledged mutation.
    fn check_file(&mut self) {
        let is_gone = self.open.as_ref().is_some_and(|open| !self.opener.is_in_place(open));
        if is_gone && self.degraded.is_none() {
            self.enter_degraded(
                DegradedReason::Gone,
                "another program moved, replaced or deleted it",
            );
        }
    }

    fn degraded_reason(&self) -> Option<DegradedReason> {
        self.shared.degraded.load().as_deref().copied()
    }

    fn mutate(&mut self, mutations: &[Mutation], callers: Callers) {
        let Some(open) = self.writable() else { return self.reject(callers) };
        group_size(mutations.len());
        let gate = open.gate.clone();
        let before = gate.primary_slot().ok();
        let mut outcomes = Vec::with_capacity(mutations.len());
        let fault = match self.commit(open, mutations, &mut outcomes) {
            Ok(changes) => {
                self.publish(changes);
                return answer(callers, outcomes);
            }
            Err(fault) => fault,
        };

        let reason = fault.degraded_by_commit();
        self.enter_degraded(reason, &chain(&fault));
        let after = gate.primary_slot().ok();
        // Each commit switches the slot.
        let is_written = before.zip(after).map(|(before, after)| before != after);
        match is_written {
            Some(false) => self.reject(callers),
            // The commit is in the file, but perhaps not durable: reopening rewrites the header and
            // syncs.
            Some(true) if reason == DegradedReason::Unwritable && self.reopen().is_ok() => {
                answer(callers, outcomes)
            }
            _ => fail_all(callers, || Error::OutcomeUnknown(Fault::Degraded(reason).into())),
        }
    }

    /// Commits mutations, and checks that other programs still find the file.
    pub(super) fn commit(
        &self,
        open: &Open,
        mutations: &[Mutation],
        outcomes: &mut Vec<Answer>,
    ) -> Result<EventChanges, Fault> {
        let attempt = AssertUnwindSafe(|| commit(open, &self.shared.caches, mutations, outcomes));
        let changes = catch_unwind(attempt).unwrap_or(Err(Fault::Panicked))?;
        if self.opener.is_in_place(open) {
            Ok(changes)
        } else {
            Err(Fault::Degraded(DegradedReason::Gone))
        }
    }

    fn reject(&mut self, callers: Callers) {
        if let Some(degraded) = &mut self.degraded {
            degraded.count_rejected(callers.len());
        }
        let reason = self.degraded_reason();
        fail_all(callers, || reason.map_or(Fault::Closed, Fault::Degraded).into());
    }
}

/// Commits a write other than a mutation.
fn write(
    open: &Open,
    apply: impl FnOnce(&WriteTransaction) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let attempt = AssertUnwindSafe(|| {
        let mut transaction = open.database.begin_write()?;
        transaction.set_quick_repair(true);
        apply(&transaction)?;
        open.commit(transaction)
    });
    catch_unwind(attempt).unwrap_or(Err(Fault::Panicked))
}

/// The mutations of a group whose writes met a damaged record, by their positions.
type DamagedWrites = BTreeMap<usize, Arc<Fault>>;

/// Commits a group of mutations. A mutation whose writes meet a damaged record may have written a
/// part of itself: nothing of that transaction is committed, and the others are applied again
/// without it.
fn commit(
    open: &Open,
    caches: &Caches,
    mutations: &[Mutation],
    outcomes: &mut Vec<Answer>,
) -> Result<EventChanges, Fault> {
    let mut damaged = DamagedWrites::new();
    loop {
        match attempt(open, caches, mutations, &damaged, outcomes)? {
            Ok(changes) => return Ok(changes),
            Err((n, fault)) => drop(damaged.insert(n, Arc::new(fault))),
        }
    }
}

/// Commits the mutations that are not `damaged`. If the writes of another meet a damaged record,
/// commits nothing, and returns its position and the fault as the inner error.
fn attempt(
    open: &Open,
    caches: &Caches,
    mutations: &[Mutation],
    damaged: &DamagedWrites,
    outcomes: &mut Vec<Answer>,
) -> Result<Result<EventChanges, (usize, Fault)>, Fault> {
    outcomes.clear();
    let mut transaction = open.database.begin_write()?;
    transaction.set_quick_repair(true);
    let mut tables = Tables::open(&transaction, caches)?;
    for (n, mutation) in mutations.iter().enumerate() {
        let outcome = match damaged.get(&n) {
            Some(fault) => Err(Error::Internal(fault.clone().into())),
            None => match tables.mutate(mutation) {
                Err(fault @ Fault::Damaged(_)) => return Ok(Err((n, fault))),
                outcome => outcome?,
            },
        };
        outcomes.push(outcome);
    }

    match tables.sweep(mutations) {
        Err(fault @ Fault::Damaged(_)) if SWEEP_LOG.is_over() => {
            tracing::error!(cause = chain(&fault), "expired records cannot be removed")
        }
        Err(Fault::Damaged(_)) => {}
        outcome => outcome?,
    }
    let (names, changes) = tables.finish()?;
    open.commit(transaction)?;
    caches.names.learn_all(names);
    Ok(Ok(changes))
}

/// Answers the callers. Mutations whose callers have left are committed too.
fn answer(callers: Callers, outcomes: Vec<Answer>) {
    for (caller, outcome) in callers.into_iter().zip(outcomes) {
        let _ = caller.send(outcome);
    }
}

fn fail_all(callers: Callers, make_error: impl Fn() -> Error) {
    let outcomes = callers.iter().map(|_| Err(make_error())).collect();
    answer(callers, outcomes);
}
