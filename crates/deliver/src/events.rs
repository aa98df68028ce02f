//! Sends the events of one user, one after the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use locality_uuid::LocalityId;
use polynym_directory::encoded::event::event_message;
use polynym_directory::{Attempt, Error, Event, EventDelivery, Held, Timestamp};

use crate::attempts::{Permits, result_of};
use crate::cloud_event;
use crate::deliverer::Deliverer;
use crate::receiver::{Message, Receiver, Reply};

/// The time after which events are read again before their values are sent: the values of a user
/// who was purged meanwhile are gone then.
const READ_AGAIN: Duration = Duration::from_secs(2);
/// The events of a user in one read.
const HELD_EVENTS: usize = 32;
const MAX_READ: u64 = 4_096;

/// Sends the events of users of one delivery.
pub struct UserSender<'d> {
    pub deliverer: &'d Deliverer,
    pub delivery: &'d EventDelivery,
    pub receiver: &'d Receiver,
    /// Whether no more are sent: the receiver cannot be reached, or the time is over.
    pub is_halted: &'d AtomicBool,
    /// The time after which no more are sent, so that progress is recorded.
    pub until: Instant,
}

/// What became of the events of a user.
pub struct UserOutcome {
    /// The user.
    pub user: LocalityId,
    /// The number of the first event.
    pub first: u64,
    /// The attempts, and whether the receiver has taken the event.
    pub attempts: Vec<(Attempt, bool)>,
    /// The number of the last event that the receiver has taken, or that is not for it.
    pub done: Option<u64>,
    /// Why the next one was not taken; none if all were, or no more are sent.
    pub failure: Option<Failure>,
    /// Whether events are left.
    pub is_partial: bool,
}

/// Why an event was not taken.
pub struct Failure {
    /// The number of the event.
    pub sequence: u64,
    /// The reply.
    pub reply: Reply,
}

impl UserOutcome {
    fn new(user: LocalityId, first: u64) -> Self {
        let (attempts, done, failure) = (Vec::new(), None, None);
        Self { user, first, attempts, done, failure, is_partial: false }
    }

    /// Adds an attempt. Returns whether the event was taken.
    fn add(&mut self, attempt: Attempt, reply: Reply) -> bool {
        let (sequence, is_taken) = (attempt.sequence, matches!(reply, Reply::Taken(_)));
        self.attempts.push((attempt, is_taken));
        if is_taken {
            self.done = Some(sequence);
        } else {
            (self.failure, self.is_partial) = (Some(Failure { sequence, reply }), true);
        }
        is_taken
    }
}

