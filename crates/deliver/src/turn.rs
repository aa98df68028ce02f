//! The turn of one delivery on one server. The server records its progress, so that another one can
//! go on.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;
use metrics::counter;
use polynym_directory::model::delivery::step::LEASE;
use polynym_directory::{
    DeadLetter, DeliveryKey, DeliveryProgress, DeliveryRunStep, Error, Event, EventDelivery,
    FeedPage, Held, Stall, Timestamp,
};

use crate::attempts::result_of;
use crate::deliverer::Deliverer;
use crate::events::{Failure, UserOutcome, UserSender};
use crate::metrics::{DEAD_LETTERS, PAUSES};
use crate::receiver::{Receiver, Reply};
use crate::schedule::{RETRIED_FOR, pause};

/// The interval at which the lease is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(5);
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
/// The users with held events in one round, and the events of each.
const HELD_USERS: usize = 32;
const HELD_EVENTS: usize = 32;

/// The events of a page of the feed, with the positions after them.
type PageEvents = Vec<(Arc<Event>, Vec<u8>)>;

/// Why a turn ended.
enum End {
    /// Another server has the delivery, or it is paused or gone.
    Over,
    /// Somebody changed it.
    Changed,
}

/// A delivery that this server has.
struct Turn<'d> {
    deliverer: &'d Deliverer,
    key: &'d DeliveryKey,
    delivery: EventDelivery,
    receiver: Receiver,
    progress: DeliveryProgress,
    /// The events of the present page that were taken, by the last of each user.
    sent: HashMap<LocalityId, u64>,
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
        let target = delivery.target.clone();
        let wants_save = AtomicBool::new(false);
        let ended = tokio::select! {
            ended = deliver(&deliverer, &key, delivery, &wants_save) => ended?,
            ended = keep_lease(&deliverer, &key, |delivery| {
                wants_save.fetch_or(!delivery.replays.is_empty(), Ordering::Relaxed);
                delivery.target == target
            }) => ended,
        };
        if matches!(ended, End::Over) {
            return Ok(());
        }
    }
}

