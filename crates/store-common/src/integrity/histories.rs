//! The check of users against their histories, and of ended ownerships against both.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;
use tokio::time::sleep;

use super::checkable::{CheckableStore, Presence};
use super::finding::{Finding, Inconsistency};
use super::limits::{BATCH_ROWS, MAX_CONCURRENT_CHECKS, PART_EVENTS};
use polynym_directory::{
    EndedOwnerships, Error, Event, Ownership, Policies, TenantRecord, Timestamp, User,
    check_history,
};
use polynym_identifier::IdentityKey;

/// The pauses between repeated reads: a shard may not show a commit yet.
const REREAD_DELAYS: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
];

/// A user with its history.
#[derive(Clone, Debug)]
pub struct Past {
    /// The user.
    user: User,
    /// Its events in the same snapshot, the newest first.
    events: Vec<Event>,
    /// The earliest time of the tenant's history.
    begin: Timestamp,
}

impl Past {
    /// A user of a tenant, with its events.
    pub fn new(user: User, events: Vec<Event>, tenant: Option<&TenantRecord>) -> Self {
        let now = Timestamp::now();
        let begin = tenant.map_or_else(
            || Policies::default().history_begins(now),
            |tenant| tenant.policies.history_begins(now),
        );
        Self { user, events, begin }
    }

    /// The number of its events.
    pub fn event_count(&self) -> u64 {
        self.events.len() as u64
    }

    /// The fault of the history itself. Changes from before it begins may have no event.
    fn fault(&self) -> Option<Finding> {
        let known = self.events.iter().take_while(|event| event.time >= self.begin).count();
        let outcome = check_history(&self.user, &self.events[..known]);
        outcome.is_err().then(|| Finding::of_user(Inconsistency::History, self.user.id))
    }

    /// The keys of the identities that the user lost, with the times, within the tenant's history.
    fn lost(&self) -> Vec<(IdentityKey, Timestamp)> {
        let events = self.events.iter().filter(|event| event.time >= self.begin);
        events.flat_map(|event| event.lost_keys().map(|key| (key, event.time))).collect()
    }

    /// Whether the history has the end of an ownership, or does not reach back to it.
    fn fits(&self, key: &IdentityKey, ownership: &Ownership) -> bool {
        let reaches = self.events.last().is_some_and(|first| {
            first.sequence == 1 && first.time <= ownership.end || first.time < ownership.end
        });
        let ends_ownership = |event: &Event| {
            event.time == ownership.end && event.lost_keys().any(|known| known == *key)
        };
        !reaches || ownership.end < self.begin || self.events.iter().any(ends_ownership)
    }
}

/// Whether the ended ownerships of a key include one of this user that ended at `time`. A full list
/// may have dropped it: clocks differ, so any end in the list may be later than a dropped one.
fn has_ended(ended: &EndedOwnerships, user: LocalityId, time: Timestamp) -> bool {
    let is_full = ended.0.len() == EndedOwnerships::MAX;
    ended
        .0
        .iter()
        .any(|one| one.user == Some(user) && one.end == time || is_full && time <= one.end)
}

/// Some users with their histories.
type Part = Vec<(LocalityId, Presence<Past>)>;

/// The first of these users with their histories, and the other users.
async fn next_part<'u, A: CheckableStore>(
    store: &A,
    users: &'u [LocalityId],
) -> Result<(Part, &'u [LocalityId]), Error> {
    let pasts = store.pasts(users, PART_EVENTS).await?;
    let (read, left) = users.split_at(pasts.len().max(1).min(users.len()));
    Ok((read.iter().copied().zip(pasts).collect(), left))
}

/// The faults of the histories of users, and their lost identities that have no ended ownership.
/// Those that a read of the batch suspects are read again one by one.
pub(super) async fn histories_faults<A: CheckableStore>(
    store: &A,
    users: &[LocalityId],
) -> Result<Vec<Finding>, Error> {
    let (mut suspects, mut left) = (BTreeSet::new(), users);
    while !left.is_empty() {
        let (part, others) = next_part(store, left).await?;
        suspects.extend(suspects_of(store, part).await?);
        left = others;
    }
    checked_again(suspects, |user| history_faults(store, user)).await
}

/// The faults of suspects, each of which is read again by itself.
async fn checked_again<S, F>(
    suspects: BTreeSet<S>,
    check: impl Fn(S) -> F,
) -> Result<Vec<Finding>, Error>
where
    F: Future<Output = Result<Vec<Finding>, Error>>,
{
    let checks = stream::iter(suspects).map(check).buffered(MAX_CONCURRENT_CHECKS);
    Ok(checks.try_collect::<Vec<_>>().await?.concat())
}

