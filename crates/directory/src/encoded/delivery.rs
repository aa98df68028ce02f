//! The stored form of deliveries.

use std::time::Duration;

use locality_uuid::LocalityId;
use prost::Message;

use crate::encoded::decode::read_tenant;
use crate::encoded::error::WireError;
use crate::encoded::event::{event_type, read_event_type};
use crate::model::bulk::lease::Lease;
use crate::model::delivery::held::{Held, HeldUsers};
use crate::model::delivery::log::{Attempt, DeadLetter, DeliveryLog};
use crate::model::delivery::record::{
    DeliveryPause, DeliveryProgress, DeliveryTarget, EventDelivery, Stall,
};
use crate::timestamp::Timestamp;
use polynym_proto::v1;

/// A delivery in a store.
#[derive(Clone, PartialEq, Message)]
struct Stored {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, tag = "2")]
    id: String,
    #[prost(string, tag = "3")]
    url: String,
    #[prost(enumeration = "v1::EventType", repeated, tag = "4")]
    kinds: Vec<i32>,
    #[prost(bool, tag = "5")]
    with_values: bool,
    #[prost(string, repeated, tag = "6")]
    secrets: Vec<String>,
    #[prost(string, tag = "7")]
    description: String,
    #[prost(message, optional, tag = "8")]
    pause: Option<StoredPause>,
    #[prost(string, tag = "9")]
    caller: String,
    #[prost(sint64, tag = "10")]
    created: i64,
    #[prost(sint64, tag = "11")]
    updated: i64,
    #[prost(bytes = "vec", tag = "12")]
    position: Vec<u8>,
    #[prost(message, repeated, tag = "13")]
    held: Vec<StoredHeld>,
    #[prost(message, optional, tag = "14")]
    stall: Option<StoredStall>,
    #[prost(message, optional, tag = "15")]
    log: Option<StoredLog>,
    #[prost(message, repeated, tag = "16")]
    replays: Vec<StoredHeld>,
    #[prost(bytes = "vec", tag = "17")]
    lease_owner: Vec<u8>,
    #[prost(sint64, optional, tag = "18")]
    lease_until: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredPause {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    caller: String,
    #[prost(sint64, tag = "3")]
    time: i64,
}

#[derive(Clone, PartialEq, Message)]
struct StoredHeld {
    #[prost(bytes = "vec", tag = "1")]
    user: Vec<u8>,
    #[prost(uint64, tag = "2")]
    first: u64,
    #[prost(uint64, tag = "3")]
    last: u64,
    #[prost(uint32, tag = "4")]
    attempts: u32,
    #[prost(sint64, optional, tag = "5")]
    since: Option<i64>,
    #[prost(sint64, tag = "6")]
    next: i64,
}

#[derive(Clone, PartialEq, Message)]
struct StoredStall {
    #[prost(string, tag = "1")]
    result: String,
    #[prost(sint64, tag = "2")]
    since: i64,
    #[prost(uint32, tag = "3")]
    attempts: u32,
    #[prost(sint64, tag = "4")]
    until: i64,
}

#[derive(Clone, PartialEq, Message)]
struct StoredLog {
    #[prost(uint64, tag = "1")]
    delivered: u64,
    #[prost(uint64, tag = "2")]
    failed: u64,
    #[prost(uint64, tag = "3")]
    dead: u64,
    #[prost(sint64, optional, tag = "4")]
    last_delivered: Option<i64>,
    #[prost(message, repeated, tag = "5")]
    attempts: Vec<StoredResult>,
    #[prost(message, repeated, tag = "6")]
    dead_letters: Vec<StoredResult>,
}

/// An attempt, or a dead letter.
#[derive(Clone, PartialEq, Message)]
struct StoredResult {
    #[prost(bytes = "vec", tag = "1")]
    user: Vec<u8>,
    #[prost(uint64, tag = "2")]
    sequence: u64,
    #[prost(sint64, tag = "3")]
    time: i64,
    #[prost(uint64, tag = "4")]
    millis: u64,
    #[prost(string, tag = "5")]
    result: String,
}

