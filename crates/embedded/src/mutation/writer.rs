//! The one thread that writes. It applies all waiting mutations in one transaction, syncs once, and
//! answers: a longer queue makes larger groups. After a failed write the store is degraded: it
//! rejects mutations until a write succeeds again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use redb::WriteTransaction;
use tokio::sync::{oneshot, watch};

use crate::error::{DegradedReason, DegradedState, Fault, chain};
use crate::file::lock::FileId;
use crate::file::opener::{Open, Opener};
use crate::job::{Answer, Job, SideWrite};
use crate::last_seen::{self, LastSeen};
use crate::lookup::snapshot::{Caches, Published};
use crate::measure::group_size;
use crate::mutation::degraded::Degraded;
use crate::mutation::transaction::Tables;
use polynym_directory::error::Error;
use polynym_directory::mutation::Mutation;

type Answers = Vec<oneshot::Sender<Answer>>;

/// The state that the writer shares with the callers of the store.
pub struct Shared {
    pub published: Arc<Published>,
    pub degraded: Arc<DegradedState>,
    pub last_seen: Arc<LastSeen>,
    pub caches: Caches,
    /// Notified of each commit once it can be read.
    pub committed: watch::Sender<()>,
}

pub struct Writer {
    pub(super) opener: Opener,
    pub(super) shared: Shared,
    /// Mutations that may share one sync.
    group_limit: usize,
    /// The database that serves reads, and mutations unless the store is degraded.
    pub(super) open: Option<Open>,
    pub(super) degraded: Option<Degraded>,
    /// When the file was last opened.
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

    /// Works until every sender of `jobs` is gone.
    pub fn run(mut self, jobs: &Receiver<Job>) {
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

    /// Does a job, and the jobs that wait already.
    fn process(&mut self, first: Job, jobs: &Receiver<Job>) {
        let mut mutations = Vec::new();
        let mut answers: Answers = Vec::new();
        // Held until the mutations are answered.
        let mut permits = Vec::new();
        let (mut checks, mut writes_time, mut side_writes) = (Vec::new(), false, Vec::new());
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Mutate(waiting) => {
                    // Drops mutations whose callers have left.
                    for one in waiting.into_iter().filter(|one| !one.answer.is_closed()) {
                        mutations.push(one.mutation);
                        answers.push(one.answer);
                        permits.push(one.permit);
                    }
                }
                Job::Check(answer) => checks.push(answer),
                Job::KeepTime => writes_time = true,
                Job::SideWrite(write, answer) => side_writes.push((write, answer)),
                Job::Unreadable(reason, cause) => self.read_failed(reason, &cause),
                #[cfg(test)]
                Job::Panic => panic!("as asked"),
            }
            next = if mutations.len() < self.group_limit { jobs.try_recv().ok() } else { None };
        }

        self.check_file();
        for check in checks {
            let reason = self.degraded_reason();
            let _ = check.send(reason.map_or(Ok(()), |reason| Err(Fault::Degraded(reason))));
        }

        if writes_time {
            self.write_time();
        }
        if !mutations.is_empty() {
            self.mutate(&mutations, answers);
        }
        if !side_writes.is_empty() {
            self.write_beside(side_writes);
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
        let written = write(open, |transaction| last_seen::write(transaction, time));
        if let Err(fault) = written {
            self.enter_degraded(fault.degraded_by_commit(), &chain(&fault));
        }
    }

    /// Applies writes beside the mutations in one transaction.
    fn write_beside(&mut self, side_writes: Vec<(SideWrite, oneshot::Sender<Result<(), Error>>)>) {
        let (writes, answers): (Vec<_>, Vec<_>) = side_writes.into_iter().unzip();
        let written = self.commit_beside(writes);
        for answer in answers {
            let _ = answer.send(written.as_ref().copied().map_err(|error| error()));
        }
    }