/// Renews the lease until it is lost, or the delivery is another one.
async fn keep_lease(
    deliverer: &Deliverer,
    key: &DeliveryKey,
    is_same: impl Fn(&EventDelivery) -> bool,
) -> End {
    let mut valid = Instant::now() + LEASE;
    loop {
        tokio::time::sleep(RENEW_INTERVAL.min(valid.saturating_duration_since(Instant::now())))
            .await;
        let began = Instant::now();
        let renewal =
            deliverer.directory.run_delivery(key, deliverer.server, DeliveryRunStep::Renew);
        match tokio::time::timeout(valid.saturating_duration_since(began), renewal).await {
            Ok(Ok(Some(delivery))) if is_same(&delivery) => valid = began + LEASE,
            Ok(Ok(Some(_))) => return End::Changed,
            // Another server may deliver now.
            Ok(Ok(None)) | Err(_) => return End::Over,
            Ok(Err(error)) => {
                let ((tenant, id), error) = (key, error.with_causes());
                tracing::warn!(%tenant, delivery = id, %error, "a lease was not renewed");
                if Instant::now() >= valid {
                    return End::Over;
                }
            }
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
    let (sent, saved) = (HashMap::new(), Instant::now());
    let mut turn =
        Turn { deliverer, key, delivery, receiver, progress, sent, saved, is_changed: false };
    let began = Instant::now();
    loop {
        if let Some(end) = turn.step().await? {
            return Ok(end);
        }
        if deliverer.is_crowded.load(Ordering::Relaxed) && began.elapsed() >= RUN_TIME {
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
            tokio::time::sleep(left.min(PATIENCE)).await;
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
        match directory.events_to_deliver(&self.delivery.tenant, position, patience).await {
            Ok(page) => self.send_page(page).await,
            Err(Error::ResumeExpired | Error::Invalid { .. }) => {
                self.pause("EVENTS_EXPIRED").await.map(Some)
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

    /// Sends the events of a page. Only then the position is that after it.
    async fn send_page(&mut self, page: FeedPage) -> Result<Option<End>, Error> {
        let users = self.wanted(page.events);
        let is_halted = AtomicBool::new(false);
        let sender = self.sender(&is_halted);
        let lasts: HashMap<_, _> = users
            .iter()
            .filter_map(|(user, events)| Some((*user, events.last()?.sequence)))
            .collect();
        let sends = users.into_iter().map(|(user, events)| sender.send(user, events));
        let outcomes = stream::iter(sends).buffer_unordered(self.concurrent());
        let outcomes: Vec<_> = outcomes.try_collect().await?;
        let (mut fits, mut halting) = (true, None);
        for outcome in outcomes {
            let last = lasts.get(&outcome.user).copied().unwrap_or_default();
            let user = outcome.user;
            match self.note(outcome) {
                None => {}
                Some(Failure { sequence, reply: Reply::Refused(_) | Reply::Silent }) => {
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
        if let Some(reply) = halting {
            return self.stall(reply).await;
        }
        if !is_halted.load(Ordering::Relaxed) {
            self.progress.position = page.resume_token;
            self.sent.clear();
        }
        Ok(None)
    }

    /// The events of a page that are to be sent now, by user.
    fn wanted(&mut self, events: PageEvents) -> Vec<(LocalityId, Vec<Event>)> {
        let mut users: Vec<(LocalityId, Vec<Event>)> = Vec::new();
        let mut places = HashMap::<LocalityId, usize>::new();
        for (event, _) in events {
            let was_sent = self.sent.get(&event.user).is_some_and(|last| event.sequence <= *last);
            if was_sent
                || !self.delivery.target.wants(&event)
                || self.progress.held.hold_later(event.user, event.sequence)
            {
                continue;
            }
            let place = *places.entry(event.user).or_insert_with(|| {
                users.push((event.user, Vec::new()));
                users.len() - 1
            });
            users[place].1.push(Event::clone(&event));
        }
        users
    }

    /// Sends the next events of users that wait.
    async fn send_held(&mut self, due: Vec<(LocalityId, Held)>) -> Result<Option<End>, Error> {
        let is_halted = AtomicBool::new(false);
        let sender = self.sender(&is_halted);
        let (directory, tenant) = (&self.deliverer.directory, &self.delivery.tenant);
        let sends = due.into_iter().map(|(user, held)| {
            let sender = &sender;
            async move {
                let numbers = (held.first, held.last);
                let events = directory.held_events(tenant, user, numbers, HELD_EVENTS).await?;
                let is_all = events.len() < HELD_EVENTS;
                Ok::<_, Error>((held, is_all, sender.send_each(user, events).await))
            }
        });
        let outcomes = stream::iter(sends).buffer_unordered(self.concurrent());
        let outcomes: Vec<_> = outcomes.try_collect().await?;
        let mut halting = None;
        for (held, is_all, outcome) in outcomes {
            let (user, done, is_partial) = (outcome.user, outcome.done, outcome.is_partial);
            let left = self.left(held, done, is_all && !is_partial);
            let failure = self.note(outcome);
            let left = match (left, failure) {
                (left, None) => left,
                (left, Some(failure)) => {
                    let is_own = matches!(failure.reply, Reply::Refused(_) | Reply::Silent);
                    if is_own {
                        left.and_then(|held| self.fail(user, held, &failure))
                    } else {
                        halting = Some(failure.reply);
                        left
                    }
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
        for (attempt, is_taken) in outcome.attempts {
            self.is_changed = true;
            if is_taken {
                self.progress.stall = None;
            }
            self.progress.log.add(attempt, is_taken);
        }
        if let Some(done) = outcome.done {
            self.sent.insert(outcome.user, done);
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
        UserSender { deliverer, delivery, receiver, is_halted }
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