impl EventDelivery {
    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let DeliveryProgress { position, held, stall, log } = &self.progress;
        let target = &self.target;
        Stored {
            tenant: self.tenant.as_str().to_owned(),
            id: self.id.clone(),
            url: target.url.clone(),
            kinds: target.kinds.iter().map(|kind| event_type(*kind).into()).collect(),
            with_values: target.with_values,
            secrets: target.secrets.clone(),
            description: target.description.clone(),
            pause: self.pause.as_ref().map(|pause| StoredPause {
                reason: pause.reason.clone(),
                caller: pause.caller.clone(),
                time: pause.time.as_millis(),
            }),
            caller: self.caller.clone(),
            created: self.create_time.as_millis(),
            updated: self.update_time.as_millis(),
            position: position.clone(),
            held: stored_held(held),
            stall: stall.as_ref().map(stored_stall),
            log: Some(stored_log(log)),
            replays: stored_held(&self.replays),
            lease_owner: self
                .lease
                .map(|lease| lease.owner.as_bytes().to_vec())
                .unwrap_or_default(),
            lease_until: self.lease.map(|lease| lease.until.as_millis()),
        }
        .encode_to_vec()
    }

    /// Decodes the stored form of the delivery of this tenant with this id.
    ///
    /// # Errors
    /// [`WireError`] if it is damaged, or that of another one.
    pub fn decode((tenant, id): (&str, &str), bytes: &[u8]) -> Result<Self, WireError> {
        let stored = Stored::decode(bytes).map_err(|error| WireError(error.to_string()))?;
        if (&*stored.tenant, &*stored.id) != (tenant, id) {
            return Err(WireError("a delivery of another tenant or id".into()));
        }
        // One of a newer program is not left out: a list without kinds would mean all.
        let kinds = stored.kinds.iter().map(|kind| {
            let known = v1::EventType::try_from(*kind).ok().and_then(read_event_type);
            known.ok_or_else(|| WireError("an unknown kind of events".into()))
        });
        let kinds = kinds.collect::<Result<_, _>>()?;
        let lease = |until| {
            let (owner, until) = (read_id(&stored.lease_owner)?, Timestamp::from_millis(until));
            Ok::<_, WireError>(Lease { owner, until })
        };
        Ok(Self {
            tenant: read_tenant(&stored.tenant)?,
            lease: stored.lease_until.map(lease).transpose()?,
            id: stored.id,
            target: DeliveryTarget {
                url: stored.url,
                kinds,
                with_values: stored.with_values,
                secrets: stored.secrets,
                description: stored.description,
            },
            pause: stored.pause.map(|pause| DeliveryPause {
                reason: pause.reason,
                caller: pause.caller,
                time: Timestamp::from_millis(pause.time),
            }),
            caller: stored.caller,
            create_time: Timestamp::from_millis(stored.created),
            update_time: Timestamp::from_millis(stored.updated),
            progress: DeliveryProgress {
                position: stored.position,
                held: read_held(stored.held)?,
                stall: stored.stall.map(read_stall),
                log: read_log(stored.log.unwrap_or_default())?,
            },
            replays: read_held(stored.replays)?,
        })
    }
}

fn stored_held(users: &HeldUsers) -> Vec<StoredHeld> {
    let stored = |(user, held): (LocalityId, &Held)| StoredHeld {
        user: user.as_bytes().to_vec(),
        first: held.first,
        last: held.last,
        attempts: held.attempts,
        since: held.since.map(Timestamp::as_millis),
        next: held.next_time.as_millis(),
    };
    users.iter().map(stored).collect()
}

fn read_held(stored: Vec<StoredHeld>) -> Result<HeldUsers, WireError> {
    let read = |held: StoredHeld| {
        let user = read_id(&held.user)?;
        let held = Held {
            first: held.first,
            last: held.last,
            attempts: held.attempts,
            since: held.since.map(Timestamp::from_millis),
            next_time: Timestamp::from_millis(held.next),
        };
        Ok((user, held))
    };
    stored.into_iter().map(read).collect()
}

fn stored_stall(stall: &Stall) -> StoredStall {
    StoredStall {
        result: stall.result.clone(),
        since: stall.since.as_millis(),
        attempts: stall.attempts,
        until: stall.until.as_millis(),
    }
}

fn read_stall(stall: StoredStall) -> Stall {
    Stall {
        result: stall.result,
        since: Timestamp::from_millis(stall.since),
        attempts: stall.attempts,
        until: Timestamp::from_millis(stall.until),
    }
}

