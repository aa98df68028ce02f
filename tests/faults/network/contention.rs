//! Concurrent calls for the same name or user.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polynym_directory::Consistency;
use polynym_mongodb::Options;
use tokio::task::JoinSet;

use crate::audit::{State, no_transaction};
use crate::caller::{Call, Caller, Direct, Reply};
use crate::ledger::Ledger;
use crate::load::{Length, Load, Plan};
use crate::stores::{OwnSet, fresh, long, open, prepare, print_line};

/// The number of concurrent callers.
const CALLERS: usize = 200;
/// The time limit of a call: 200 transactions on one user are sequential.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Makes all calls at once; returns their replies and the total time.
async fn concurrently(
    to: &[Arc<dyn Caller>],
    ledger: &Arc<Ledger>,
    calls: Vec<Call>,
) -> (Vec<Reply>, Duration) {
    let since = Instant::now();
    let mut tasks = JoinSet::new();
    for (call, caller) in calls.into_iter().zip(to.iter().cycle().cloned()) {
        let ledger = ledger.clone();
        tasks.spawn(async move {
            let start = ledger.start();
            let reply = caller.call(&call, None).await;
            ledger.add(&call, reply.clone(), &start);
            reply
        });
    }
    (tasks.join_all().await, since.elapsed())
}

async fn contend() {
    let set = OwnSet::with_lasting_transactions().await;
    let name = fresh();
    let database = set.members[0].database(&name).await;
    prepare(&set, &name).await;
    // Two stores that do not know of each other, like two servers.
    let mut to: Vec<Arc<dyn Caller>> = Vec::new();
    for _ in 0..2 {
        let store =
            open(&set.uri(&name, ""), Options { timeout: TIMEOUT, ..Options::default() }, true)
                .await;
        to.push(Arc::new(Direct { store, consistency: Consistency::Latest }));
    }
    let ledger = Arc::new(Ledger::default());
    let create = |user| Call::Create(user, Vec::new());
    let (created, creating) = concurrently(&to, &ledger, (0..CALLERS).map(create).collect()).await;
    assert!(created.iter().all(|reply| matches!(reply, Reply::Done(_))));

    let (reply, one_name) =
        concurrently(&to, &ledger, (0..CALLERS).map(|user| Call::Link(user, 0)).collect()).await;
    let winners = reply.iter().filter(|reply| matches!(reply, Reply::Done(_))).count();
    let losers = reply.iter().filter(|reply| matches!(reply, Reply::Taken(0, _))).count();
    assert_eq!(
        (winners, losers),
        (1, CALLERS - 1),
        "callers who were reply that they had the name, and that they had not"
    );

    let (reply, one_user) =
        concurrently(&to, &ledger, (0..CALLERS).map(|n| Call::Link(0, 1 + n % 60)).collect()).await;
    let done = reply.iter().filter(|reply| matches!(reply, Reply::Done(_))).count();
    let others: Vec<_> =
        reply.iter().filter(|reply| !matches!(reply, Reply::Done(_))).take(3).collect();
    assert_eq!(
        done, CALLERS,
        "links of one user that were done within {one_user:.1?}; of the others {others:?}"
    );

    no_transaction(&[&set.members[0]]).await;
    let after = State::read(&database).await;
    after.is_found(&*to[0]).await;
    ledger.check(&State::default(), &after);
    print_line(&format!(
        "{CALLERS} callers: they create a user each in {creating:.1?}, contend for one name for \
         {one_name:.1?}, and link {CALLERS} names to one user in {one_user:.1?}"
    ));
    database.drop().await.unwrap();
}

/// Callers swap two names of two users via a third, in both directions.
async fn swap(length: Length) {
    let set = OwnSet::with_lasting_transactions().await;
    let name = fresh();
    let database = set.members[0].database(&name).await;
    prepare(&set, &name).await;
    let mut to: Vec<Arc<dyn Caller>> = Vec::new();
    for _ in 0..2 {
        let store =
            open(&set.uri(&name, ""), Options { timeout: TIMEOUT, ..Options::default() }, true)
                .await;
        to.push(Arc::new(Direct { store, consistency: Consistency::Latest }));
    }
    let pause = Duration::ZERO;
    let plan =
        Plan { callers: 16, users: 2, names: 3, gets: true, creates: false, merges: false, pause };
    let load = Load::start(plan, &to).await;
    let since = Instant::now();
    load.run_for(length).await;
    let (ledger, before) = load.stop().await;
    no_transaction(&[&set.members[0]]).await;
    let after = State::read(&database).await;
    after.is_found(&*to[1]).await;
    let (_, longest) = ledger.silence(false, since);
    print_line(&format!(
        "swaps of three names: {}; the longest mutation took {longest:.1?}",
        ledger.count()
    ));
    ledger.check(&before, &after);
    let count = ledger.count();
    assert_eq!((count.failed, count.unknown), (0, 0), "{:?}", ledger.reasons());
    database.drop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_callers_wins() {
    contend().await;
    swap(Length::Calls(1_000)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_contention() {
    let since = Instant::now();
    while since.elapsed() < long() {
        contend().await;
        swap(Length::Time(Duration::from_secs(10))).await;
    }
}