    fn commit_beside(&mut self, writes: Vec<SideWrite>) -> Result<(), Box<dyn Fn() -> Error>> {
        let Some(open) = self.writable() else {
            let reason = self.degraded_reason();
            return Err(Box::new(move || reason.map_or(Fault::Closed, Fault::Degraded).into()));
        };
        let all = |transaction: &WriteTransaction| {
            writes.into_iter().try_for_each(|write| write(transaction))
        };
        match write(open, all) {
            Ok(()) => {
                self.publish();
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

    fn mutate(&mut self, mutations: &[Mutation], answers: Answers) {
        let Some(open) = self.writable() else { return self.reject(answers) };
        group_size(mutations.len());
        let gate = open.gate.clone();
        let before = gate.primary_slot().ok();
        let mut outcomes = Vec::with_capacity(mutations.len());
        let Err(fault) = self.commit(open, mutations, &mut outcomes) else {
            self.publish();
            return answer(answers, outcomes);
        };

        let reason = fault.degraded_by_commit();
        self.enter_degraded(reason, &chain(&fault));
        let after = gate.primary_slot().ok();
        match before.zip(after).map(|(before, after)| before != after) {
            Some(false) => self.reject(answers),
            // The commit is in the file, but perhaps not durable: reopening rewrites the header and
            // syncs.
            Some(true) if reason == DegradedReason::Unwritable && self.reopen().is_ok() => {
                answer(answers, outcomes)
            }
            _ => answer_all(answers, || Error::OutcomeUnknown(Fault::Degraded(reason).into())),
        }
    }

    /// Commits mutations, and checks that other programs still find the file.
    pub(super) fn commit(
        &self,
        open: &Open,
        mutations: &[Mutation],
        outcomes: &mut Vec<Answer>,
    ) -> Result<(), Fault> {
        let attempt = AssertUnwindSafe(|| commit(open, &self.shared.caches, mutations, outcomes));
        catch_unwind(attempt).unwrap_or(Err(Fault::Panicked))?;
        if self.opener.is_in_place(open) {
            Ok(())
        } else {
            Err(Fault::Degraded(DegradedReason::Gone))
        }
    }

    fn reject(&mut self, answers: Answers) {
        if let Some(degraded) = &mut self.degraded {
            degraded.count_rejected(answers.len());
        }
        let reason = self.degraded_reason();
        answer_all(answers, || reason.map_or(Fault::Closed, Fault::Degraded).into());
    }
}

/// Commits a write other than a mutation.
fn write(
    open: &Open,
    write: impl FnOnce(&WriteTransaction) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let attempt = AssertUnwindSafe(|| {
        let mut transaction = open.database.begin_write()?;
        transaction.set_quick_repair(true);
        write(&transaction)?;
        open.commit(transaction)
    });
    catch_unwind(attempt).unwrap_or(Err(Fault::Panicked))
}

fn commit(
    open: &Open,
    caches: &Caches,
    mutations: &[Mutation],
    outcomes: &mut Vec<Answer>,
) -> Result<(), Fault> {
    let mut transaction = open.database.begin_write()?;
    transaction.set_quick_repair(true);
    let mut tables = Tables::open(&transaction, caches)?;
    for mutation in mutations {
        outcomes.push(match tables.mutate(mutation) {
            // The damage was read before any write of this mutation: the rest of the group goes on.
            Err(fault @ Fault::Damaged(_)) => Err(fault.into()),
            outcome => outcome?,
        });
    }

    match tables.sweep(mutations) {
        Err(fault @ Fault::Damaged(_)) => {
            tracing::error!(cause = chain(&fault), "expired records cannot be removed")
        }
        swept => swept?,
    }
    let names = tables.finish()?;
    open.commit(transaction)?;
    caches.names.learn_all(names);
    Ok(())
}

/// Answers the callers. The mutations of callers who have left have happened too.
fn answer(answers: Answers, outcomes: Vec<Answer>) {
    for (answer, outcome) in answers.into_iter().zip(outcomes) {
        let _ = answer.send(outcome);
    }
}

fn answer_all(answers: Answers, error: impl Fn() -> Error) {
    let outcomes = answers.iter().map(|_| Err(error())).collect();
    answer(answers, outcomes);
}
