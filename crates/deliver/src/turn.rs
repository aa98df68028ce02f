//! The turn of one delivery on one server. The server records its progress, so that another one can
//! go on.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;
use metrics::counter;
use polynym_directory::{
    DeadLetter, DeliveryKey, DeliveryProgress, DeliveryRunStep, EVENTS_EXPIRED, Error, Event,
    EventDelivery, FeedPage, Held, Stall, Timestamp,
};

use crate::attempts::result_of;
use crate::deliverer::Deliverer;
use crate::events::{Failure, UserOutcome, UserSender};
use crate::lease::{self, End};
use crate::metrics::{DEAD_LETTERS, PAUSES};
use crate::receiver::{Receiver, Reply};
use crate::schedule::{RETRIED_FOR, pause};
use crate::sent::Sent;

/// The least interval at which progress is recorded, and that at which a position without events
/// is.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
const IDLE_SAVE_INTERVAL: Duration = Duration::from_secs(60);
/// How long a delivery runs before others that wait for a server.
const RUN_TIME: Duration = Duration::from_secs(60);
/// The time in which the feed is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// The users of a delivery whose events are sent at once.
const CONCURRENT_USERS: usize = 8;
/// The users with held events in one round.
const HELD_USERS: usize = 32;
/// The time after which no more events of a round are sent, so that progress is recorded.
const ROUND_TIME: Duration = Duration::from_secs(5);

/// The events of a page of the feed, with the positions after them.
type PageEvents = Vec<(Arc<Event>, Vec<u8>)>;

/// A delivery that this server has.
struct Turn<'d> {
    deliverer: &'d Deliverer,
    key: &'d DeliveryKey,
    delivery: EventDelivery,
    receiver: Receiver,
    progress: DeliveryProgress,
    /// The events after the position that were taken.
    sent: Sent,
    saved: Instant,
    is_changed: bool,
}

/// Delivers until another server has the delivery, or its turn is over.
///
/// # Errors
/// [`Error::Unavailable`] if the store does not answer.
pub async fn run(deliverer: Arc<Deliverer>, key: DeliveryKey) -> Result<(), Error> {
    loop {
        let taken = deliverer.directory.take_delivery(&key, deliverer.server).await?;
        let Some(delivery) = taken else { return Ok(()) };
        let (target, updated) = (delivery.target.clone(), delivery.update_time);
        let wants_save = AtomicBool::new(false);
        let ended = tokio::select! {
            ended = deliver(&deliverer, &key, delivery, &wants_save) => ended?,
            ended = lease::keep(&deliverer, &key, |delivery| {
                wants_save.fetch_or(!delivery.replays.is_empty(), Ordering::Relaxed);
                (&delivery.target, delivery.update_time) == (&target, updated)
            }) => ended,
        };
        if matches!(ended, End::Over) {
            return Ok(());
        }
    }
}

async fn deliver(
    deliverer: &Deliverer,
    key: &DeliveryKey,
    delivery: EventDelivery,
    wants_save: &AtomicBool,
) -> Result<End, Error> {
    let progress = delivery.progress.clone();
    let Some(receiver) = deliverer.receiver(&delivery) else {
        return pause_delivery(deliverer, key, progress, "ADDRESS_REFUSED").await;
    };
    let (sent, saved) = (Sent::default(), Instant::now());
    let mut turn =
        Turn { deliverer, key, delivery, receiver, progress, sent, saved, is_changed: false };
    let began = Instant::now();
    loop {
        if let Some(end) = turn.step().await? {
            return Ok(end);
        }
        let is_over = deliverer.is_crowded.load(Ordering::Relaxed) && began.elapsed() >= RUN_TIME;
        if is_over || deliverer.is_stopping() {
            let step = DeliveryRunStep::Release(Box::new(turn.progress));
            deliverer.directory.run_delivery(key, deliverer.server, step).await?;
            return Ok(End::Over);
        }
        let is_due = turn.is_changed && turn.saved.elapsed() >= SAVE_INTERVAL
            || turn.saved.elapsed() >= IDLE_SAVE_INTERVAL;
        if (is_due || wants_save.swap(false, Ordering::Relaxed)) && !turn.save().await? {
            return Ok(End::Over);
        }
    }
}

/// Pauses a delivery for a reason.
async fn pause_delivery(
    deliverer: &Deliverer,
    key: &DeliveryKey,
    progress: DeliveryProgress,
    reason: &'static str,
) -> Result<End, Error> {
    let step = DeliveryRunStep::Pause(Box::new(progress), reason.to_owned());
    deliverer.directory.run_delivery(key, deliverer.server, step).await?;
    counter!(PAUSES.0).increment(1);
    let (tenant, id) = key;
    tracing::warn!(%tenant, delivery = id, reason, "a delivery is paused");
    Ok(End::Over)
}

