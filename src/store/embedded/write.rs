//! The one thread that writes: it takes every mutation that waits, applies them in one transaction, syncs once, and
//! answers. The more that waits, the more share a sync.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use redb::Database;
use tokio::sync::oneshot;

use super::error::Fault;
use super::read::Snapshot;
use super::transaction::Tables;
use super::{Opener, Published};
use crate::directory::{Error, Mutation, Outcome};

/// What the writer is asked to do.
pub enum Job {
    /// Apply a mutation and answer.
    Mutate(Box<Mutation>, oneshot::Sender<Answer>),
    /// Open the database again: a read has failed.
    Reopen,
}

type Answer = Result<Outcome, Error>;
type Answers = Vec<oneshot::Sender<Answer>>;

/// How often a store that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

pub struct Writer {
    pub opener: Opener,
    pub published: Arc<Published>,
    /// How many mutations may share one sync.
    pub group_limit: usize,
}

/// Why a group came to nothing.
enum Failure {
    /// Nothing was written.
    Before(Fault),
    /// The last step failed: what is on disk is known only after the database was opened again.
    AtCommit(Fault, Vec<Answer>),
}

impl Writer {
    /// Works until every sender of `jobs` is gone.
    pub fn run(mut self, database: Database, jobs: &Receiver<Job>) {
        let mut database = Some(database);
        loop {
            let job = match &database {
                Some(_) => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                None => jobs.recv_timeout(RETRY),
            };
            match job {
                Ok(job) => self.work(&mut database, self.group(job, jobs)),
                Err(RecvTimeoutError::Timeout) => database = self.reopen(),
                Err(RecvTimeoutError::Disconnected) => return self.published.store(None),
            }
        }
    }

    fn group(&self, first: Job, jobs: &Receiver<Job>) -> Vec<Job> {
        let mut group = Vec::with_capacity(self.group_limit.min(64));
        group.push(first);
        group.extend(jobs.try_iter().take(self.group_limit - 1));
        group
    }

    fn work(&mut self, database: &mut Option<Database>, group: Vec<Job>) {
        let mut mutations = Vec::with_capacity(group.len());
        let mut answers: Answers = Vec::with_capacity(group.len());
        let mut reopen = false;
        for job in group {
            match job {
                Job::Mutate(mutation, answer) => {
                    mutations.push(*mutation);
                    answers.push(answer);
                }
                Job::Reopen => reopen = true,
            }
        }
        if reopen {
            self.close(database);
            *database = self.reopen();
        }
        let Some(open) = database else { return refuse(answers) };
        if mutations.is_empty() {
            return;
        }
        match catch_unwind(AssertUnwindSafe(|| commit(open, &mutations))) {
            Ok(Ok(outcomes)) => {
                self.publish(open);
                answer(answers, outcomes);
            }
            Ok(Err(failure)) => self.fail(database, answers, failure),
            Err(_) => self.fail(database, answers, Failure::Before(Fault::Panicked)),
        }
    }

    fn fail(&self, database: &mut Option<Database>, answers: Answers, failure: Failure) {
        self.close(database);
        match failure {
            Failure::Before(fault) => {
                tracing::error!(error = %chain(&fault), "a group of mutations failed: nothing was written");
                refuse(answers);
            }
            Failure::AtCommit(fault, outcomes) => {
                tracing::error!(error = %chain(&fault), "a commit failed: its outcome is not known");
                let unknown = |_| Error::OutcomeUnknown(Fault::Closed.into());
                let outcomes = outcomes.into_iter().map(|outcome| outcome.and_then(|user| Err(unknown(user))));
                answer(answers, outcomes.collect());
            }
        }
        *database = self.reopen();
    }

    fn close(&self, database: &mut Option<Database>) {
        self.published.store(None);
        *database = None;
    }

    fn reopen(&self) -> Option<Database> {
        match catch_unwind(AssertUnwindSafe(|| self.opener.reopen())) {
            Ok(Ok(database)) => {
                tracing::info!("the store is open again");
                self.publish(&database);
                Some(database)
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the store cannot be opened yet");
                None
            }
            Err(_) => None,
        }
    }

    /// Lets reads see what is on disk now.
    fn publish(&self, database: &Database) {
        let before = self.published.load();
        match Snapshot::new(database, before.as_deref(), self.opener.hint_bytes()) {
            Ok(snapshot) => self.published.store(Some(Arc::new(snapshot))),
            Err(fault) => {
                tracing::error!(error = %chain(&fault), "a snapshot failed");
                self.published.store(None);
            }
        }
    }
}

fn commit(database: &Database, mutations: &[Mutation]) -> Result<Vec<Answer>, Failure> {
    let apply = || -> Result<_, Fault> {
        let mut transaction = database.begin_write()?;
        transaction.set_quick_repair(true);
        let mut tables = Tables::open(&transaction)?;
        let outcomes = mutations.iter().map(|mutation| tables.mutate(mutation)).collect::<Result<Vec<_>, _>>()?;
        tables.sweep(mutations)?;
        drop(tables);
        Ok((transaction, outcomes))
    };
    let (transaction, outcomes) = apply().map_err(Failure::Before)?;
    match transaction.commit() {
        Ok(()) => Ok(outcomes),
        Err(error) => Err(Failure::AtCommit(error.into(), outcomes)),
    }
}

/// A caller who has left is not there to be answered; what it asked for has happened all the same.
fn answer(answers: Answers, outcomes: Vec<Answer>) {
    for (answer, outcome) in answers.into_iter().zip(outcomes) {
        let _ = answer.send(outcome);
    }
}

fn refuse(answers: Answers) {
    for answer in answers {
        let _ = answer.send(Err(Fault::Closed.into()));
    }
}

/// A fault and its causes in one line.
fn chain(fault: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(fault), |cause| cause.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