impl UserSender<'_> {
    /// Sends events of the feed, of one user and in order, which was read at this time.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    pub async fn send(
        &self,
        user: LocalityId,
        events: Vec<Event>,
        read: Timestamp,
    ) -> Result<UserOutcome, Error> {
        let last = events.last().map(|event| event.sequence);
        // The feed has events as they were when they happened.
        let read = events.iter().map(|event| event.time).min().map_or(read, |time| time.min(read));
        let mut outcome = self.send_each(user, events, read).await?;
        if !outcome.is_partial {
            outcome.done = last;
        }
        Ok(outcome)
    }

    /// Sends the next events of a user that wait.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    pub async fn send_held(&self, user: LocalityId, held: &Held) -> Result<UserOutcome, Error> {
        let read = self.now();
        let numbers = (held.first, held.last);
        let Some(events) = self.read(user, numbers, HELD_EVENTS).await? else {
            let mut outcome = UserOutcome::new(user, held.first);
            outcome.add(self.unreadable(user, held.first), Reply::Unreadable);
            return Ok(outcome);
        };
        let is_all = events.len() < HELD_EVENTS;
        let mut outcome = self.send_each(user, events, read).await?;
        outcome.is_partial |= !is_all;
        Ok(outcome)
    }

    async fn send_each(
        &self,
        user: LocalityId,
        events: Vec<Event>,
        mut read: Timestamp,
    ) -> Result<UserOutcome, Error> {
        let first = events.first().map_or(0, |event| event.sequence);
        let mut outcome = UserOutcome::new(user, first);
        let (mut events, mut kept) = (VecDeque::from(events), None);
        while let Some(event) = events.pop_front() {
            let sequence = event.sequence;
            if !self.delivery.target.wants(&event) {
                outcome.done = Some(sequence);
                continue;
            }
            if self.is_over() {
                outcome.is_partial = true;
                break;
            }
            let permits = match kept.take() {
                Some(permits) => permits,
                None => self.deliverer.attempts.permits(&self.delivery.tenant).await,
            };
            // Others, and the permits, may have taken their time.
            if self.delivery.target.with_values && self.now() >= read.plus(READ_AGAIN) {
                events.push_front(event);
                let Some(present) = self.read_again(user, &events).await? else {
                    outcome.add(self.unreadable(user, sequence), Reply::Unreadable);
                    break;
                };
                (events, read, kept) = (present, self.now(), Some(permits));
                continue;
            }
            let (attempt, reply) = self.attempt(&event, permits).await;
            if !outcome.add(attempt, reply) {
                if !reply.is_of_event() {
                    self.is_halted.store(true, Ordering::Relaxed);
                }
                break;
            }
        }
        Ok(outcome)
    }

    /// Whether no more events are sent.
    fn is_over(&self) -> bool {
        if Instant::now() >= self.until || self.deliverer.is_stopping() {
            self.is_halted.store(true, Ordering::Relaxed);
        }
        self.is_halted.load(Ordering::Relaxed)
    }

    /// Events as the history has them now; none if it cannot be read.
    async fn read_again(
        &self,
        user: LocalityId,
        events: &VecDeque<Event>,
    ) -> Result<Option<VecDeque<Event>>, Error> {
        let (Some(first), Some(last)) = (events.front(), events.back()) else {
            return Ok(Some(VecDeque::new()));
        };
        let (first, last) = (first.sequence, last.sequence);
        // Between them there may be events that are not for the receiver.
        let count = last.saturating_sub(first).saturating_add(1).min(MAX_READ) as usize;
        let Some(present) = self.read(user, (first, last), count).await? else { return Ok(None) };
        if present.len() < events.len() {
            let (tenant, id) = (&self.delivery.tenant, &self.delivery.id);
            let gone = events.len() - present.len();
            tracing::info!(%tenant, delivery = id, gone, "events are in no history any more");
        }
        Ok(Some(present.into()))
    }

    /// Events that the history has; none if it cannot be read. That is an error of the user, and
    /// holds up nobody else.
    async fn read(
        &self,
        user: LocalityId,
        numbers: (u64, u64),
        limit: usize,
    ) -> Result<Option<Vec<Event>>, Error> {
        let (tenant, id) = (&self.delivery.tenant, &self.delivery.id);
        match self.deliverer.directory.held_events(tenant, user, numbers, limit).await {
            Ok(events) => Ok(Some(events)),
            Err(error @ Error::Internal(_)) => {
                let error = error.with_causes();
                tracing::warn!(%tenant, delivery = id, %error, "events of a user are unreadable");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn now(&self) -> Timestamp {
        self.deliverer.directory.now().time
    }

    fn unreadable(&self, user: LocalityId, sequence: u64) -> Attempt {
        let (time, result) = (self.now(), result_of(Reply::Unreadable));
        Attempt { user, sequence, time, took: Duration::ZERO, result }
    }

    async fn attempt(&self, event: &Event, permits: Permits) -> (Attempt, Reply) {
        let (began, time) = (Instant::now(), self.now());
        let message = event_message(event);
        let reply = match cloud_event::body(&message, self.delivery.target.with_values) {
            Ok(body) => {
                let message = Message { id: cloud_event::event_id(&message), body: &body };
                self.deliverer.attempts.send(permits, self.receiver, message).await
            }
            // An event that has no form waits, as one that the receiver does not take.
            Err(_) => Reply::Unreadable,
        };
        let attempt = Attempt {
            user: event.user,
            sequence: event.sequence,
            time,
            took: began.elapsed(),
            result: result_of(reply),
        };
        (attempt, reply)
    }
}
