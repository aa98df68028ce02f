//! The one thread that writes: it takes every mutation that waits, applies them in one transaction,
//! syncs once, and answers. The more that waits, the more share a sync. Where that fails, it
//! refuses mutations until it works again.

mod recovery;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use redb::WriteTransaction;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

use super::degraded::Degraded;
use super::error::{DegradedReason, Fault, chain};
use super::last_seen::LastSeen;
use super::lock::FileId;
use super::measure::{Queued, group_size};
use super::open::{Caches, Open, Opener};
use super::transaction::Tables;
use super::{DegradedState, Published, last_seen};
use crate::directory::error::Error;
use crate::directory::mutation::Mutation;
use crate::directory::read_set::Outcome;

/// A job of the writer.
pub enum Job {
    /// Apply mutations and answer.
    Mutate(Vec<Waiting>),
    /// Say whether mutations are taken.
    Check(oneshot::Sender<Result<(), Fault>>),
    /// Write the last time seen.
    KeepTime,
    /// Make a write that is no mutation, and answer.
    WriteAside(AsideWrite, oneshot::Sender<Result<(), Error>>),
    /// A read has failed, and with it the snapshot that was published.
    Unreadable(DegradedReason, String),
    /// End by a fault.
    #[cfg(test)]
    Panic,
}

/// A write that is not a mutation of the directory, such as one of counters.
pub type AsideWrite = Box<dyn FnOnce(&WriteTransaction) -> Result<(), Fault> + Send>;

/// A mutation that waits for its turn.
pub struct Waiting {
    pub mutation: Mutation,
    pub answer: oneshot::Sender<Answer>,
    /// Its part of the queue, until it is answered.
    pub room: OwnedSemaphorePermit,
    _counted: Queued,
}

impl Waiting {
    pub fn new(
        mutation: Mutation,
        answer: oneshot::Sender<Answer>,
        room: OwnedSemaphorePermit,
    ) -> Self {
        Self { mutation, answer, room, _counted: Queued::new() }
    }
}

pub type Answer = Result<Outcome, Error>;
type Answers = Vec<oneshot::Sender<Answer>>;

pub struct Writer {
    opener: Opener,
    published: Arc<Published>,
    trouble: Arc<DegradedState>,
    last_seen: Arc<LastSeen>,
    /// Mutations that may share one sync.
    group_limit: usize,
    /// Told of each commit that can be read.
    committed: watch::Sender<()>,
    /// The database that serves reads, and mutations unless the store is degraded.
    open: Option<Open>,
    outage: Option<Degraded>,
    /// When the file was opened last.
    opened: Instant,
    /// The file that is not opened again.
    damaged: Option<FileId>,
}

impl Writer {
    pub fn new(
        opener: Opener,
        open: Open,
        (published, trouble, last_seen): (Arc<Published>, Arc<DegradedState>, Arc<LastSeen>),
        (group_limit, committed): (usize, watch::Sender<()>),
    ) -> Self {
        let (open, opened) = (Some(open), Instant::now());
        Self {
            opener,
            published,
            trouble,
            last_seen,
            group_limit,
            committed,
            open,
            outage: None,
            opened,
            damaged: None,
        }
    }

