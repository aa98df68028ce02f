//! The one thread that writes: it takes every mutation that waits, applies them in one transaction, syncs once, and
//! answers. The more that waits, the more share a sync. Where that fails, it refuses mutations until it works again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::error::{Fault, Trouble, chain};
use super::lock::FileId;
use super::open::{Open, Opener};
use super::outage::{Outage, RETRY};
use super::read::Snapshot;
use super::transaction::Tables;
use super::{Published, Troubled};
use crate::directory::{Error, Mutation, Outcome};

/// What the writer is asked to do.
pub enum Job {
    /// Apply a mutation and answer.
    Mutate(Box<Mutation>, oneshot::Sender<Answer>),
    /// Say whether mutations are taken.
    Check(oneshot::Sender<Result<(), Fault>>),
    /// A read has failed, and with it the snapshot that was published.
    Unreadable(Trouble, String),
}

type Answer = Result<Outcome, Error>;
type Answers = Vec<oneshot::Sender<Answer>>;

pub struct Writer {
    opener: Opener,
    published: Arc<Published>,
    trouble: Arc<Troubled>,
    /// How many mutations may share one sync.
    group_limit: usize,
    /// What reads go to, and mutations too while there is no outage.
    open: Option<Open>,
    outage: Option<Outage>,
    /// When the file was opened last.
    opened: Instant,
    /// The file that is not opened again.
    damaged: Option<FileId>,
}

impl Writer {
    pub fn new(
        opener: Opener,
        open: Open,
        published: Arc<Published>,
        trouble: Arc<Troubled>,
        group_limit: usize,
    ) -> Self {
        let opened = Instant::now();
        Self { opener, published, trouble, group_limit, open: Some(open), outage: None, opened, damaged: None }
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
                Err(RecvTimeoutError::Disconnected) => return self.published.store(None),
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
        let mut checks = Vec::new();
        for job in std::iter::once(first).chain(jobs.try_iter().take(self.group_limit - 1)) {
            match job {
                Job::Mutate(mutation, answer) => {
                    mutations.push(*mutation);
                    answers.push(answer);
                }
                Job::Check(answer) => checks.push(answer),
                Job::Unreadable(trouble, cause) => self.cannot_read(trouble, &cause),
            }
        }
        self.look();
        for check in checks {
            let _ = check.send(self.refusal().map_or(Ok(()), |trouble| Err(Fault::Refused(trouble))));
        }
        if !mutations.is_empty() {
            self.mutate(&mutations, answers);
        }
    }

    /// Whoever opens the file next must find what is acknowledged.
    fn look(&mut self) {
        let gone = self.open.as_ref().is_some_and(|open| !self.opener.is_in_place(open));
        if gone && self.outage.is_none() {
            self.suffer(Trouble::Gone, "another program moved, replaced or deleted it");
        }
    }

    fn refusal(&self) -> Option<Trouble> {
        self.trouble.load().as_deref().copied()
    }

    fn mutate(&mut self, mutations: &[Mutation], answers: Answers) {
        let Some(open) = self.open.as_ref().filter(|_| self.outage.is_none()) else {
            return self.refuse(answers);
        };
        let before = open.gate.primary_slot().ok();
        let mut outcomes = Vec::with_capacity(mutations.len());
        let attempt = AssertUnwindSafe(|| commit(open, mutations, &mut outcomes));
        let committed = catch_unwind(attempt).unwrap_or(Err(Fault::Panicked));
        match committed.and_then(|()| self.opener.is_in_place(open).then_some(()).ok_or(Fault::Refused(Trouble::Gone)))
        {
            Ok(()) => {
                self.publish();
                answer(answers, outcomes);
            }
            Err(fault) => self.fail(&fault, before, answers, outcomes),
        }
    }

    /// Answers for a group that came to nothing, or so it seems: its commit may have happened all the same.
    fn fail(&mut self, fault: &Fault, before: Option<u8>, answers: Answers, outcomes: Vec<Answer>) {
        let trouble = match fault {
            Fault::Refused(trouble) => *trouble,
            Fault::Database(error) if matches!(**error, redb::Error::Corrupted(_)) => Trouble::Damaged,
            _ => Trouble::Unwritable,
        };
        let gate = self.open.as_ref().map(|open| open.gate.clone());
        self.suffer(trouble, &chain(fault));
        let after = gate.and_then(|gate| gate.primary_slot().ok());
        let happened = before.zip(after).map(|(before, after)| before != after);
        let can_tell = trouble == Trouble::Unwritable && outcomes.len() == answers.len();
        match happened {
            Some(false) => self.refuse(answers),
            // It is in the file, but maybe not on the disk: opening the file writes the header again, and syncs.
            Some(true) if can_tell && self.reopen().is_ok() => answer(answers, outcomes),
            _ => {
                let unknown = || Err(Error::OutcomeUnknown(Fault::Refused(trouble).into()));
                let outcomes = answers.iter().map(|_| unknown()).collect();
                answer(answers, outcomes);
            }
        }
    }