fn stored_log(log: &DeliveryLog) -> StoredLog {
    let attempt = |attempt: &Attempt| StoredResult {
        user: attempt.user.as_bytes().to_vec(),
        sequence: attempt.sequence,
        time: attempt.time.as_millis(),
        millis: attempt.took.as_millis() as u64,
        result: attempt.result.clone(),
    };
    let letter = |letter: &DeadLetter| StoredResult {
        user: letter.user.as_bytes().to_vec(),
        sequence: letter.sequence,
        time: letter.time.as_millis(),
        millis: 0,
        result: letter.result.clone(),
    };
    StoredLog {
        delivered: log.delivered,
        failed: log.failed,
        dead: log.dead,
        last_delivered: log.last_delivered.map(Timestamp::as_millis),
        attempts: log.attempts.iter().map(attempt).collect(),
        dead_letters: log.dead_letters.iter().map(letter).collect(),
    }
}

fn read_log(log: StoredLog) -> Result<DeliveryLog, WireError> {
    let attempt = |stored: StoredResult| {
        Ok(Attempt {
            user: read_id(&stored.user)?,
            sequence: stored.sequence,
            time: Timestamp::from_millis(stored.time),
            took: Duration::from_millis(stored.millis),
            result: stored.result,
        })
    };
    let letter = |stored: StoredResult| {
        Ok(DeadLetter {
            user: read_id(&stored.user)?,
            sequence: stored.sequence,
            time: Timestamp::from_millis(stored.time),
            result: stored.result,
        })
    };
    Ok(DeliveryLog {
        delivered: log.delivered,
        failed: log.failed,
        dead: log.dead,
        last_delivered: log.last_delivered.map(Timestamp::from_millis),
        attempts: log.attempts.into_iter().map(attempt).collect::<Result<_, WireError>>()?,
        dead_letters: log.dead_letters.into_iter().map(letter).collect::<Result<_, WireError>>()?,
    })
}

fn read_id(bytes: &[u8]) -> Result<LocalityId, WireError> {
    let id: [u8; 16] = bytes.try_into().map_err(|_| WireError("a malformed id".to_owned()))?;
    Ok(LocalityId::from(id))
}

#[cfg(test)]
pub(in crate::encoded) mod tests {
    use super::*;
    use crate::model::event::EventKind;
    use crate::model::tenant::Tenant;

    pub(in crate::encoded) fn delivery() -> EventDelivery {
        let (user, time) = (LocalityId::from([7; 16]), Timestamp::from_millis(1_000));
        let held = Held { attempts: 2, since: Some(time), ..Held::new(3, 9, time) };
        let result = || "500".to_owned();
        let mut log = DeliveryLog { dead: 3, ..DeliveryLog::default() };
        let took = Duration::from_millis(70);
        log.add(Attempt { user, sequence: 3, time, took, result: result() }, false);
        log.add(Attempt { user, sequence: 4, time, took, result: "200".to_owned() }, true);
        log.bury(DeadLetter { user, sequence: 2, time, result: result() });
        EventDelivery {
            target: DeliveryTarget {
                url: "https://example.com/".to_owned(),
                kinds: vec![EventKind::UserCreated, EventKind::IdentityMadePrimary],
                with_values: true,
                secrets: vec!["whsec_new".to_owned(), "whsec_old".to_owned()],
                description: "billing".to_owned(),
            },
            pause: Some(DeliveryPause { reason: "PAUSED".into(), caller: "ana".into(), time }),
            caller: "ana".to_owned(),
            progress: DeliveryProgress {
                position: vec![1, 2],
                held: [(user, held.clone())].into_iter().collect(),
                stall: Some(Stall { result: result(), since: time, attempts: 4, until: time }),
                log,
            },
            replays: [(LocalityId::from([8; 16]), held)].into_iter().collect(),
            lease: Some(Lease { owner: user, until: time }),
            ..EventDelivery::new(Tenant::DEFAULT, "billing", target(), Vec::new(), time)
        }
    }

    fn target() -> DeliveryTarget {
        DeliveryTarget {
            url: String::new(),
            kinds: Vec::new(),
            with_values: false,
            secrets: Vec::new(),
            description: String::new(),
        }
    }

    #[test]
    fn a_stored_delivery_is_read_again() {
        let (delivery, key) = (delivery(), (Tenant::DEFAULT.as_str(), "billing"));
        assert_eq!(EventDelivery::decode(key, &delivery.encode()).unwrap(), delivery);
        assert!(EventDelivery::decode(key, &[]).is_err());
        for other in [("other", "billing"), (key.0, "other")] {
            assert!(EventDelivery::decode(other, &delivery.encode()).is_err(), "{other:?}");
        }
    }
}