    /// Works until every sender of `jobs` is gone.
    pub fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let job = match &self.outage {
                None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(outage) => jobs.recv_timeout(outage.wait()),
            };
            match job {
                Ok(job) => self.work(job, jobs),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.keep_time();
                    return self.published.store(None);
                }
            }
            if self.outage.as_ref().is_some_and(|outage| outage.wait().is_zero()) {
                self.mend();
            }
        }
    }

    /// Does a job, and others that wait already.
    fn work(&mut self, first: Job, jobs: &Receiver<Job>) {
        let mut mutations = Vec::new();
        let mut answers: Answers = Vec::new();
        let mut rooms = Vec::new();
        let (mut checks, mut keeps_time, mut asides) = (Vec::new(), false, Vec::new());
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Mutate(waiting) => {
                    // The callers of others have left, and nothing has begun.
                    for waiting in waiting.into_iter().filter(|one| !one.answer.is_closed()) {
                        mutations.push(waiting.mutation);
                        answers.push(waiting.answer);
                        rooms.push(waiting.room);
                    }
                }
                Job::Check(answer) => checks.push(answer),
                Job::KeepTime => keeps_time = true,
                Job::WriteAside(write, answer) => asides.push((write, answer)),
                Job::Unreadable(trouble, cause) => self.cannot_read(trouble, &cause),
                #[cfg(test)]
                Job::Panic => panic!("as asked"),
            }
            next = if mutations.len() < self.group_limit { jobs.try_recv().ok() } else { None };
        }

        self.check_file();
        for check in checks {
            let _ =
                check.send(self.refusal().map_or(Ok(()), |trouble| Err(Fault::Refused(trouble))));
        }

        if keeps_time {
            self.keep_time();
        }
        if !mutations.is_empty() {
            self.mutate(&mutations, answers);
        }
        if !asides.is_empty() {
            self.write_asides(asides);
        }
    }

    /// Writes the last time seen, where it is certain.
    fn keep_time(&mut self) {
        let Some(open) = self.open.as_ref().filter(|_| self.outage.is_none()) else { return };
        let Some(time) = self.last_seen.to_keep(Instant::now()) else { return };
        let written = write(open, |transaction| last_seen::write(transaction, time));
        if let Err(fault) = written {
            self.enter_degraded(fault.degraded_by_commit(), &chain(&fault));
        }
    }

    /// Makes writes that share a sync.
    fn write_asides(&mut self, asides: Vec<(AsideWrite, oneshot::Sender<Result<(), Error>>)>) {
        let (writes, answers): (Vec<_>, Vec<_>) = asides.into_iter().unzip();
        let written = self.try_asides(writes);
        for answer in answers {
            let _ = answer.send(written.as_ref().copied().map_err(|error| error()));
        }
    }

    fn try_asides(&mut self, writes: Vec<AsideWrite>) -> Result<(), Box<dyn Fn() -> Error>> {
        let Some(open) = self.open.as_ref().filter(|_| self.outage.is_none()) else {
            let trouble = self.refusal();
            return Err(Box::new(move || trouble.map_or(Fault::Closed, Fault::Refused).into()));
        };
        let all = |transaction: &WriteTransaction| {
            writes.into_iter().try_for_each(|write| write(transaction))
        };
        match write(open, all) {
            Ok(()) => {
                self.publish();
                Ok(())
            }
            // A record that cannot be read is no fault of the file, and nothing was written.
            Err(Fault::Damaged(cause)) => {
                tracing::error!(cause = chain(&*cause), "a write was given up");
                Err(Box::new(|| {
                    Fault::damaged("a record of this write or of one beside it").into()
                }))
            }
            Err(fault) => {
                let trouble = fault.degraded_by_commit();
                self.enter_degraded(trouble, &chain(&fault));
                Err(Box::new(move || Error::OutcomeUnknown(Fault::Refused(trouble).into())))
            }
        }
    }

    /// The next program that opens the file must find every acknowledged mutation.
    fn check_file(&mut self) {
        let gone = self.open.as_ref().is_some_and(|open| !self.opener.is_in_place(open));
        if gone && self.outage.is_none() {
            self.enter_degraded(
                DegradedReason::Gone,
                "another program moved, replaced or deleted it",
            );
        }
    }

    fn refusal(&self) -> Option<DegradedReason> {
        self.trouble.load().as_deref().copied()
    }

    fn mutate(&mut self, mutations: &[Mutation], answers: Answers) {
        let Some(open) = self.open.as_ref().filter(|_| self.outage.is_none()) else {
            return self.refuse(answers);
        };
        group_size(mutations.len());
        let gate = open.gate.clone();
        let before = gate.primary_slot().ok();
        let mut outcomes = Vec::with_capacity(mutations.len());
        let Err(fault) = self.commit(open, mutations, &mut outcomes) else {
            self.publish();
            return answer(answers, outcomes);
        };

        let trouble = fault.degraded_by_commit();
        self.enter_degraded(trouble, &chain(&fault));
        let after = gate.primary_slot().ok();
        match before.zip(after).map(|(before, after)| before != after) {
            Some(false) => self.refuse(answers),
            // It is in the file, but maybe not on the disk: opening the file writes the header
            // again, and syncs.
            Some(true) if trouble == DegradedReason::Unwritable && self.reopen().is_ok() => {
                answer(answers, outcomes)
            }
            _ => answer_all(answers, || Error::OutcomeUnknown(Fault::Refused(trouble).into())),
        }
    }

    /// Commits mutations to the file that other programs find.
    fn commit(
        &self,
        open: &Open,
        mutations: &[Mutation],
        outcomes: &mut Vec<Answer>,
    ) -> Result<(), Fault> {
        let attempt = AssertUnwindSafe(|| commit(open, self.opener.caches(), mutations, outcomes));
        catch_unwind(attempt).unwrap_or(Err(Fault::Panicked))?;
        if self.opener.is_in_place(open) {
            Ok(())
        } else {
            Err(Fault::Refused(DegradedReason::Gone))
        }
    }

    fn refuse(&mut self, answers: Answers) {
        if let Some(outage) = &mut self.outage {
            outage.refuse(answers.len());
        }
        let trouble = self.refusal();
        answer_all(answers, || trouble.map_or(Fault::Closed, Fault::Refused).into());
    }
}

/// Commits what is not a mutation of the directory.
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
            // It was read before anything was written: the others of the group are none the worse
            // for it.
            Err(fault @ Fault::Damaged(_)) => Err(fault.into()),
            outcome => outcome?,
        });
    }

    match tables.sweep(mutations) {
        Err(fault @ Fault::Damaged(_)) => {
            tracing::error!(cause = chain(&fault), "what is over cannot be forgotten")
        }
        swept => swept?,
    }
    let names = tables.finish()?;
    open.commit(transaction)?;
    caches.names.learn_all(names);
    Ok(())
}

/// A caller who has left is not there to be answered; what it asked for has happened all the same.
fn answer(answers: Answers, outcomes: Vec<Answer>) {
    for (answer, outcome) in answers.into_iter().zip(outcomes) {
        let _ = answer.send(outcome);
    }
}

fn answer_all(answers: Answers, error: impl Fn() -> Error) {
    let outcomes = answers.iter().map(|_| Err(error())).collect();
    answer(answers, outcomes);
}
