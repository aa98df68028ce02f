//! The queue of mutations and other writes in front of the writer.

use redb::WriteTransaction;
use tokio::sync::oneshot::{self, Receiver};

use crate::error::Fault;
use crate::job::{Answer, Job, MIN_BYTES, QUEUE_BYTES, Waiting};
use crate::store::Embedded;
use polynym_directory::{Error, Mutation};
use polynym_store_common::operations::{Operation, measure};

impl Embedded {
    pub(super) async fn queue(&self, mutation: Mutation) -> Answer {
        let work = async {
            let (waiting, answer) = self.waiting(mutation)?;
            self.send(Job::Mutate(vec![waiting]))?;
            answered(answer).await
        };
        measure(Operation::Mutate, work).await
    }

    /// Sends mutations together, so that they share a sync. Each is an operation.
    pub(super) async fn queue_all(&self, mutations: Vec<Mutation>) -> Vec<Answer> {
        let begun = Operation::Mutate.begin();
        let (mut group, mut answers) = (Vec::with_capacity(mutations.len()), Vec::new());
        for mutation in mutations {
            answers.push(self.waiting(mutation).map(|(waiting, answer)| {
                group.push(waiting);
                answer
            }));
        }

        let is_sent = self.send(Job::Mutate(group)).is_ok();
        let mut outcomes = Vec::with_capacity(answers.len());
        for answer in answers {
            let outcome = match answer {
                Ok(answer) if is_sent => answered(answer).await,
                Ok(_) => Err(Fault::Closed.into()),
                Err(rejection) => Err(rejection),
            };
            begun.end(&outcome);
            outcomes.push(outcome);
        }
        outcomes
    }

    /// Applies a write other than a mutation, as one operation.
    pub(super) async fn write_aside<T: Send + 'static>(
        &self,
        operation: Operation,
        write: impl FnOnce(&WriteTransaction) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        measure(operation, self.write_step(write)).await
    }

    /// Applies a write other than a mutation, as a part of an operation. Returns its result once
    /// it is durable.
    pub(super) async fn write_step<T: Send + 'static>(
        &self,
        write: impl FnOnce(&WriteTransaction) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let (result_sender, result) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let side_write = move |transaction: &WriteTransaction| {
            // Fails if the caller has left.
            let _ = result_sender.send(write(transaction)?);
            Ok(())
        };
        self.send(Job::SideWrite(Box::new(side_write), answer))?;
        let unknown = || Error::OutcomeUnknown(Fault::Panicked.into());
        answered.await.unwrap_or_else(|_| Err(unknown()))?;
        result.await.map_err(|_| unknown())
    }

    /// Reserves room in the queue for a mutation. Returns the mutation and the receiver of its
    /// answer.
    fn waiting(&self, mutation: Mutation) -> Result<(Waiting, Receiver<Answer>), Error> {
        self.rules.check(&mutation)?;
        let bytes = mutation.bytes().clamp(MIN_BYTES, QUEUE_BYTES);
        let permit = self.queue.clone().try_acquire_many_owned(bytes as u32);
        let permit = permit.map_err(|_| Error::Overloaded)?;
        let (sender, answer) = oneshot::channel();
        Ok((Waiting::new(mutation, sender, permit), answer))
    }
}

async fn answered(answer: Receiver<Answer>) -> Answer {
    answer.await.unwrap_or_else(|_| Err(Error::OutcomeUnknown(Fault::Panicked.into())))
}