impl Turn<'_> {
    /// Sends the events that wait and are due, and those of the next page of the feed.
    async fn step(&mut self) -> Result<Option<End>, Error> {
        let now = self.deliverer.directory.now().time;
        if let Some(stall) = self.progress.stall.as_ref().filter(|stall| stall.until > now) {
            let left = Duration::from_millis(stall.until.millis_after(now).unsigned_abs());
            let wait = tokio::time::sleep(left.min(PATIENCE));
            self.deliverer.unless_stopping(wait).await;
            return Ok(None);
        }
        let due = self.progress.held.due(now, HELD_USERS);
        let has_due = !due.is_empty();
        if has_due && let Some(end) = self.send_held(due).await? {
            return Ok(Some(end));
        }
        if self.is_stalled() {
            return Ok(None);
        }
        let patience = if has_due { Duration::ZERO } else { self.patience(now) };
        let position = &self.progress.position;
        let directory = &self.deliverer.directory;
        let read = directory.events_to_deliver(&self.delivery.tenant, position, patience);
        let Some(read) = self.deliverer.unless_stopping(read).await else { return Ok(None) };
        match read {
            Ok(page) => self.send_page(page).await,
            Err(Error::ResumeExpired | Error::Invalid { .. }) => {
                self.pause(EVENTS_EXPIRED).await.map(Some)
            }
            Err(error) => Err(error),
        }
    }

    /// The time until the next held user is due, at most [`PATIENCE`].
    fn patience(&self, now: Timestamp) -> Duration {
        let until = self.progress.held.next_time();
        let left = until.map(|until| until.millis_after(now).max(0).unsigned_abs());
        left.map_or(PATIENCE, |left| Duration::from_millis(left).min(PATIENCE))
    }

    fn is_stalled(&self) -> bool {
        let now = self.deliverer.directory.now().time;
        self.progress.stall.as_ref().is_some_and(|stall| stall.until > now)
    }

    /// The users at once: one, as long as it is not known that the receiver can be reached again.
    fn concurrent(&self) -> usize {
        if self.progress.stall.is_some() { 1 } else { CONCURRENT_USERS }
    }

    /// Sends the events of a page. The position is that after those of them that are done.
    async fn send_page(&mut self, page: FeedPage) -> Result<Option<End>, Error> {
        let users = self.wanted(&page.events);
        let (is_halted, read) = (AtomicBool::new(false), self.deliverer.directory.now().time);
        let sender = self.sender(&is_halted);
        let lasts: HashMap<_, _> = users
            .iter()
            .filter_map(|(user, events)| Some((*user, events.last()?.sequence)))
            .collect();
        let sends = users.into_iter().map(|(user, events)| sender.send(user, events, read));
        let outcomes = stream::iter(sends).buffer_unordered(self.concurrent());
        let outcomes: Vec<_> = outcomes.try_collect().await?;
        let (mut fits, mut halting) = (true, None);
        for outcome in outcomes {
            let last = lasts.get(&outcome.user).copied().unwrap_or_default();
            let user = outcome.user;
            match self.note(outcome) {
                None => {}
                Some(Failure { sequence, reply }) if reply.is_of_event() => {
                    let mut held = Held::new(sequence, last, Timestamp::default());
                    held.fail(self.deliverer.directory.now().time, pause(1, fastrand::u32(..)));
                    fits &= self.progress.held.hold(user, held);
                }
                Some(failure) => halting = Some(failure.reply),
            }
        }
        if !fits {
            return self.pause("TOO_MANY_HELD_USERS").await.map(Some);
        }
        if is_halted.load(Ordering::Relaxed) {
            self.pass(page.events);
        } else {
            self.progress.position = page.resume_token;
            self.sent.clear();
        }
        match halting {
            Some(reply) => self.stall(reply).await,
            None => Ok(None),
        }
    }

    /// Moves the position past the first events of a page, as far as nothing of them is left.
    fn pass(&mut self, events: PageEvents) {
        let (sent, held) = (&self.sent, &self.progress.held);
        let is_held = |event: &Event| {
            let held = held.get(event.user);
            held.is_some_and(|held| (held.first..=held.last).contains(&event.sequence))
        };
        let is_done = |event: &Event| {
            sent.has(event.user, event.sequence)
                || is_held(event)
                || !self.delivery.target.wants(event)
        };
        let done = events.into_iter().take_while(|(event, _)| is_done(event)).last();
        if let Some((_, position)) = done {
            self.progress.position = position;
            self.is_changed = true;
        }
    }

    /// The events of a page that are to be sent now, by user.
    fn wanted(&mut self, events: &PageEvents) -> Vec<(LocalityId, Vec<Event>)> {
        let mut users: Vec<(LocalityId, Vec<Event>)> = Vec::new();
        let mut places = HashMap::<LocalityId, usize>::new();
        for (event, _) in events {
            if self.sent.has(event.user, event.sequence)
                || !self.delivery.target.wants(event)
                || self.progress.held.hold_later(event.user, event.sequence)
            {
                continue;
            }
            let place = *places.entry(event.user).or_insert_with(|| {
                users.push((event.user, Vec::new()));
                users.len() - 1
            });
            let of_user = &mut users[place].1;
            if of_user.last().is_some_and(|last| last.sequence >= event.sequence) {
                // The user was purged, and is there again: the earlier ones are gone.
                of_user.clear();
            }
            of_user.push(Event::clone(event));
        }
        users
    }

    /// Sends the next events of users that wait.
    async fn send_held(&mut self, due: Vec<(LocalityId, Held)>) -> Result<Option<End>, Error> {
        let is_halted = AtomicBool::new(false);
        let sender = self.sender(&is_halted);
        let sends = due.into_iter().map(|(user, held)| {
            let sender = &sender;
            async move {
                let outcome = sender.send_held(user, &held).await?;
                Ok::<_, Error>((held, outcome))
            }
        });
        let outcomes = stream::iter(sends).buffer_unordered(self.concurrent());
        let outcomes: Vec<_> = outcomes.try_collect().await?;
        let mut halting = None;
        for (held, outcome) in outcomes {
            let user = outcome.user;
            let left = self.left(held, outcome.done, !outcome.is_partial);
            let left = match self.note(outcome) {
                None => left,
                Some(failure) if failure.reply.is_of_event() => {
                    left.and_then(|held| self.fail(user, held, &failure))
                }
                Some(failure) => {
                    halting = Some(failure.reply);
                    left
                }
            };
            self.progress.held.set(user, left);
            self.is_changed = true;
        }
        match halting {
            Some(reply) => self.stall(reply).await,
            None => Ok(None),
        }
    }

    /// The events of a user that are left after those that were taken.
    fn left(&self, held: Held, done: Option<u64>, is_all: bool) -> Option<Held> {
        if is_all {
            return None;
        }
        let Some(done) = done else { return Some(held) };
        let now = self.deliverer.directory.now().time;
        (done < held.last).then(|| Held::new(done + 1, held.last, now))
    }

    /// Notes that an event was not taken: it is sent again, or given up.
    fn fail(&mut self, user: LocalityId, held: Held, failure: &Failure) -> Option<Held> {
        let now = self.deliverer.directory.now().time;
        let mut held = match held.first == failure.sequence {
            true => held,
            false => Held::new(failure.sequence, held.last, now),
        };
        let wait = pause(held.attempts + 1, fastrand::u32(..));
        if !held.fail(now, wait) {
            return Some(held);
        }
        let (sequence, result) = (failure.sequence, result_of(failure.reply));
        self.progress.log.bury(DeadLetter { user, sequence, time: now, result });
        counter!(DEAD_LETTERS.0).increment(1);
        (sequence < held.last).then(|| Held::new(sequence + 1, held.last, now))
    }

    /// Notes the attempts to send the events of a user.
    fn note(&mut self, outcome: UserOutcome) -> Option<Failure> {
        let failure = outcome.failure.as_ref().map(|failure| failure.reply);
        let is_refused = matches!(failure, Some(Reply::Refused(_)));
        for (attempt, is_taken) in outcome.attempts {
            self.is_changed = true;
            if is_taken || is_refused {
                // The receiver answers again.
                self.progress.stall = None;
            }
            self.progress.log.add(attempt, is_taken);
        }
        if let Some(done) = outcome.done {
            self.sent.add(outcome.user, (outcome.first, done));
        }
        outcome.failure
    }

    /// Sends nothing for a while: the receiver cannot be reached, asks for later messages, or wants
    /// no more.
    async fn stall(&mut self, reply: Reply) -> Result<Option<End>, Error> {
        let now = self.deliverer.directory.now().time;
        let (since, attempts) = match &self.progress.stall {
            Some(stall) => (stall.since, stall.attempts + 1),
            None => (now, 1),
        };
        let wait = match reply {
            Reply::Gone => return self.pause("RECEIVER_GONE").await.map(Some),
            Reply::Later(_, wait) => wait.max(Duration::from_secs(1)),
            _ => pause(attempts, fastrand::u32(..)),
        };
        if now >= since.plus(RETRIED_FOR) {
            return self.pause("RECEIVER_UNREACHABLE").await.map(Some);
        }
        let (result, until) = (result_of(reply), now.plus(wait));
        self.progress.stall = Some(Stall { result, since, attempts, until });
        self.is_changed = true;
        match self.save().await? {
            true => Ok(None),
            false => Ok(Some(End::Over)),
        }
    }

    fn sender<'s>(&'s self, is_halted: &'s AtomicBool) -> UserSender<'s> {
        let (deliverer, delivery, receiver) = (self.deliverer, &self.delivery, &self.receiver);
        let until = Instant::now() + ROUND_TIME;
        UserSender { deliverer, delivery, receiver, is_halted, until }
    }

    /// Records the progress. Returns false if another server has the delivery.
    async fn save(&mut self) -> Result<bool, Error> {
        let step = DeliveryRunStep::Save(Box::new(self.progress.clone()));
        let deliverer = self.deliverer;
        let saved = deliverer.directory.run_delivery(self.key, deliverer.server, step).await?;
        (self.saved, self.is_changed) = (Instant::now(), false);
        let Some(delivery) = saved else { return Ok(false) };
        // Events that somebody wants again are among those that wait now.
        self.progress.held = delivery.progress.held;
        Ok(true)
    }

    async fn pause(&self, reason: &'static str) -> Result<End, Error> {
        pause_delivery(self.deliverer, self.key, self.progress.clone(), reason).await
    }
}
