//! Histories without faults: on every store, even LATEST look-ups are linearizable. The tests of
//! faults check this for LINEARIZABLE look-ups, or where nothing fails over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polynym_directory::Consistency;
use polynym_embedded::{self as embedded, Embedded};
use polynym_mongodb::Options;

use crate::audit::{State, no_transaction};
use crate::caller::{Caller, Direct};
use crate::group::Group;
use crate::load::{Length, Load, Plan};
use crate::stores::{OwnSet, TIMEOUT, fresh, long, open, prepare, print_line};

const PLAN: Plan = Plan {
    callers: 16,
    names: 16,
    users: 6,
    gets: true,
    creates: true,
    merges: false,
    pause: Duration::from_millis(1),
};

/// Five groups, and the callers of three.
const MERGES: Plan =
    Plan { names: 5 * Group::NAMES, users: 5 * Group::USERS, merges: true, ..PLAN };

async fn on_a_set(plan: Plan, length: Length, coalesce: bool) {
    let set = OwnSet::with_lasting_transactions().await;
    let name = fresh();
    let database = set.members[0].database(&name).await;
    prepare(&set, &name).await;
    let mut to: Vec<Arc<dyn Caller>> = Vec::new();
    for consistency in [Consistency::Latest, Consistency::Linearizable] {
        let store =
            open(&set.uri(&name, ""), Options { timeout: TIMEOUT, ..Options::default() }, coalesce)
                .await;
        to.push(Arc::new(Direct { store, consistency }));
    }
    let load = Load::start(plan, &to).await;
    load.run_for(length).await;
    let (ledger, before) = load.stop().await;
    no_transaction(&[&set.members[0]]).await;
    let after = State::read(&database).await;
    after.is_found(&*to[0]).await;
    ledger.check(&before, &after);
    let what = if plan.merges { "history of merges" } else { "history" };
    print_line(&format!(
        "{what} on a replica set, look-ups together: {coalesce}: {}",
        ledger.count()
    ));
    let count = ledger.count();
    assert_eq!((count.failed, count.unknown), (0, 0), "{:?}", ledger.reasons());
    database.drop().await.unwrap();
}

async fn on_the_embedded_store(plan: Plan, length: Length) {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), embedded::Options::default()).unwrap();
    let store = Arc::new(store).backend();
    let caller: Arc<dyn Caller> = Arc::new(Direct { store, consistency: Consistency::Latest });
    let load = Load::start(plan, std::slice::from_ref(&caller)).await;
    load.run_for(length).await;
    let (ledger, before) = load.stop().await;
    let users = ledger.users().into_iter().chain(before.users.keys().copied());
    let after = State::ask(&*caller, users).await;
    after.is_found(&*caller).await;
    ledger.check(&before, &after);
    let what = if plan.merges { "history of merges" } else { "history" };
    print_line(&format!("{what} on the embedded store: {}", ledger.count()));
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_are_linearizable() {
    on_the_embedded_store(PLAN, Length::Calls(1_500)).await;
    for coalesce in [true, false] {
        on_a_set(PLAN, Length::Calls(1_200), coalesce).await;
    }
}

/// Merges and unmerges, concurrent with links, unlinks, and look-ups by names and by ids.
#[tokio::test(flavor = "multi_thread")]
async fn histories_of_merges_are_linearizable() {
    on_the_embedded_store(MERGES, Length::Calls(3_000)).await;
    on_a_set(MERGES, Length::Calls(1_500), true).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_history() {
    let since = Instant::now();
    while since.elapsed() < long() {
        on_the_embedded_store(PLAN, Length::Time(Duration::from_secs(3))).await;
        for coalesce in [true, false] {
            on_a_set(PLAN, Length::Time(Duration::from_secs(10)), coalesce).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_history_of_merges() {
    let since = Instant::now();
    while since.elapsed() < long() {
        on_the_embedded_store(MERGES, Length::Time(Duration::from_secs(5))).await;
        for coalesce in [true, false] {
            on_a_set(MERGES, Length::Time(Duration::from_secs(10)), coalesce).await;
        }
    }
}
