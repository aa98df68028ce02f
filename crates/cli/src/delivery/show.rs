//! The text of deliveries.

use crate::output::printable;
use polynym_presentation::event::name;
use polynym_presentation::time;
use polynym_proto::v1::{Delivery, DeliveryState, ListDeliveryAttemptsResponse};

/// The row of a table.
pub fn row(delivery: &Delivery) -> [String; 6] {
    [
        printable(&delivery.delivery_id).into_owned(),
        printable(&delivery.url).into_owned(),
        state(delivery),
        delivery.delivered.to_string(),
        delivery.held_users.to_string(),
        delivery.dead_letters.to_string(),
    ]
}

/// A delivery, a line for each of its parts.
pub fn text(delivery: &Delivery) -> String {
    let types: Vec<_> = delivery.types().map(name).collect();
    let types = if types.is_empty() { "all".to_owned() } else { types.join(", ") };
    let values = if delivery.ids_only { "ids alone" } else { "with values" };
    let mut lines = vec![
        format!("delivery {}", printable(&delivery.delivery_id)),
        format!("  url: {}", printable(&delivery.url)),
        format!("  events: {types}, {values}"),
        format!("  secrets: {}", delivery.secret_count),
        format!("  state: {}", state(delivery)),
    ];
    if !delivery.description.is_empty() {
        lines.push(format!("  for: {}", printable(&delivery.description)));
    }
    lines.join("\n") + "\n"
}

/// The attempts of a delivery, the events that wait, and those that were given up.
pub fn attempts(answer: &ListDeliveryAttemptsResponse) -> String {
    let mut text = String::new();
    for attempt in &answer.attempts {
        let time = time::text(attempt.time.as_ref());
        let (event, result) = (&attempt.event_id, printable(&attempt.result));
        text += &format!("{time}  {event}  {result}\n");
    }
    for held in &answer.held_users {
        let time = time::text(held.next_attempt_time.as_ref());
        let (event, attempts) = (&held.event_id, held.attempts);
        text += &format!("waits until {time}: {event}, after {attempts} attempts\n");
    }
    for letter in &answer.dead_letters {
        let time = time::text(letter.time.as_ref());
        let (event, result) = (&letter.event_id, printable(&letter.result));
        text += &format!("given up {time}: {event}, {result}\n");
    }
    text
}

fn state(delivery: &Delivery) -> String {
    match (delivery.state(), &*delivery.stall_reason) {
        (DeliveryState::Paused, _) => format!("paused: {}", printable(&delivery.pause_reason)),
        (_, "") => "active".to_owned(),
        (_, reason) => format!("waits: {}", printable(reason)),
    }
}