/// The users of a part whose histories may have faults.
async fn suspects_of<A: CheckableStore>(
    store: &A,
    part: Part,
) -> Result<BTreeSet<LocalityId>, Error> {
    let (mut suspects, mut lost) = (BTreeSet::new(), Vec::new());
    for (user, past) in part {
        let Presence::Present(past) = past else {
            suspects.extend(matches!(past, Presence::Unreadable).then_some(user));
            continue;
        };
        suspects.extend(past.fault().map(|_| user));
        lost.extend(past.lost().into_iter().map(|(key, time)| (user, key, time)));
    }
    for part in lost.chunks(BATCH_ROWS) {
        let keys: Vec<_> = part.iter().map(|(_, key, _)| key.clone()).collect();
        for ((user, _, time), ended) in part.iter().zip(store.ended_at(&keys).await?) {
            suspects.extend((!has_ended(&ended, *user, *time)).then_some(*user));
        }
    }
    Ok(suspects)
}

/// The faults of a user's history, and the lost identities that have no ended ownership.
async fn history_faults<A: CheckableStore>(
    store: &A,
    user: LocalityId,
) -> Result<Vec<Finding>, Error> {
    let past = match past_of(store, user).await? {
        Presence::Absent => return Ok(Vec::new()),
        Presence::Unreadable => return Ok(vec![Finding::of_user(Inconsistency::History, user)]),
        Presence::Present(past) => past,
    };
    let (keys, times): (Vec<_>, Vec<_>) = past.lost().into_iter().unzip();
    let ended = store.ended_at(&keys).await?;
    let mut faults: Vec<_> = past.fault().into_iter().collect();
    for ((key, time), ended) in keys.into_iter().zip(times).zip(ended) {
        let is_there = async || -> Result<bool, Error> {
            let ended = store.ended_at(slice::from_ref(&key)).await?;
            Ok(ended.iter().any(|ended| has_ended(ended, user, time)))
        };
        if !has_ended(&ended, user, time) && !holds_soon(is_there).await? {
            faults.push(Finding::of_ownership(key, Some(user)));
        }
    }
    Ok(faults)
}

/// A user with its history.
async fn past_of<A: CheckableStore>(store: &A, user: LocalityId) -> Result<Presence<Past>, Error> {
    let past = store.pasts(&[user], PART_EVENTS).await?.pop();
    Ok(past.unwrap_or(Presence::Absent))
}

/// The faults of the ended ownerships of keys. Those that a read of the batch suspects are read
/// again one by one.
pub(super) async fn ended_rows_faults<A: CheckableStore>(
    store: &A,
    rows: &[(IdentityKey, EndedOwnerships)],
) -> Result<Vec<Finding>, Error> {
    let mut owners: BTreeMap<LocalityId, Vec<(usize, &Ownership)>> = BTreeMap::new();
    for (row, (_, ended)) in rows.iter().enumerate() {
        for ownership in &ended.0 {
            let Some(user) = ownership.user else { continue };
            owners.entry(user).or_default().push((row, ownership));
        }
    }
    let (users, mut suspects) = (owners.keys().copied().collect::<Vec<_>>(), BTreeSet::new());
    for mut left in users.chunks(BATCH_ROWS) {
        while !left.is_empty() {
            let (part, others) = next_part(store, left).await?;
            for (user, past) in &part {
                let fits = |row: usize, ownership| match past {
                    Presence::Absent => false,
                    Presence::Unreadable => true,
                    Presence::Present(past) => past.fits(&rows[row].0, ownership),
                };
                let owned = owners.get(user).into_iter().flatten();
                suspects.extend(owned.filter(|(row, one)| !fits(*row, one)).map(|(row, _)| *row));
            }
            left = others;
        }
    }
    checked_again(suspects, |row| ended_faults(store, &rows[row])).await
}

/// The faults of the ended ownerships of a key.
async fn ended_faults<A: CheckableStore>(
    store: &A,
    (key, ended): &(IdentityKey, EndedOwnerships),
) -> Result<Vec<Finding>, Error> {
    let mut faults = Vec::new();
    for ownership in &ended.0 {
        let Some(user) = ownership.user else { continue };
        let fits = async || -> Result<bool, Error> {
            match past_of(store, user).await? {
                Presence::Unreadable => return Ok(true),
                Presence::Present(past) if past.fits(key, ownership) => return Ok(true),
                Presence::Present(_) | Presence::Absent => {}
            }
            let again = store.ended_at(slice::from_ref(key)).await?;
            Ok(!again.iter().any(|again| again.0.contains(ownership)))
        };
        if !holds_soon(fits).await? {
            faults.push(Finding::of_ownership(key.clone(), Some(user)));
        }
    }
    Ok(faults)
}

/// Repeats a check until it succeeds, for a limited time: shards of a store in use may show a
/// commit at different times.
pub(super) async fn holds_soon(
    holds: impl AsyncFn() -> Result<bool, Error>,
) -> Result<bool, Error> {
    for pause in REREAD_DELAYS {
        if holds().await? {
            return Ok(true);
        }
        sleep(pause).await;
    }
    holds().await
}
