//! Look-ups that share a call: the keys to send, the distribution of the answers, and the look-ups
//! to send again.

use std::collections::HashMap;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use metrics::{Histogram, histogram};
use tokio::sync::oneshot::{self, Receiver, Sender};

use polynym_directory::{Error, ItemError, ItemResult, LookUps};

/// The common properties of look-ups that may share a call.
pub trait Group: Clone + Eq + Hash + Send + Sync + 'static {
    type Key: Clone + Eq + Hash + Send + Sync;
    type Found: Clone + Send;

    /// Looks `keys` up in `store`. Returns the answers to all of them or to the first of them, in
    /// their order.
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

/// Look-ups that share a call.
pub struct Batch<G: Group> {
    /// The keys to send, each once.
    keys: Arc<[G::Key]>,
    /// The index in `keys` of each requested key: the first caller's keys first.
    indexes: Vec<usize>,
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
        let indexes = deduplicate(&mut keys);
        Self { keys: keys.into(), indexes, callers }
    }

    /// The keys to send.
    pub fn keys(&self) -> Arc<[G::Key]> {
        self.keys.clone()
    }

    /// Whether it has several callers.
    pub const fn is_shared(&self) -> bool {
        self.callers.len() > 1
    }

    /// The numbers of the callers who still wait, and the keys of each.
    pub fn waiting(&self) -> Vec<(usize, Vec<G::Key>)> {
        let mut indexes = self.indexes.as_slice();
        let mut waiting = Vec::new();
        for (n, (count, answer)) in self.callers.iter().enumerate() {
            let (first, others) = indexes.split_at(*count);
            indexes = others;
            if answer.as_ref().is_some_and(|answer| !answer.is_closed()) {
                waiting.push((n, first.iter().map(|index| self.keys[*index].clone()).collect()));
            }
        }
        waiting
    }

    /// Splits off the callers without any answer, because the part of the store that has their keys
    /// does not answer.
    pub fn split_unanswered(&mut self, found: &[ItemResult<G::Found>]) -> Option<Self> {
        let is_away = |n: &usize| found.get(*n).is_some_and(is_unavailable);
        let (mut indexes, mut look_ups) = (self.indexes.as_slice(), Vec::new());
        for (count, answer) in &mut self.callers {
            let (first, others) = indexes.split_at(*count);
            indexes = others;
            if first.iter().all(is_away)
                && let Some(answer) = answer.take()
            {
                let keys = first.iter().map(|index| self.keys[*index].clone()).collect();
                look_ups.push(LookUp { keys, answer });
            }
        }
        (!look_ups.is_empty()).then(|| Self::new(look_ups))
    }

    /// Gives one caller its answer before the others.
    pub fn answer_one(&mut self, caller: usize, answers: Answers<G::Found>) {
        if let Some(answer) = self.callers[caller].1.take() {
            let _ = answer.send(Ok(answers));
        }
    }

    /// Whether all callers have their answers or have left.
    pub fn is_over(&self) -> bool {
        self.callers.iter().all(|(_, answer)| answer.as_ref().is_none_or(Sender::is_closed))
    }

    /// Splits off the callers to send again after this outcome: those that the answer leaves out,
    /// or, after an error that one look-up may have caused, all callers in two halves if
    /// `may_halve`.
    pub fn split_retries(&mut self, outcome: &Answered<G::Found>, may_halve: bool) -> Vec<Self> {
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
        let mut indexes = self.indexes.iter();
        let is_complete =
            |(count, _): &&(usize, _)| indexes.by_ref().take(*count).all(|n| *n < answered);
        self.callers.iter().take_while(is_complete).count()
    }

    /// The callers from number `first` on, as a batch of their own.
    fn split_off(&mut self, first: usize) -> Option<Self> {
        let keys_before = self.callers[..first].iter().map(|(count, _)| count).sum();
        let callers = self.callers.split_off(first);
        let mut indexes = self.indexes.split_off(keys_before).into_iter();
        let look_up = |(count, answer): (usize, Option<_>)| {
            let keys = indexes.by_ref().take(count).map(|n| self.keys[n].clone()).collect();
            answer.map(|answer| LookUp { keys, answer })
        };
        let look_ups: Vec<_> = callers.into_iter().filter_map(look_up).collect();
        (!look_ups.is_empty()).then(|| Self::new(look_ups))
    }

    /// Gives each caller its answers, unless it has left.
    pub fn answer(self, outcome: Answered<G::Found>) {
        let (found, reads) = match outcome {
            Ok(Answers { found, reads }) => (found, reads),
            Err(error) => return self.fail(error),
        };
        let are_unique = self.indexes.last().is_none_or(|last| last + 1 == self.indexes.len());
        let mut all = match are_unique {
            true => found,
            false => self.indexes.iter().map_while(|n| found.get(*n).cloned()).collect(),
        }
        .into_iter();
        for (count, answer) in self.callers {
            let found = all.by_ref().take(count).collect();
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

/// Whether the part of the store that has an item does not answer.
pub const fn is_unavailable<F>(item: &ItemResult<F>) -> bool {
    matches!(item, Err(ItemError::Unavailable(_)))
}

/// The histogram of calls.
pub const CALL_ITEMS: (&str, &str) =
    ("polynym_shared_call_items", "Look-ups that share a call to MongoDB");

fn call_items() -> &'static Histogram {
    static HISTOGRAM: OnceLock<Histogram> = OnceLock::new();
    HISTOGRAM.get_or_init(|| histogram!(CALL_ITEMS.0))
}

/// Looks `keys` up. A panic becomes an error: it must not affect callers who wait for the next
/// call.
pub async fn call<G: Group>(group: &G, store: &dyn LookUps, keys: &[G::Key]) -> Answered<G::Found> {
    call_items().record(keys.len() as f64);
    let outcome = AssertUnwindSafe(group.ask(store, keys)).catch_unwind().await;
    match outcome.unwrap_or_else(|_| Err(Error::Internal("a look-up panicked".into()))) {
        Ok(answers) if !(1..=keys.len()).contains(&answers.found.len()) => {
            Err(Error::Internal("the number of answers differs from the number of keys".into()))
        }
        outcome => outcome,
    }
}

/// Removes duplicate keys. Returns for each former key its index among the remaining ones.
fn deduplicate<K: Eq + Hash>(keys: &mut Vec<K>) -> Vec<usize> {
    let mut seen = HashMap::with_capacity(keys.len());
    let mut index_of = |key| {
        let next = seen.len();
        *seen.entry(key).or_insert(next)
    };
    let indexes: Vec<_> = keys.iter().map(&mut index_of).collect();
    let (mut unique, mut index) = (0, indexes.iter());
    keys.retain(|_| {
        let is_first = index.next() == Some(&unique);
        unique += usize::from(is_first);
        is_first
    });
    indexes
}
