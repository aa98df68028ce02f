//! Deliveries as pages show them.

use polynym_presentation::event::{KINDS, word_of};
use polynym_proto::v1::list_delivery_attempts_response::{Attempt, DeadLetter, HeldUser};
use polynym_proto::v1::{Delivery, DeliveryState, ListDeliveryAttemptsResponse};

use super::Time;

/// A delivery.
pub struct DeliveryView {
    pub id: String,
    pub url: String,
    pub description: String,
    /// The kinds of events in words; empty for all.
    pub kinds: Vec<&'static str>,
    pub ids_only: bool,
    pub secrets: i32,
    pub is_paused: bool,
    /// Why it is paused, or sends nothing at present; empty if it sends.
    pub reason: String,
    /// The caller who paused it; empty if a server did.
    pub paused_by: String,
    /// Since when it is paused, or when it is tried again.
    pub reason_time: Option<Time>,
    pub delivered: i64,
    pub failed: i64,
    pub dead: i64,
    pub held: i32,
    pub last_delivered: Option<Time>,
}

impl DeliveryView {
    /// The view of a message.
    pub fn of(delivery: &Delivery) -> Self {
        let is_paused = delivery.state() == DeliveryState::Paused;
        let (reason, time) = match is_paused {
            true => (&delivery.pause_reason, &delivery.pause_time),
            false => (&delivery.stall_reason, &delivery.next_attempt_time),
        };
        Self {
            id: delivery.delivery_id.clone(),
            url: delivery.url.clone(),
            description: delivery.description.clone(),
            kinds: delivery.types().filter_map(word_of).collect(),
            ids_only: delivery.ids_only,
            secrets: delivery.secret_count,
            is_paused,
            reason: reason.clone(),
            paused_by: delivery.paused_by.clone(),
            reason_time: Time::of(time.as_ref()),
            delivered: delivery.delivered,
            failed: delivery.failed_attempts,
            dead: delivery.dead_letters,
            held: delivery.held_users,
            last_delivered: Time::of(delivery.last_delivered_time.as_ref()),
        }
    }

    /// The word of its state.
    pub fn state(&self) -> &'static str {
        match (self.is_paused, self.reason.is_empty()) {
            (true, _) => "paused",
            (false, true) => "active",
            (false, false) => "waiting",
        }
    }

    /// The meaning of a pause, in a sentence; empty if it is not known.
    pub fn advice(&self) -> &'static str {
        match (self.is_paused, &*self.reason) {
            (false, _) => "",
            (true, "PAUSED") => "Events wait until it goes on.",
            (true, "RECEIVER_GONE") => "The receiver has answered that it is gone for good (410).",
            (true, "RECEIVER_UNREACHABLE") => "The receiver could not be reached for a day.",
            (true, "TOO_MANY_HELD_USERS") => "The receiver refuses events of too many users.",
            (true, "EVENTS_EXPIRED") => {
                "The next events are not stored any more: it goes on with those from now on. Send \
                 those of the history again."
            }
            (true, "ADDRESS_REFUSED") => "This server does not send to the address.",
            (true, "RESTORED") => "The store is a copy: the original sends the events.",
            _ => "",
        }
    }
}

/// The latest attempts, the events that wait, and those that were given up.
pub struct AttemptViews {
    pub attempts: Vec<Outcome>,
    pub held: Vec<Outcome>,
    pub dead: Vec<Outcome>,
}

/// The result of sending an event.
pub struct Outcome {
    pub event: String,
    /// The id of the user.
    pub user: String,
    pub time: Option<Time>,
    pub result: String,
    /// The attempts to send it.
    pub attempts: i32,
}

/// The rows of each list that are shown.
pub const MAX_ROWS: usize = 50;

impl AttemptViews {
    /// The view of an answer.
    pub fn of(answer: &ListDeliveryAttemptsResponse) -> Self {
        let attempts = answer.attempts.iter().map(Outcome::of_attempt).take(MAX_ROWS);
        let held = answer.held_users.iter().map(Outcome::of_held).take(MAX_ROWS);
        let dead = answer.dead_letters.iter().map(Outcome::of_letter).take(MAX_ROWS);
        Self { attempts: attempts.collect(), held: held.collect(), dead: dead.collect() }
    }
}

/// The result of an attempt in words.
pub fn result_words(result: &str) -> String {
    let words = match result {
        "NAME_UNKNOWN" => "the name of the receiver is not known",
        "ADDRESS_REFUSED" => "this server does not send to the address",
        "TLS_FAILED" => "no secure connection",
        "NO_REPLY" => "no answer in time",
        "UNREADABLE" => "an answer that is not HTTP",
        "UNREACHABLE" => "no connection",
        status if status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit()) => {
            return format!("status {status}");
        }
        code => return code.replace('_', " ").to_lowercase(),
    };
    words.to_owned()
}

impl Outcome {
    /// The result in words.
    pub fn result_words(&self) -> String {
        result_words(&self.result)
    }

    fn of_event(event: &str) -> Self {
        let user = event.split(':').next().unwrap_or_default().to_owned();
        Self { event: event.to_owned(), user, time: None, result: String::new(), attempts: 0 }
    }

    fn of_attempt(attempt: &Attempt) -> Self {
        let (time, result) = (Time::of(attempt.time.as_ref()), attempt.result.clone());
        Self { time, result, ..Self::of_event(&attempt.event_id) }
    }

    fn of_held(held: &HeldUser) -> Self {
        let time = Time::of(held.next_attempt_time.as_ref());
        Self { time, attempts: held.attempts, ..Self::of_event(&held.event_id) }
    }

    fn of_letter(letter: &DeadLetter) -> Self {
        let (time, result) = (Time::of(letter.time.as_ref()), letter.result.clone());
        Self { time, result, ..Self::of_event(&letter.event_id) }
    }
}

/// The kinds of events to choose from: their names in forms, and words.
pub fn kinds() -> Vec<(String, &'static str)> {
    KINDS.iter().map(|words| (polynym_presentation::event::name(words.kind), words.word)).collect()
}
