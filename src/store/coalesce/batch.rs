//! Look-ups that share a call: what is sent for them, who gets what of the answer, and what is sent
//! again.

use std::collections::HashMap;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use metrics::{Histogram, histogram};
use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::directory::error::{Error, ItemError};
use crate::directory::stores::{ItemResult, LookUps};

/// The common properties of look-ups that may share a call.
pub trait Group: Clone + Eq + Hash + Send + Sync + 'static {
    type Key: Clone + Eq + Hash + Send + Sync;
    type Found: Clone + Send;

    /// Looks `keys` up in `store`. Answers to all of them, or to the first of them, in their order.
    fn ask(
        &self,
        store: &dyn LookUps,
        keys: &[Self::Key],
    ) -> impl Future<Output = Answered<Self::Found>> + Send;
}

pub struct Answers<F> {
    pub found: Vec<ItemResult<F>>,
    /// The number of reads of the call.
    pub reads: u32,
}

pub type Answered<F> = Result<Answers<F>, Error>;

/// The channel of a waiting caller.
type Waiting<G> = Sender<Answered<<G as Group>::Found>>;

/// The look-up of one caller.
pub struct LookUp<G: Group> {
    keys: Vec<G::Key>,
    answer: Waiting<G>,
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
    keys: Arc<[G::Key]>,
    /// For each key that was asked for, which of `keys` it is: the first caller's keys first.
    places: Vec<usize>,
    /// The number of keys of each caller, and its channel until it has its answer.
    callers: Vec<(usize, Option<Waiting<G>>)>,
}

impl<G: Group> Batch<G> {
    pub fn new(look_ups: Vec<LookUp<G>>) -> Self {
        let mut keys = Vec::with_capacity(look_ups.iter().map(LookUp::size).sum());
        let mut callers = Vec::with_capacity(look_ups.len());
        for mut look_up in look_ups {
            callers.push((look_up.size(), Some(look_up.answer)));
            keys.append(&mut look_up.keys);
        }
        let places = keep_first(&mut keys);
        Self { keys: keys.into(), places, callers }
    }

    /// The keys to send.
    pub fn keys(&self) -> Arc<[G::Key]> {
        self.keys.clone()
    }

    /// Whether several callers share it.
    pub const fn is_shared(&self) -> bool {
        self.callers.len() > 1
    }

    /// The callers who wait still, by their numbers, and the keys of each.
    pub fn of_each(&self) -> Vec<(usize, Vec<G::Key>)> {
        let mut places = self.places.iter();
        let own = |(count, _): &(usize, _)| {
            places.by_ref().take(*count).map(|n| self.keys[*n].clone()).collect()
        };
        let each: Vec<Vec<_>> = self.callers.iter().map(own).collect();
        let waits =
            |n: &usize| self.callers[*n].1.as_ref().is_some_and(|answer| !answer.is_closed());
        each.into_iter().enumerate().filter(|(n, _)| waits(n)).collect()
    }

    /// Gives one caller its answer before the others.
    pub fn answer_one(&mut self, caller: usize, answers: Answers<G::Found>) {
        if let Some(answer) = self.callers[caller].1.take() {
            let _ = answer.send(Ok(answers));
        }
    }

    /// Whether all callers have left.
    pub fn is_over(&self) -> bool {
        self.callers.iter().all(|(_, answer)| answer.as_ref().is_none_or(Sender::is_closed))
    }

    /// Parts what is to be sent again from a batch that has this outcome: the callers for whose
    /// answers there was no room, or, after a fault that may be the fault of one look-up, all
    /// callers in two halves, where `may_halve` allows that.
    pub fn part(&mut self, outcome: &Answered<G::Found>, may_halve: bool) -> Vec<Self> {
        match outcome {
            Ok(answers) if answers.found.len() < self.keys.len() => {
                Vec::from_iter(self.split_off(self.complete(answers.found.len()).max(1)))
            }
            Err(Error::Internal(_)) if may_halve && self.callers.len() > 1 => {
                let second = self.split_off(self.callers.len() / 2);
                let first = self.split_off(0);
                first.into_iter().chain(second).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The number of first callers whose keys are all among the first `answered` answers.
    fn complete(&self, answered: usize) -> usize {
        let mut places = self.places.iter();
        let is_complete =
            |(count, _): &&(usize, _)| places.by_ref().take(*count).all(|place| *place < answered);
        self.callers.iter().take_while(is_complete).count()
    }

    /// The callers from number `first` on, as a batch of their own.
    fn split_off(&mut self, first: usize) -> Option<Self> {
        let kept = self.callers[..first].iter().map(|(count, _)| count).sum();
        let callers = self.callers.split_off(first);
        let mut places = self.places.split_off(kept).into_iter();
        let key = |place: usize| self.keys[place].clone();
        let look_up = |(count, answer): (usize, Option<_>)| {
            let keys = places.by_ref().take(count).map(key).collect();
            answer.map(|answer| LookUp { keys, answer })
        };
        let look_ups: Vec<_> = callers.into_iter().filter_map(look_up).collect();
        (!look_ups.is_empty()).then(|| Self::new(look_ups))
    }

    /// Gives each caller its part. Nothing becomes of the parts of those who have left.
    pub fn answer(self, outcome: Answered<G::Found>) {
        let (found, reads) = match outcome {
            Ok(Answers { found, reads }) => (found, reads),
            Err(error) => return self.fail(error),
        };
        let is_each_key_once = self.places.last().is_none_or(|last| last + 1 == self.places.len());
        let found = match is_each_key_once {
            true => found,
            false => self.places.iter().map_while(|place| found.get(*place).cloned()).collect(),
        };
        let mut found = found.into_iter();

        for (count, answer) in self.callers {
            let found = found.by_ref().take(count).collect();
            answer.map(|answer| answer.send(Ok(Answers { found, reads })));
        }
    }

    fn fail(self, error: Error) {
        let failure = ItemError::from(error);
        for answer in self.callers.into_iter().filter_map(|(_, answer)| answer) {
            let _ = answer.send(Err(failure.clone().into()));
        }
    }
}

/// The histogram of calls.
pub const CALL_ITEMS: (&str, &str) =
    ("polynym_shared_call_items", "Look-ups that share a call to MongoDB");

fn call_items() -> &'static Histogram {
    static HISTOGRAM: OnceLock<Histogram> = OnceLock::new();
    HISTOGRAM.get_or_init(|| histogram!(CALL_ITEMS.0))
}

/// Looks `keys` up. A panic is an error like others: it must not take those along who wait for the
/// next call.
pub async fn ask<G: Group>(group: &G, store: &dyn LookUps, keys: &[G::Key]) -> Answered<G::Found> {
    call_items().record(keys.len() as f64);
    let outcome = AssertUnwindSafe(group.ask(store, keys)).catch_unwind().await;
    match outcome.unwrap_or_else(|_| Err(Error::Internal("a look-up panicked".into()))) {
        Ok(answers) if !(1..=keys.len()).contains(&answers.found.len()) => {
            Err(Error::Internal("not as many answers as keys".into()))
        }
        outcome => outcome,
    }
}

/// Drops all but the first of equal keys. Returns, for each key, the index of the kept one that it
/// equals.
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
