//! Deliveries as the API's messages.

use locality_uuid::LocalityId;

use crate::encoded::encode::time_message;
use crate::encoded::event::event_type;
use crate::model::delivery::held::Held;
use crate::model::delivery::log::{Attempt, DeadLetter};
use crate::model::delivery::record::{DeliveryProgress, EventDelivery};
use polynym_proto::v1;
use polynym_proto::v1::list_delivery_attempts_response as attempts;

/// A delivery as the API's message. It has no secrets.
pub fn delivery_message(delivery: &EventDelivery) -> v1::Delivery {
    let DeliveryProgress { held, stall, log, .. } = &delivery.progress;
    let (target, pause) = (&delivery.target, delivery.pause.as_ref());
    let state = match pause {
        Some(_) => v1::DeliveryState::Paused,
        None => v1::DeliveryState::Active,
    };
    v1::Delivery {
        delivery_id: delivery.id.clone(),
        tenant: delivery.tenant.as_str().to_owned(),
        url: target.url.clone(),
        types: target.kinds.iter().map(|kind| event_type(*kind).into()).collect(),
        ids_only: !target.with_values,
        description: target.description.clone(),
        secret_count: target.secrets.len() as i32,
        state: state.into(),
        pause_reason: pause.map(|pause| pause.reason.clone()).unwrap_or_default(),
        paused_by: pause.map(|pause| pause.caller.clone()).unwrap_or_default(),
        pause_time: pause.map(|pause| time_message(pause.time)),
        caller: delivery.caller.clone(),
        create_time: Some(time_message(delivery.create_time)),
        update_time: Some(time_message(delivery.update_time)),
        delivered: log.delivered as i64,
        failed_attempts: log.failed as i64,
        dead_letters: log.dead as i64,
        held_users: (held.len() + delivery.replays.len()) as i32,
        last_delivered_time: log.last_delivered.map(time_message),
        stall_reason: stall.as_ref().map(|stall| stall.result.clone()).unwrap_or_default(),
        next_attempt_time: stall.as_ref().map(|stall| time_message(stall.until)),
    }
}

/// The attempts of a delivery, and the events that wait or were given up, as the API's message.
pub fn attempts_message(delivery: &EventDelivery) -> v1::ListDeliveryAttemptsResponse {
    let event_id = |user: LocalityId, sequence: u64| format!("{user}:{sequence}");
    let attempt = |attempt: &Attempt| attempts::Attempt {
        event_id: event_id(attempt.user, attempt.sequence),
        time: Some(time_message(attempt.time)),
        took: prost_types::Duration::try_from(attempt.took).ok(),
        result: attempt.result.clone(),
    };
    let held = |(user, held): (LocalityId, &Held)| attempts::HeldUser {
        event_id: event_id(user, held.first),
        events: held.last.saturating_add(1).saturating_sub(held.first) as i64,
        attempts: held.attempts as i32,
        next_attempt_time: Some(time_message(held.next_time)),
    };
    let letter = |letter: &DeadLetter| attempts::DeadLetter {
        event_id: event_id(letter.user, letter.sequence),
        time: Some(time_message(letter.time)),
        result: letter.result.clone(),
    };
    let mut waiting: Vec<_> =
        delivery.progress.held.iter().chain(delivery.replays.iter()).collect();
    waiting.sort_by_key(|(user, held)| (held.next_time, *user));
    let log = &delivery.progress.log;
    v1::ListDeliveryAttemptsResponse {
        attempts: log.attempts.iter().rev().map(attempt).collect(),
        held_users: waiting.into_iter().map(held).collect(),
        dead_letters: log.dead_letters.iter().rev().map(letter).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoded::delivery::tests::delivery;

    #[test]
    fn no_message_has_a_secret() {
        let delivery = delivery();
        let texts = [
            format!("{:?}", delivery_message(&delivery)),
            format!("{:?}", attempts_message(&delivery)),
        ];
        assert!(texts.iter().all(|text| !text.contains("whsec")), "{texts:?}");
        assert_eq!((delivery_message(&delivery).secret_count, texts.len()), (2, 2));
        let attempts = attempts_message(&delivery);
        let results: Vec<_> = attempts.attempts.iter().map(|attempt| &*attempt.result).collect();
        assert_eq!((results, attempts.held_users.len()), (vec!["200", "500"], 2));
    }
}
