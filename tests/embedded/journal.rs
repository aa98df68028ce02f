//! Histories in the embedded store: damaged rows, and rows that a purge or an expiry must remove.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;
use polynym_directory::{
    Error, Histories, LookUps, Mutation, Mutations, PageLimit, Policies, PolicyUpdate, Tenant,
    TenantChange, Timestamp, Update, UserChange, View,
};
use polynym_embedded::{Embedded, IntegritySession};
use polynym_identifier::Identifier;
use polynym_store_common::integrity::{CheckableStore, Past, Presence};
use redb::{ReadableDatabase, ReadableTable, TableDefinition};

use super::support::scenarios::store_command::findings;
use super::{database, open, users};

const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
const USERS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("users");
const ENDED: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("ended");

/// 2026-01-01T00:00:00Z, the time of the creation of users.
const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const HOUR: Duration = Duration::from_secs(60 * 60);
const MINUTE: Duration = Duration::from_secs(60);
const DAYS_400: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// A mutation some time after the start, in a tenant with this retention of history.
fn at(after: Duration, retention: Duration, mutation: Mutation) -> Mutation {
    let policies = Policies { history_retention: retention, ..(*mutation.policies).clone() };
    Mutation { now: START.plus(after).into(), policies: Arc::new(policies), ..mutation }
}

fn rename(n: usize, name: &str) -> Mutation {
    let update = Update::from_mask(None, name.to_owned(), Default::default()).unwrap();
    users::mutation(users::id(n), UserChange::Update(update))
}

fn link(n: usize, identifier: Identifier) -> Mutation {
    users::mutation(users::id(n), UserChange::Link(users::identity(identifier)))
}

fn unlink(n: usize, identifier: Identifier) -> Mutation {
    users::mutation(users::id(n), UserChange::Unlink(identifier))
}

fn purge(n: usize) -> Mutation {
    users::mutation(users::id(n), UserChange::Purge)
}

/// Later mutations, which remove what has expired.
async fn sweep(store: &Embedded, after: Duration) {
    for n in 100..110 {
        store.mutate(at(after, DAYS_400, users::creation(n))).await.unwrap();
    }
}

async fn count_events(store: &Embedded, n: usize) -> usize {
    let history =
        store.history(&Tenant::DEFAULT, users::id(n), None, PageLimit::unlimited()).await.unwrap();
    history.unwrap().events.len()
}

/// The users of all events.
fn users_of_events(folder: &Path) -> Vec<LocalityId> {
    let transaction = database(folder).begin_read().unwrap();
    let events = transaction.open_table(EVENTS).unwrap();
    let user = |row: &[u8]| LocalityId::from(<[u8; 16]>::try_from(&row[8..24]).unwrap());
    events.iter().unwrap().map(|row| user(row.unwrap().1.value())).collect()
}

fn ended_rows(folder: &Path) -> usize {
    let transaction = database(folder).begin_read().unwrap();
    transaction.open_table(ENDED).unwrap().iter().unwrap().count()
}

/// A change fails and writes nothing; the others of its group are committed. A purge removes the
/// damaged rows of its user.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_prevents_a_change_but_no_purge() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for n in 0..3 {
        store.mutate(users::creation(n)).await.unwrap();
    }
    store.mutate(unlink(1, users::email(1))).await.unwrap();
    let before = store.get(&Tenant::DEFAULT, &[users::id(0)], View::Full).await.unwrap();
    drop(store);
    let transaction = database(folder.path()).begin_write().unwrap();
    {
        let mut ended = transaction.open_table(ENDED).unwrap();
        for key in [users::keys(0), users::keys(1)].map(|[email, _]| email) {
            ended.insert(key.as_str().as_bytes(), &b"\xff"[..]).unwrap();
        }
        let mut events = transaction.open_table(EVENTS).unwrap();
        let cut = |row: &[u8]| row[8..24] == *users::id(2).as_bytes();
        let number = events.iter().unwrap().map(|row| row.unwrap()).find(|row| cut(row.1.value()));
        let number = number.map(|row| row.0.value()).unwrap();
        events.insert(number, &b"short"[..]).unwrap();
    }
    transaction.commit().unwrap();

    let store = open(folder.path()).unwrap();
    let group = vec![
        unlink(0, users::email(0)),
        users::creation(7),
        purge(1),
        purge(2),
        users::creation(8),
    ];
    let outcomes = store.mutate_all(group).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        let is_damaged = matches!(outcome, Err(Error::Internal(_)));
        assert_eq!((n, is_damaged), (n, n == 0), "{outcome:?}");
    }
    for n in [0, 7, 8] {
        assert!(users::look_up(&store, n).await.unwrap(), "user {n} has changed");
    }
    let after = store.get(&Tenant::DEFAULT, &[users::id(0)], View::Full).await.unwrap();
    assert_eq!(format!("{after:?}"), format!("{before:?}"));
    assert_eq!(count_events(&store, 0).await, 1);
    drop(store);
    let mut left = users_of_events(folder.path());
    left.sort_unstable();
    assert_eq!(left, [0, 7, 8].map(users::id), "the users of the events that are left");
    assert_eq!(ended_rows(folder.path()), 1, "the ended ownerships of the change that failed");
}