    fn refuse(&mut self, answers: Answers) {
        if let Some(outage) = &mut self.outage {
            outage.refuse(answers.len());
        }
        let fault = || self.refusal().map_or(Fault::Closed, Fault::Refused);
        let outcomes = answers.iter().map(|_| Err(fault().into())).collect();
        answer(answers, outcomes);
    }

    fn cannot_read(&mut self, trouble: Trouble, cause: &str) {
        // What is published again was opened after the read had failed.
        if self.published.load().is_none() {
            self.suffer(trouble, cause);
        }
    }

    /// Takes no mutations from here on, and writes nothing more to what is open.
    fn suffer(&mut self, trouble: Trouble, cause: &str) {
        if let Some(open) = &self.open {
            open.gate.shut();
            self.damaged = (trouble == Trouble::Damaged).then(|| open.gate.file_id());
        }
        let mut next = Instant::now() + RETRY;
        if !trouble.leaves_reads() {
            next = self.opened + RETRY;
            let before = self.published.swap(None);
            retire(before, self.open.take());
        }
        Outage::tell(trouble, cause);
        self.trouble.store(Some(Arc::new(trouble)));
        self.outage.get_or_insert_with(|| Outage::begin(next));
    }

    /// Tries to end the outage.
    fn mend(&mut self) {
        let tried = self.try_again();
        let Some(mut outage) = self.outage.take() else { return };
        match tried {
            Ok(()) => {
                self.trouble.store(None);
                outage.end();
            }
            Err(error) => {
                outage.go_on(&chain(&*error));
                self.outage = Some(outage);
            }
        }
    }

    /// Reads come first; then whether there is room, and whether a commit succeeds.
    fn try_again(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        if self.damaged.is_some() && self.damaged == self.opener.file_id() {
            return Err("it is the same file".into());
        }
        if self.open.is_none() {
            self.reopen()?;
        }
        self.opener.probe()?;
        if self.open.as_ref().is_some_and(|open| !open.gate.is_open()) {
            self.reopen()?;
        }
        let open = self.open.as_ref().ok_or(Fault::Closed)?;
        commit(open, &[], &mut Vec::new())?;
        if !self.opener.is_in_place(open) {
            open.gate.shut();
            return Err(Fault::Refused(Trouble::Gone).into());
        }
        self.publish();
        Ok(())
    }

    /// Opens the file again and has reads go there. The database that was open so far must be gone before the new one
    /// writes: what it reads may be written over.
    fn reopen(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        self.opened = Instant::now();
        let open = self.opener.reopen()?;
        let snapshot = Snapshot::new(&open.database, self.published.load().as_deref(), self.opener.hint_bytes())?;
        let before = self.published.swap(Some(Arc::new(snapshot)));
        self.damaged = None;
        retire(before, self.open.replace(open));
        Ok(())
    }

    /// Lets reads see what is on disk now.
    fn publish(&mut self) {
        let Some(open) = &self.open else { return };
        let snapshot = Snapshot::new(&open.database, self.published.load().as_deref(), self.opener.hint_bytes());
        match snapshot {
            Ok(snapshot) => self.published.store(Some(Arc::new(snapshot))),
            Err(fault) => self.suffer(Trouble::Unreadable, &chain(&fault)),
        }
    }
}

fn commit(open: &Open, mutations: &[Mutation], outcomes: &mut Vec<Answer>) -> Result<(), Fault> {
    let mut transaction = open.database.begin_write()?;
    transaction.set_quick_repair(true);
    let mut tables = Tables::open(&transaction)?;
    for mutation in mutations {
        outcomes.push(match tables.mutate(mutation) {
            // It was read before anything was written: the others of the group are none the worse for it.
            Err(fault @ Fault::Damaged(_)) => Err(fault.into()),
            outcome => outcome?,
        });
    }
    match tables.sweep(mutations) {
        Err(fault @ Fault::Damaged(_)) => tracing::error!(cause = chain(&fault), "what is over cannot be forgotten"),
        swept => swept?,
    }
    drop(tables);
    transaction.commit()?;
    // Of a write that failed, only the gate knows.
    Ok(open.gate.check().map_err(redb::StorageError::Io)?)
}

/// Closes a database when the look-ups under way on its snapshot are through, or have had their time.
fn retire(snapshot: Option<Arc<Snapshot>>, open: Option<Open>) {
    let end = Instant::now() + RETRY;
    while snapshot.as_ref().is_some_and(|snapshot| Arc::strong_count(snapshot) > 1) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    // A database that has panicked may panic again.
    let _ = catch_unwind(AssertUnwindSafe(|| drop((snapshot, open))));
}

/// A caller who has left is not there to be answered; what it asked for has happened all the same.
fn answer(answers: Answers, outcomes: Vec<Answer>) {
    for (answer, outcome) in answers.into_iter().zip(outcomes) {
        let _ = answer.send(outcome);
    }
}
