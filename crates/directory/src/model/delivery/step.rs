//! The steps of deliveries.

use std::time::Duration;

use locality_uuid::LocalityId;

use super::held::{HeldUsers, MAX_HELD_USERS};
use super::record::{DeliveryProgress, DeliveryTarget, EventDelivery};
use crate::error::{DeliveryError, Error};
use crate::model::bulk::lease::Lease;
use crate::timestamp::Timestamp;

/// The time after which another server takes over from one that does not renew its lease.
pub const LEASE: Duration = Duration::from_secs(15);

/// A step of a delivery.
#[derive(Clone, Debug, PartialEq)]
pub enum DeliveryStep {
    /// Creates it. Has no effect if it exists with the same target.
    Create(Box<EventDelivery>),
    /// Changes it, on behalf of this caller.
    Update(Box<DeliveryUpdate>, String),
    /// Removes it. Has no effect if it is gone.
    Delete,
    /// Sends events of these users again.
    Replay(HeldUsers),
    /// Gives this server the right to deliver, unless another has it.
    Take(LocalityId),
    /// Takes a step of this server. Has no effect unless it has the lease.
    Run(LocalityId, DeliveryRunStep),
}

/// The fields of a delivery to change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryUpdate {
    /// The new target.
    pub target: Option<DeliveryTarget>,
    /// Whether it is paused.
    pub paused: Option<bool>,
    /// The position from which a paused one goes on, if the events after its own are gone.
    pub position: Option<Vec<u8>>,
}

/// A step of the server that delivers.
#[derive(Clone, Debug, PartialEq)]
pub enum DeliveryRunStep {
    /// Renews the lease.
    Renew,
    /// Records progress.
    Save(Box<DeliveryProgress>),
    /// Records progress, and lets another server deliver.
    Release(Box<DeliveryProgress>),
    /// Records progress, and pauses it for this reason.
    Pause(Box<DeliveryProgress>, String),
}

/// The outcome of a step.
#[derive(Debug)]
pub(crate) enum Stepped {
    /// It has no effect, and no answer.
    Nothing,
    /// The delivery stays as it is.
    Unchanged(Box<EventDelivery>),
    /// The delivery after the step.
    Put(Box<EventDelivery>),
    /// It is removed.
    Removed,
}

impl DeliveryStep {
    /// Takes the step of the delivery that is stored, if it is. A new one may be created.
    pub(crate) fn apply(
        &self,
        stored: Option<&EventDelivery>,
        now: Timestamp,
    ) -> Result<Stepped, Error> {
        let existing = || stored.ok_or(Error::Delivery(DeliveryError::NotFound));
        match self {
            Self::Create(new) => create(stored, new),
            Self::Update(update, caller) => {
                Ok(edited(existing()?, |after| apply(now, after, update, caller)))
            }
            Self::Delete => Ok(stored.map_or(Stepped::Nothing, |_| Stepped::Removed)),
            Self::Replay(events) => replay(existing()?, events),
            Self::Take(server) => {
                Ok(stored.map_or(Stepped::Nothing, |present| take(now, present, *server)))
            }
            Self::Run(server, step) => {
                let is_owner = |present: &&EventDelivery| {
                    present.lease.is_some_and(|lease| lease.owner == *server)
                };
                let owned = stored.filter(is_owner);
                Ok(owned.map_or(Stepped::Nothing, |present| run(now, present, *server, step)))
            }
        }
    }
}

fn create(stored: Option<&EventDelivery>, new: &EventDelivery) -> Result<Stepped, Error> {
    match stored {
        Some(present) if present.target == new.target => {
            Ok(Stepped::Unchanged(Box::new(present.clone())))
        }
        Some(_) => Err(Error::Delivery(DeliveryError::Exists)),
        None => Ok(put(new.clone())),
    }
}

fn apply(now: Timestamp, after: &mut EventDelivery, update: &DeliveryUpdate, caller: &str) {
    if let Some(target) = &update.target {
        after.target.clone_from(target);
        // Another receiver may answer.
        after.progress.stall = None;
    }
    match update.paused {
        Some(true) => after.stop("PAUSED", caller, now),
        Some(false) => {
            after.pause = None;
            after.progress.stall = None;
            after.progress.held.restart(now);
            if let Some(position) = &update.position {
                after.progress.position.clone_from(position);
            }
        }
        None => {}
    }
    after.update_time = now.max(after.update_time);
}

/// Adds events to those that are sent again.
fn replay(present: &EventDelivery, events: &HeldUsers) -> Result<Stepped, Error> {
    let mut after = present.clone();
    let has_room = events.iter().all(|(user, held)| after.replays.hold(user, held.clone()));
    // All of them must find room beside those that wait.
    let mut all = after.progress.held.clone();
    let fits = after.replays.iter().all(|(user, held)| all.hold(user, held.clone()));
    match has_room && fits {
        true => Ok(put(after)),
        false => Err(Error::Delivery(DeliveryError::TooManyHeld { limit: MAX_HELD_USERS })),
    }
}

fn take(now: Timestamp, present: &EventDelivery, server: LocalityId) -> Stepped {
    let is_others = present.lease.is_some_and(|lease| lease.owner != server && lease.until > now);
    if present.pause.is_some() || is_others {
        return Stepped::Nothing;
    }
    edited(present, |after| {
        take_replays(after);
        after.lease = Some(lease(now, server));
    })
}

/// Takes a step of the server that has the lease. One that was paused meanwhile stays so.
fn run(
    now: Timestamp,
    present: &EventDelivery,
    server: LocalityId,
    step: &DeliveryRunStep,
) -> Stepped {
    edited(present, |after| {
        after.lease = Some(lease(now, server));
        match step {
            DeliveryRunStep::Renew => {}
            DeliveryRunStep::Save(progress) => save(after, progress),
            DeliveryRunStep::Release(progress) => {
                save(after, progress);
                // From now on, so that those that have waited longer come first.
                after.lease = Some(Lease { owner: server, until: now });
            }
            DeliveryRunStep::Pause(progress, reason) => {
                save(after, progress);
                after.stop(reason, "", now);
            }
        }
    })
}

fn save(after: &mut EventDelivery, progress: &DeliveryProgress) {
    after.progress.clone_from(progress);
    take_replays(after);
}

/// Adds the events that somebody wants again to those that wait. Those without room stay.
fn take_replays(after: &mut EventDelivery) {
    let held = &mut after.progress.held;
    let left = after.replays.iter().filter(|(user, events)| !held.hold(*user, (*events).clone()));
    after.replays = left.map(|(user, events)| (user, events.clone())).collect();
}

fn lease(now: Timestamp, owner: LocalityId) -> Lease {
    Lease { owner, until: now.plus(LEASE) }
}

fn edited(before: &EventDelivery, edit: impl FnOnce(&mut EventDelivery)) -> Stepped {
    let mut after = before.clone();
    edit(&mut after);
    if after == *before { Stepped::Unchanged(Box::new(after)) } else { put(after) }
}

fn put(delivery: EventDelivery) -> Stepped {
    Stepped::Put(Box::new(delivery))
}
