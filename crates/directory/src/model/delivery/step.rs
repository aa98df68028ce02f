//! The steps of deliveries.

use std::fmt;
use std::time::Duration;

use locality_uuid::LocalityId;

use super::held::{HeldUsers, MAX_HELD_USERS};
use super::record::{DeliveryProgress, DeliveryTarget, EventDelivery};
use crate::error::{DeliveryError, Error};
use crate::model::bulk::lease::Lease;
use crate::model::event::EventKind;
use crate::timestamp::Timestamp;

/// The time after which another server takes over from one that does not renew its lease.
pub const LEASE: Duration = Duration::from_secs(15);
/// The reason of a delivery whose next events the store does not have any more.
pub const EVENTS_EXPIRED: &str = "EVENTS_EXPIRED";

/// A step of a delivery.
#[derive(Clone, Debug, PartialEq)]
pub enum DeliveryStep {
    /// Creates it. Has no effect if it exists with the same target.
    Create(Box<EventDelivery>),
    /// Changes it.
    Update(Box<DeliveryUpdate>),
    /// Removes it. Has no effect if it is gone.
    Delete,
    /// Sends events of these users again.
    Replay(HeldUsers),
    /// Gives this server the right to deliver, unless another has it.
    Take(LocalityId),
    /// Takes a step of this server. Has no effect unless it has the lease.
    Run(LocalityId, DeliveryRunStep),
}

/// Changes of a delivery. Absent ones leave it as it is.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DeliveryChanges {
    /// The URL of the receiver.
    pub url: Option<String>,
    /// The kinds of events.
    pub kinds: Option<Vec<EventKind>>,
    /// Whether events have their values.
    pub with_values: Option<bool>,
    /// The secrets of the signatures.
    pub secrets: Option<Vec<String>>,
    /// The purpose, for people.
    pub description: Option<String>,
    /// Whether it is paused.
    pub paused: Option<bool>,
}

/// Without the secrets.
impl fmt::Debug for DeliveryChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, kinds, with_values, secrets: _, description, paused } = self;
        let mut shown = f.debug_struct("DeliveryChanges");
        shown.field("url", url).field("kinds", kinds).field("with_values", with_values);
        shown.field("description", description).field("paused", paused).finish_non_exhaustive()
    }
}

impl DeliveryChanges {
    /// The target after the changes.
    fn apply(&self, target: &DeliveryTarget) -> DeliveryTarget {
        let Self { url, kinds, with_values, secrets, description, paused: _ } = self;
        DeliveryTarget {
            url: url.as_ref().unwrap_or(&target.url).clone(),
            kinds: kinds.as_ref().unwrap_or(&target.kinds).clone(),
            with_values: with_values.unwrap_or(target.with_values),
            secrets: secrets.as_ref().unwrap_or(&target.secrets).clone(),
            description: description.as_ref().unwrap_or(&target.description).clone(),
        }
    }
}

/// A change on behalf of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryUpdate {
    /// The changes.
    pub changes: DeliveryChanges,
    /// The end of the feed, from which one goes on that is paused because its events are gone. If
    /// it is empty, that one is soon paused again.
    pub end: Vec<u8>,
    /// The caller.
    pub caller: String,
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
            Self::Update(update) => Ok(edited(existing()?, |after| apply(now, after, update))),
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

fn apply(now: Timestamp, after: &mut EventDelivery, update: &DeliveryUpdate) {
    let DeliveryUpdate { changes, end, caller } = update;
    let target = changes.apply(&after.target);
    if target != after.target {
        after.target = target;
        // Another receiver may answer.
        after.progress.stall = None;
    }
    match changes.paused {
        Some(true) => after.stop("PAUSED", caller, now),
        Some(false) => {
            let pause = after.pause.take();
            after.progress.stall = None;
            after.progress.held.restart(now);
            let has_lost = pause.is_some_and(|pause| pause.reason == EVENTS_EXPIRED);
            if has_lost && !end.is_empty() {
                after.progress.position.clone_from(end);
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
