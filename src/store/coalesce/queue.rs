//! Look-ups that wait for a call of the store below, and the calls that are under way.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep};

use super::batch::{Answered, Batch, Group, LookUp, ask};
use super::late::{Late, Usual};
use super::options::Options;
use crate::directory::error::Error;
use crate::directory::stores::LookUps;

/// So many calls of one group that hang may give way to others, and no more: what hangs takes up
/// the store below.
const HANGING: usize = 8;
/// So many look-ups are worth a call, however many are under way.
const FLUSH_THRESHOLD: usize = 16;
/// So many times the look-ups of a call that failed are halved, to find the one at fault. Where all
/// fail, halving is no use.
const HALVED: usize = 16;
const GIVEN_UP: &str = "a look-up was given up";

pub struct Queue<G: Group> {
    inner: Arc<dyn LookUps>,
    late: Option<Late>,
    usual: Usual,
    options: Options,
    /// The groups that have calls under way.
    lanes: Mutex<HashMap<G, GroupQueue<G>>>,
    /// Whether look-ups have met here since one was last alone from its beginning to its end.
    meeting: AtomicBool,
}

impl<G: Group> Queue<G> {
    pub fn new(inner: Arc<dyn LookUps>, options: Options) -> Self {
        let (late, usual, lanes) = Default::default();
        Self { inner, late, usual, options, lanes, meeting: AtomicBool::new(true) }
    }

    /// The same queue, whose calls give up early, and whose late look-ups are then dealt with.
    pub fn with_late(mut self, late: Late) -> Self {
        self.late = Some(late);
        self
    }

    /// Looks `keys` up in a call that may be shared with others of the group.
    pub async fn look_up(self: &Arc<Self>, group: &G, keys: &[G::Key]) -> Answered<G::Found> {
        if let Some(slot) = self.alone(group) {
            return slot.make(keys).await;
        }
        let (look_up, outcome) = LookUp::new(keys);
        self.send(group, look_up);
        // The runtime that the call was on may be gone.
        outcome.await.unwrap_or_else(|_| Err(Error::Unavailable(GIVEN_UP.into())))
    }

    /// The slot of a look-up that finds nothing under way and is unlikely to be joined: its caller
    /// makes the call itself, which saves a task. Where only one call may be under way, later ones
    /// would wait for it.
    fn alone(self: &Arc<Self>, group: &G) -> Option<InFlight<G>> {
        if self.meeting.load(Ordering::Relaxed) || self.options.calls < 2 {
            return None;
        }
        let mut lanes = self.lanes();
        if lanes.contains_key(group) {
            self.meeting.store(true, Ordering::Relaxed);
            return None;
        }
        let stage = lanes.entry(group.clone()).or_default().send(1);
        Some(InFlight { queue: self.clone(), group: group.clone(), stage, is_late: false })
    }

    /// Has a look-up go along with the next call.
    pub fn send(self: &Arc<Self>, group: &G, look_up: LookUp<G>) {
        if self.join(group, look_up) {
            InFlight::open(self.clone(), group.clone());
        }
    }

    /// Queues a look-up. Returns whether the caller must open a slot for one more call.
    fn join(&self, group: &G, look_up: LookUp<G>) -> bool {
        let mut lanes = self.lanes();
        if !lanes.contains_key(group) {
            lanes.insert(group.clone(), GroupQueue::default());
        }
        lanes.get_mut(group).is_some_and(|lane| {
            lane.push(look_up);
            lane.opens(self.options.calls)
        })
    }

    /// Those who come after a call that hangs must not wait for it, unless too many hang. The stage
    /// of its slot then.
    fn mark_stalled(self: &Arc<Self>, group: &G, stage: CallState) -> CallState {
        let mut lanes = self.lanes();
        let Some(lane) = lanes.get_mut(group).filter(|lane| lane.hanging < HANGING) else {
            return stage;
        };

        lane.leave(stage);
        lane.hanging += 1;
        let opens = lane.opens(self.options.calls);
        drop(lanes);
        if opens {
            InFlight::open(self.clone(), group.clone());
        }

        CallState::Hanging
    }

    /// The handler of late look-ups, unless calls usually take so long that an early retry would
    /// often fail.
    fn late(&self) -> Option<&Late> {
        let stall_timeout = self.options.stall_timeout;
        self.late.as_ref().filter(|_| self.usual.late(stall_timeout) <= 2 * stall_timeout)
    }

