//! The way of mutations to the writer.

use redb::WriteTransaction;
use tokio::sync::oneshot::{self, Receiver};

use super::Embedded;
use super::error::Fault;
use super::write::{Answer, Job, Waiting};
use crate::directory::error::Error;
use crate::directory::mutation::Mutation;

/// The bytes of mutations that may wait for the writer; more are refused.
pub const QUEUE_BYTES: usize = 64 << 20;
/// The bytes that each counts at least, so that their number has a bound too.
pub const LEAST_BYTES: usize = 4 << 10;

impl Embedded {
    pub(super) async fn queue(&self, mutation: Mutation) -> Answer {
        let (waiting, answer) = self.waiting(mutation)?;
        self.send(Job::Mutate(vec![waiting]))?;
        answered(answer).await
    }

    /// Sends mutations together, so that they share a sync.
    pub(super) async fn queue_all(&self, mutations: Vec<Mutation>) -> Vec<Answer> {
        let (mut group, mut answers) = (Vec::with_capacity(mutations.len()), Vec::new());
        for mutation in mutations {
            answers.push(self.waiting(mutation).map(|(waiting, answer)| {
                group.push(waiting);
                answer
            }));
        }

        let sent = self.send(Job::Mutate(group)).is_ok();
        let mut outcomes = Vec::with_capacity(answers.len());
        for answer in answers {
            outcomes.push(match answer {
                Ok(answer) if sent => answered(answer).await,
                Ok(_) => Err(Fault::Closed.into()),
                Err(refused) => Err(refused),
            });
        }
        outcomes
    }

    /// Makes a write that is no mutation, and returns its result once it is on the disk.
    pub(super) async fn write_aside<T: Send + 'static>(
        &self,
        write: impl FnOnce(&WriteTransaction) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let (result, results) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let write = move |transaction: &WriteTransaction| {
            // Nobody waits for it any more where this fails.
            let _ = result.send(write(transaction)?);
            Ok(())
        };
        self.send(Job::WriteAside(Box::new(write), answer))?;
        let unknown = || Error::OutcomeUnknown(Fault::Panicked.into());
        answered.await.unwrap_or_else(|_| Err(unknown()))?;
        results.await.map_err(|_| unknown())
    }

    /// A mutation as the writer takes it, and where its answer comes.
    fn waiting(&self, mutation: Mutation) -> Result<(Waiting, Receiver<Answer>), Error> {
        self.rules.check(&mutation)?;
        let bytes = mutation.bytes().clamp(LEAST_BYTES, QUEUE_BYTES);
        let room = self.queue.clone().try_acquire_many_owned(bytes as u32);
        let room = room.map_err(|_| Error::Overloaded)?;
        let (sender, answer) = oneshot::channel();
        Ok((Waiting::new(mutation, sender, room), answer))
    }
}

async fn answered(answer: Receiver<Answer>) -> Answer {
    answer.await.unwrap_or_else(|_| Err(Error::OutcomeUnknown(Fault::Panicked.into())))
}
