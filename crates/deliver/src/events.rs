//! Sends the events of one user, one after the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use locality_uuid::LocalityId;
use polynym_directory::encoded::event::event_message;
use polynym_directory::{Attempt, Error, Event, EventDelivery};

use crate::attempts::result_of;
use crate::cloud_event;
use crate::deliverer::Deliverer;
use crate::receiver::{Message, Receiver, Reply};

/// The age of an event from which on it is read again before its values are sent: the values of a
/// user who was purged meanwhile are gone then.
const READ_AGAIN: Duration = Duration::from_secs(2);

/// Sends the events of users of one delivery.
pub struct UserSender<'d> {
    pub deliverer: &'d Deliverer,
    pub delivery: &'d EventDelivery,
    pub receiver: &'d Receiver,
    /// Whether no more are sent: the receiver cannot be reached, or somebody else delivers.
    pub is_halted: &'d AtomicBool,
}

/// What became of the events of a user.
pub struct UserOutcome {
    /// The user.
    pub user: LocalityId,
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

impl UserSender<'_> {
    /// Sends events of the feed, of one user and in order.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    pub async fn send(&self, user: LocalityId, events: Vec<Event>) -> Result<UserOutcome, Error> {
        let last = events.last().map(|event| event.sequence);
        let events = self.as_they_are(user, events).await?;
        let mut outcome = self.send_each(user, events).await;
        if !outcome.is_partial {
            outcome.done = last;
        }
        Ok(outcome)
    }

    /// Sends events that the history has, of one user and in order.
    pub async fn send_each(&self, user: LocalityId, events: Vec<Event>) -> UserOutcome {
        let (attempts, done, failure) = (Vec::new(), None, None);
        let mut outcome = UserOutcome { user, attempts, done, failure, is_partial: false };
        for event in events {
            if !self.delivery.target.wants(&event) {
                outcome.done = Some(event.sequence);
                continue;
            }
            if self.is_halted.load(Ordering::Relaxed) {
                outcome.is_partial = true;
                return outcome;
            }
            let (attempt, reply) = self.attempt(&event).await;
            let is_taken = matches!(reply, Reply::Taken(_));
            outcome.attempts.push((attempt, is_taken));
            if !is_taken {
                if !matches!(reply, Reply::Refused(_) | Reply::Silent) {
                    self.is_halted.store(true, Ordering::Relaxed);
                }
                outcome.failure = Some(Failure { sequence: event.sequence, reply });
                outcome.is_partial = true;
                return outcome;
            }
            outcome.done = Some(event.sequence);
        }
        outcome
    }

    /// The events as the history has them now, if they are to be sent with values.
    async fn as_they_are(&self, user: LocalityId, events: Vec<Event>) -> Result<Vec<Event>, Error> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(events) };
        let now = self.deliverer.directory.now().time;
        if !self.delivery.target.with_values || now < first.time.plus(READ_AGAIN) {
            return Ok(events);
        }
        let numbers = (first.sequence, last.sequence);
        let directory = &self.deliverer.directory;
        // Between them there may be events that are not for the receiver.
        let count = (last.sequence - first.sequence) as usize + 1;
        directory.held_events(&self.delivery.tenant, user, numbers, count).await
    }

    async fn attempt(&self, event: &Event) -> (Attempt, Reply) {
        let (began, time) = (Instant::now(), self.deliverer.directory.now().time);
        let message = event_message(event);
        let reply = match cloud_event::body(&message, self.delivery.target.with_values) {
            Ok(body) => {
                let message = Message { id: cloud_event::event_id(&message), body: &body };
                let attempts = &self.deliverer.attempts;
                attempts.send(&self.delivery.tenant, self.receiver, message).await
            }
            // An event that has no form is refused as one that the receiver does not take.
            Err(_) => Reply::Refused(0),
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