/// A retention that was shorter for a while makes later events expire before earlier ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_has_no_gap_that_hides_events_from_a_purge() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for n in 0..2 {
        store.mutate(at(Duration::ZERO, DAYS_400, users::creation(n))).await.unwrap();
        store.mutate(at(MINUTE, DAYS_400, rename(n, "Joe"))).await.unwrap();
        store.mutate(at(2 * MINUTE, HOUR, rename(n, "Jo"))).await.unwrap();
        store.mutate(at(3 * MINUTE, DAYS_400, rename(n, "J"))).await.unwrap();
    }
    sweep(&store, 2 * HOUR).await;
    assert_eq!([count_events(&store, 0).await, count_events(&store, 1).await], [1, 1]);
    store.mutate(at(3 * HOUR, DAYS_400, purge(0))).await.unwrap();
    drop(store);
    let left = users_of_events(folder.path());
    assert!(!left.contains(&users::id(0)), "events of a purged user are left");
    assert_eq!(left.iter().filter(|user| **user == users::id(1)).count(), 1);
}

/// Purges leave events behind gaps in damaged histories.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_users_that_are_gone_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for n in 0..3 {
        store.mutate(users::creation(n)).await.unwrap();
        store.mutate(unlink(n, users::email(n))).await.unwrap();
    }
    drop(store);
    let transaction = database(folder.path()).begin_write().unwrap();
    transaction.open_table(USERS).unwrap().remove(users::id(1).as_bytes()).unwrap();
    transaction.commit().unwrap();

    let store = open(folder.path()).unwrap();
    let mut position = None;
    while let Some(next) = store.remove_strays(position).await.unwrap() {
        position = Some(next);
    }
    assert_eq!([count_events(&store, 0).await, count_events(&store, 2).await], [2, 2]);
    let keys = [0, 1, 2].map(|n| users::keys(n)[0].clone());
    let ended = store.ended_ownerships(&keys).await.unwrap();
    assert_eq!(ended.iter().map(|ended| ended.0.len()).collect::<Vec<_>>(), [1, 0, 1]);
    drop(store);
    assert!(!users_of_events(folder.path()).contains(&users::id(1)));
}

/// Once the other users of an identifier have expired, nothing is left of a purged one.
#[tokio::test(flavor = "multi_thread")]
async fn ended_ownerships_of_nobody_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for n in 0..2 {
        store.mutate(at(Duration::ZERO, HOUR, users::creation(n))).await.unwrap();
    }
    let email = || users::email(0);
    store.mutate(at(MINUTE, HOUR, unlink(0, email()))).await.unwrap();
    store.mutate(at(2 * MINUTE, HOUR, link(1, email()))).await.unwrap();
    store.mutate(at(3 * MINUTE, HOUR, unlink(1, email()))).await.unwrap();
    store.mutate(at(4 * MINUTE, HOUR, purge(1))).await.unwrap();
    let [key, _] = users::keys(0);
    let ended = store.ended_ownerships(&[key]).await.unwrap();
    let former: Vec<_> = ended[0].0.iter().map(|one| one.user).collect();
    assert_eq!(former, [Some(users::id(0)), None]);
    sweep(&store, 2 * HOUR).await;
    drop(store);
    assert_eq!(ended_rows(folder.path()), 0);
}

/// Changes of a time without history contradict no later event.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_was_off_for_a_while_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let set = |after: Duration, retention| {
        let update = PolicyUpdate { history_retention: Some(retention), ..Default::default() };
        let mutation = users::tenant_mutation(TenantChange::Set(update));
        Mutation { now: Timestamp::now().minus(after).into(), ..mutation }
    };
    let change = |before: Duration, retention, mutation| {
        let time = Timestamp::now().minus(before);
        Mutation { now: time.into(), ..at(Duration::ZERO, retention, mutation) }
    };
    store.mutate(set(6 * HOUR, DAYS_400)).await.unwrap();
    store.mutate(change(6 * HOUR, DAYS_400, users::creation(0))).await.unwrap();
    store.mutate(change(6 * HOUR, DAYS_400, rename(0, "Joe"))).await.unwrap();
    store.mutate(set(5 * HOUR, Duration::ZERO)).await.unwrap();
    store.mutate(change(4 * HOUR, Duration::ZERO, rename(0, "Jo"))).await.unwrap();
    store.mutate(set(3 * HOUR, DAYS_400)).await.unwrap();
    store.mutate(change(2 * HOUR, DAYS_400, rename(0, "J"))).await.unwrap();
    store.mutate(change(HOUR, DAYS_400, unlink(0, users::email(0)))).await.unwrap();
    drop(store);
    let name = format!("embedded:{}", folder.path().display());
    assert_eq!(findings(&[], &name), []);
}

/// A verification holds one long history at a time.
#[tokio::test]
async fn users_are_read_with_their_histories_up_to_a_number_of_events() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for n in 0..3 {
        store.mutate(users::creation(n)).await.unwrap();
    }
    for n in 0..9 {
        store.mutate(rename(0, &format!("Joe {n}"))).await.unwrap();
    }
    drop(store);

    let session = IntegritySession::open(folder.path()).unwrap();
    let read = async |users: [usize; 3], max_events| -> Vec<u64> {
        let pasts = session.pasts(&users.map(users::id), max_events).await.unwrap();
        let count = |past: &Presence<Past>| match past {
            Presence::Present(past) => past.event_count(),
            Presence::Absent | Presence::Unreadable => 0,
        };
        pasts.iter().map(count).collect()
    };
    assert_eq!(read([0, 1, 2], 1).await, [10]);
    assert_eq!(read([0, 1, 2], 10).await, [10]);
    assert_eq!(read([0, 1, 2], 11).await, [10, 1]);
    assert_eq!(read([1, 2, 0], 3).await, [1, 1, 10]);
    assert_eq!(read([3, 1, 2], 1).await, [0, 1]);
    assert_eq!(read([0, 1, 2], 100).await, [10, 1, 1]);
    drop(session);
    assert_eq!(findings(&[], &format!("embedded:{}", folder.path().display())), []);
}
