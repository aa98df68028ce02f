//! Events that are delivered again.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use crate::error::{DeliveryError, Error, Invalid};
use crate::model::delivery::held::{Held, HeldUsers, MAX_HELD_USERS};
use crate::model::delivery::record::DeliveryTarget;
use crate::model::delivery::step::DeliveryStep;
use crate::service::Directory;
use crate::service::context::{MutationCall, RequestContext};
use crate::stores::{LIST_BYTES, PageLimit};
use crate::timestamp::Timestamp;

/// The events in one read, and the reads for one call.
const READ_EVENTS: usize = 1_000;
const MAX_READS: usize = 100;

/// The events to deliver again.
#[derive(Clone, Copy, Debug)]
pub enum Replay<'r> {
    /// Those from a time on.
    From(Timestamp),
    /// The one with this id.
    Event(&'r str),
}

impl Directory {
    /// Delivers events again, beside those that wait. Returns the number of users.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Delivery`], and those of [`crate::stores::Mutations::mutate`].
    pub async fn replay_delivery(
        &self,
        call: MutationCall<'_>,
        id: &str,
        replay: Replay<'_>,
    ) -> Result<usize, Error> {
        let present = self.delivery(&call.context, id).await?;
        let now = call.context.now.time;
        let events = match replay {
            Replay::Event(event) => {
                let (user, sequence) = read_event_id(event)?;
                [(user, Held::new(sequence, sequence, now))].into_iter().collect()
            }
            Replay::From(time) => self.events_since(&call.context, &present.target, time).await?,
        };
        let users = events.len();
        if users > 0 {
            self.delivery_call(call, id, DeliveryStep::Replay(events)).await?;
        }
        Ok(users)
    }

    /// The wanted events of a tenant from a time on.
    async fn events_since(
        &self,
        context: &RequestContext<'_>,
        target: &DeliveryTarget,
        from: Timestamp,
    ) -> Result<HeldUsers, Error> {
        let mut users = BTreeMap::<LocalityId, Held>::new();
        let (mut before, times) = (None, from..Timestamp::MAX);
        for _ in 0..MAX_READS {
            let limit = PageLimit::new(READ_EVENTS, LIST_BYTES);
            let histories = &self.backend.histories;
            let part = histories.newest_events(&context.tenant, times.clone(), before, limit).await;
            let part = part?;
            for (_, event) in part.events.iter().filter(|(_, event)| target.wants(event)) {
                let number = event.sequence;
                let new = || Held::new(number, number, context.now.time);
                let held = users.entry(event.user).or_insert_with(new);
                held.first = held.first.min(number);
                held.last = held.last.max(number);
            }
            if users.len() > MAX_HELD_USERS {
                break;
            }
            before = part.next;
            if before.is_none() {
                return Ok(users.into_iter().collect());
            }
        }
        Err(Error::Delivery(DeliveryError::TooManyHeld { limit: MAX_HELD_USERS }))
    }
}

/// The user and the number of an event.
fn read_event_id(text: &str) -> Result<(LocalityId, u64), Error> {
    let read = || {
        let (user, sequence) = text.split_once(':')?;
        let sequence = sequence.parse().ok().filter(|sequence| *sequence > 0)?;
        Some((user.parse().ok()?, sequence))
    };
    let rule = "is no event's id: a user's id, a colon and a number";
    read().ok_or_else(|| Error::invalid(Invalid::Field, "event_id", rule))
}