    async fn insist(&self, group: &G, batch: Batch<G>) {
        if let Some(late) = &self.late {
            late.insist_for_all(group, batch).await;
        }
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<G, GroupQueue<G>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The look-ups of one group.
struct GroupQueue<G: Group> {
    /// Whether a slot is open: it takes along all that come before it has a thread.
    is_open: bool,
    /// Calls under way, and the look-ups in them.
    calls: usize,
    sent: usize,
    /// Further calls under way, for which only those wait whose look-ups are in them.
    hanging: usize,
    waiting: VecDeque<LookUp<G>>,
    /// At how many that wait those go whose callers have left.
    tidy_at: usize,
}

impl<G: Group> Default for GroupQueue<G> {
    fn default() -> Self {
        Self { is_open: false, calls: 0, sent: 0, hanging: 0, waiting: VecDeque::new(), tidy_at: 0 }
    }
}

impl<G: Group> GroupQueue<G> {
    /// While the store below hangs, callers may come and leave without end; what they leave must
    /// not pile up.
    fn push(&mut self, look_up: LookUp<G>) {
        if self.waiting.len() >= self.tidy_at {
            self.waiting.retain(|waiting| !waiting.is_void());
            self.tidy_at = 2 * self.waiting.len() + 64;
        }
        self.waiting.push_back(look_up);
    }

    /// Opens a slot where one more call is worth its price: as many wait as are under way, or a
    /// crowd.
    fn opens(&mut self, most: usize) -> bool {
        let waiting = self.waiting.len();
        let opens = waiting > 0
            && waiting >= self.sent.min(FLUSH_THRESHOLD)
            && !self.is_open
            && self.calls < most.max(1);
        self.is_open |= opens;
        opens
    }

    /// The look-ups for the next call, of `most` keys together unless one alone has more: those
    /// that wait longest.
    fn take(&mut self, most: usize) -> Vec<LookUp<G>> {
        let mut taken = Vec::with_capacity(self.waiting.len().min(most));
        let mut size = 0;
        while let Some(next) = self.waiting.pop_front() {
            if next.is_void() {
                continue;
            }
            size += next.size();
            if size > most && !taken.is_empty() {
                self.waiting.push_front(next);
                break;
            }
            taken.push(next);
        }

        taken
    }

    /// A slot is at this stage no longer.
    const fn leave(&mut self, stage: CallState) {
        match stage {
            CallState::Open => self.is_open = false,
            CallState::Sent(look_ups) => {
                self.calls -= 1;
                self.sent -= look_ups;
            }
            CallState::Hanging => self.hanging -= 1,
            CallState::Over => {}
        }
    }

    /// A slot has taken so many look-ups for its call; the stage at which that leaves it.
    const fn send(&mut self, look_ups: usize) -> CallState {
        if look_ups == 0 {
            return CallState::Over;
        }
        self.calls += 1;
        self.sent += look_ups;
        CallState::Sent(look_ups)
    }

    const fn is_idle(&self) -> bool {
        !self.is_open && self.calls == 0 && self.hanging == 0
    }
}

/// The right to have one call of a group under way.
struct InFlight<G: Group> {
    queue: Arc<Queue<G>>,
    group: G,
    stage: CallState,
    /// Whether its call has taken too long.
    is_late: bool,
}

#[derive(Clone, Copy)]
enum CallState {
    /// A call is about to be sent.
    Open,
    /// A call with so many look-ups is under way.
    Sent(usize),
    /// A call is under way that has given way to others.
    Hanging,
    Over,
}

impl<G: Group> InFlight<G> {
    /// Sends what waits, in a task of its own. The lane must count the slot as open. The lanes must
    /// not be locked: a runtime that is shutting down drops the slot at once.
    fn open(queue: Arc<Queue<G>>, group: G) {
        tokio::spawn(Self { queue, group, stage: CallState::Open, is_late: false }.run());
    }

    /// Makes the call of a look-up that is alone. There is no clock: a single look-up under way
    /// makes nobody wait.
    async fn make(self, keys: &[G::Key]) -> Answered<G::Found> {
        let outcome = ask(&self.group, &*self.queue.inner, keys).await;
        if let Some(slot) = self.reopen() {
            tokio::spawn(slot.run());
        }
        outcome
    }

    async fn run(mut self) {
        while let Some(mut batch) = self.next() {
            let outcome = self.ask_for_all(&mut batch).await;
            // Before the answers: who has the last one may close the store, which this must not
            // keep open.
            let slot = self.reopen();
            batch.answer(outcome);
            let Some(slot) = slot else { return };
            self = slot;
            // Others have the thread first, among them those who were answered: what they ask at
            // once goes along.
            tokio::task::yield_now().await;
        }
    }

    /// Makes the call of a batch. Where that leaves callers over, answers the others, and goes on
    /// with these until there is an outcome for the last of them.
    async fn ask_for_all(&mut self, batch: &mut Batch<G>) -> Answered<G::Found> {
        let (mut left, mut halved) = (Vec::new(), 0);
        loop {
            let outcome = self.ask(batch).await;
            if self.is_late
                && matches!(outcome, Err(Error::Unavailable(_)))
                && self.queue.late.is_some()
            {
                let (queue, group) = (self.queue.clone(), self.group.clone());
                let batch = std::mem::replace(batch, Batch::new(Vec::new()));
                tokio::spawn(async move { queue.insist(&group, batch).await });
            }
            let parted = batch.part(&outcome, halved < HALVED);
            halved += usize::from(outcome.is_err() && !parted.is_empty());
            left.extend(parted);
            let Some(next) = left.pop() else { return outcome };
            std::mem::replace(batch, next).answer(outcome);
        }
    }

    /// Makes a call. When it is late it gives way, and each of its look-ups is tried on its own
    /// beside it.
    async fn ask(&mut self, batch: &mut Batch<G>) -> Answered<G::Found> {
        let (queue, group, keys, since) = (&self.queue, &self.group, batch.keys(), Instant::now());
        let late = queue.late();
        let mut call = pin!(ask(group, late.map_or(&*queue.inner, |late| &*late.hasty), &keys));
        let stall_timeout = queue.usual.late(queue.options.stall_timeout);
        let mut timer = pin!(sleep(stall_timeout));
        let mut tries = FuturesUnordered::new();
        self.is_late = false;

        loop {
            tokio::select! {
                outcome = &mut call => {
                    queue.usual.learn(since.elapsed(), &outcome);
                    return outcome;
                }
                () = &mut timer => {
                    self.stage = queue.mark_stalled(group, self.stage);
                    timer.as_mut().reset(Instant::now() + stall_timeout);
                    if let (Some(late), false, true) = (late, self.is_late, batch.is_shared()) {
                        let insist = |(n, keys): (usize, Vec<G::Key>)| async move {
                            (n, late.insist(group, &keys).await)
                        };
                        tries.extend(batch.of_each().into_iter().map(insist));
                    }
                    self.is_late = true;
                }
                Some((n, answers)) = tries.next() => {
                    batch.answer_one(n, answers);
                    if batch.is_over() {
                        return Err(Error::Unavailable(GIVEN_UP.into()));
                    }
                }
            }
        }
    }

    /// The next call, unless all who waited have left. What has no room in it may be worth another.
    fn next(&mut self) -> Option<Batch<G>> {
        let Options { calls, keys, .. } = self.queue.options;
        let mut lanes = self.queue.lanes();
        let lane = lanes.get_mut(&self.group)?;
        let look_ups = lane.take(keys);
        lane.leave(self.stage);
        self.stage = lane.send(look_ups.len());
        let opens = lane.opens(calls);
        remove_idle(&mut lanes, &self.group);
        drop(lanes);
        if opens {
            Self::open(self.queue.clone(), self.group.clone());
        }

        (!look_ups.is_empty()).then(|| Batch::new(look_ups))
    }

    /// The slot, open again, or its end where one more call is not worth its price now.
    fn reopen(mut self) -> Option<Self> {
        let mut lanes = self.queue.lanes();
        let lane = lanes.get_mut(&self.group)?;
        lane.leave(self.stage);
        let was_alone = matches!(self.stage, CallState::Sent(1));
        self.stage =
            if lane.opens(self.queue.options.calls) { CallState::Open } else { CallState::Over };
        if was_alone && lane.is_idle() {
            self.queue.meeting.store(false, Ordering::Relaxed);
        }

        remove_idle(&mut lanes, &self.group);
        drop(lanes);
        matches!(self.stage, CallState::Open).then_some(self)
    }
}

/// A runtime that shuts down drops a call half-way. What waits fails unless another call is there
/// to take it along.
impl<G: Group> Drop for InFlight<G> {
    fn drop(&mut self) {
        let mut lanes = self.queue.lanes();
        if let Some(lane) = lanes.get_mut(&self.group) {
            lane.leave(self.stage);
        }
        let abandoned = remove_idle(&mut lanes, &self.group);
        drop(lanes);
        drop(abandoned);
    }
}

/// Takes a lane away that has no slot.
fn remove_idle<G: Group>(
    lanes: &mut HashMap<G, GroupQueue<G>>,
    group: &G,
) -> Option<GroupQueue<G>> {
    if lanes.get(group).is_some_and(GroupQueue::is_idle) { lanes.remove(group) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::{Tenant, View};
    use locality_uuid::LocalityId;

    #[test]
    fn what_callers_leave_behind_does_not_pile_up() {
        let id: LocalityId = "00000001-0001-b000-0001-000000000000".parse().unwrap();
        let mut lane: GroupQueue<(Tenant, View)> = GroupQueue::default();
        let mut staying = Vec::new();
        for n in 0..100_000 {
            let (look_up, outcome) = LookUp::new(&[id]);
            lane.push(look_up);
            if n % 500 == 0 {
                staying.push(outcome);
            }
            assert!(lane.waiting.len() <= 2 * staying.len() + 65, "{} wait", lane.waiting.len());
        }
        assert_eq!(lane.take(1_000).len(), staying.len());
        assert!(lane.waiting.is_empty());
    }
}
