//! Look-ups that share a call: what is sent for them, and who gets what of the answer.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::directory::{Error, Store};

/// What look-ups that may share a call have in common.
pub trait Group: Clone + Eq + Hash + Send + Sync + 'static {
    type Key: Clone + Eq + Hash + Send + Sync;
    type Found: Clone + Send;

    /// Looks `keys` up in `store`; as many answers, in their order.
    fn ask(&self, store: &dyn Store, keys: &[Self::Key]) -> impl Future<Output = Answered<Self::Found>> + Send;
}

pub struct Answers<F> {
    pub found: Vec<Option<F>>,
    /// How many reads the call took.
    pub reads: u32,
}

pub type Answered<F> = Result<Answers<F>, Error>;

/// What one caller looks for.
pub struct LookUp<G: Group> {
    keys: Vec<G::Key>,
    answer: Sender<Answered<G::Found>>,
}

impl<G: Group> LookUp<G> {
    pub fn new(keys: &[G::Key]) -> (Self, Receiver<Answered<G::Found>>) {
        let (answer, outcome) = oneshot::channel();
        (Self { keys: keys.to_vec(), answer }, outcome)
    }

    pub const fn size(&self) -> usize {
        self.keys.len()
    }

    /// Whether its caller has left.
    pub fn is_void(&self) -> bool {
        self.answer.is_closed()
    }
}

/// Look-ups on their way.
pub struct Batch<G: Group> {
    /// The keys to send, each once.
    keys: Vec<G::Key>,
    /// For each key that was asked for, which of `keys` it is: the first caller's keys first.
    places: Vec<usize>,
    /// How many keys each caller asked for, and where it waits.
    callers: Vec<(usize, Sender<Answered<G::Found>>)>,
}

impl<G: Group> Batch<G> {
    pub fn new(look_ups: Vec<LookUp<G>>) -> Self {
        let mut keys = Vec::with_capacity(look_ups.iter().map(LookUp::size).sum());
        let mut callers = Vec::with_capacity(look_ups.len());
        for mut look_up in look_ups {
            callers.push((look_up.size(), look_up.answer));
            keys.append(&mut look_up.keys);
        }
        let places = keep_first(&mut keys);
        Self { keys, places, callers }
    }

    /// Sends the keys, and answers once for each that was asked for.
    pub async fn ask(&self, group: &G, store: &dyn Store) -> Answered<G::Found> {
        let mut answers = ask(group, store, &self.keys).await?;
        if self.places.len() > self.keys.len() {
            answers.found = self.places.iter().map(|place| answers.found[*place].clone()).collect();
        }
        Ok(answers)
    }

    /// Gives each caller its part. Nothing becomes of the parts of those who have left.
    pub fn answer(self, outcome: Answered<G::Found>) {
        let (found, reads) = match outcome {
            Ok(Answers { found, reads }) => (found, reads),
            Err(error) => return self.fail(error),
        };
        let mut found = found.into_iter();
        for (count, answer) in self.callers {
            let _ = answer.send(Ok(Answers { found: found.by_ref().take(count).collect(), reads }));
        }
    }

    fn fail(self, error: Error) {
        let failure = Failure::from(error);
        for (_, answer) in self.callers {
            let _ = answer.send(Err(failure.clone().into()));
        }
    }
}

/// Looks all `keys` up. A panic is an error like others: it must not take those along who wait for the next call.
pub async fn ask<G: Group>(group: &G, store: &dyn Store, keys: &[G::Key]) -> Answered<G::Found> {
    let outcome = AssertUnwindSafe(ask_for_all(group, store, keys)).catch_unwind().await;
    outcome.unwrap_or_else(|_| Err(Error::Internal("a look-up panicked".into())))
}

/// A store leaves out what is too much for one answer; here there are many.
async fn ask_for_all<G: Group>(group: &G, store: &dyn Store, keys: &[G::Key]) -> Answered<G::Found> {
    let mut answers = group.ask(store, keys).await?;
    while answers.found.len() < keys.len() {
        let rest = group.ask(store, &keys[answers.found.len()..]).await?;
        if rest.found.is_empty() {
            break;
        }
        answers.found.extend(rest.found);
        answers.reads += rest.reads;
    }
    let complete = answers.found.len() == keys.len();
    if complete { Ok(answers) } else { Err(Error::Internal("not as many answers as keys".into())) }
}

/// Drops all but the first of equal keys, and tells for each that was there which of the kept ones it equals.
fn keep_first<K: Eq + Hash>(keys: &mut Vec<K>) -> Vec<usize> {
    let mut seen = HashMap::with_capacity(keys.len());
    let mut place = |key| {
        let next = seen.len();
        *seen.entry(key).or_insert(next)
    };
    let places: Vec<_> = keys.iter().map(&mut place).collect();
    let (mut kept, mut place) = (0, places.iter());
    keys.retain(|_| {
        let is_first = place.next() == Some(&kept);
        kept += usize::from(is_first);
        is_first
    });
    places
}

/// Why a call failed, for each of those who shared it.
#[derive(Clone)]
enum Failure {
    Unavailable(Arc<dyn StdError + Send + Sync>),
    Internal(Arc<dyn StdError + Send + Sync>),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable(cause) => Self::Unavailable(cause.into()),
            Error::Internal(cause) => Self::Internal(cause.into()),
            other => Self::Internal(Arc::new(other)),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unavailable(cause) => Self::Unavailable(Box::new(cause)),
            Failure::Internal(cause) => Self::Internal(Box::new(cause)),
        }
    }
}
