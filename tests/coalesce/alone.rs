//! A look-up that nobody joins: its caller makes the call itself.

use std::time::Duration;

use polynym::directory::{Consistency, Error, Store};
use polynym::store::coalesce::Options;

use super::gate::{Fault, STEADY, Scene, answer, are, keys, latest, settle};

impl Scene {
    /// With users 0 to 15, after a first call whose look-up was alone.
    async fn quiet(options: Options) -> Self {
        let scene = Self::new(options).await;
        scene.gate.open(1);
        are(&answer(scene.latest(&[0])).await.unwrap(), &[0]);
        settle().await;
        scene
    }
}

#[tokio::test]
async fn it_needs_no_task_of_its_own() {
    let scene = Scene::quiet(STEADY).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let caller = scene.latest(&[3]);
    scene.gate.asked_for(2).await;
    assert_eq!(tasks(), before + 1, "that of its caller");
    scene.gate.open(1);
    are(&answer(caller).await.unwrap(), &[3]);
}

#[tokio::test]
async fn who_comes_next_waits_for_nobody_and_shares_a_call() {
    // It hangs for much longer than a call may.
    let scene =
        Scene::quiet(Options { calls: 2, stall_timeout: Duration::from_millis(1), ..STEADY }).await;
    let first = scene.latest(&[1]);
    scene.gate.asked_for(2).await;
    let others: Vec<_> = (2..7).map(|n| (n, scene.latest(&[n]))).collect();
    assert_eq!(scene.gate.asked_for(3).await[1..], [latest(&[1]), latest(&[2, 3, 4, 5, 6])]);
    scene.gate.open(2);
    are(&answer(first).await.unwrap(), &[1]);
    for (n, caller) in others {
        are(&answer(caller).await.unwrap(), &[n]);
    }
    // They have met: what begins together goes together again.
    let callers: Vec<_> = (7..10).map(|n| (n, scene.latest(&[n]))).collect();
    assert_eq!(scene.gate.asked_for(4).await[3], latest(&[7, 8, 9]));
    scene.gate.open(1);
    for (n, caller) in callers {
        are(&answer(caller).await.unwrap(), &[n]);
    }
}

#[tokio::test]
async fn a_caller_that_leaves_gives_its_place_back() {
    let scene = Scene::quiet(Options { calls: 2, ..STEADY }).await;
    for n in 2..12 {
        let caller = scene.latest(&[n]);
        scene.gate.asked_for(n).await;
        caller.abort();
        settle().await;
    }
    scene.gate.open(1);
    are(&answer(scene.latest(&[1])).await.unwrap(), &[1]);
    assert_eq!(scene.gate.asked().len(), 12, "one for each");
}

#[tokio::test]
async fn what_goes_wrong_is_told_and_over() {
    let scene = Scene::quiet(STEADY).await;
    scene.gate.open(10);
    scene.gate.spoil(1, Fault::Panics);
    let panicked = scene.store.resolve(&keys(&[1]), Consistency::Latest).await;
    assert!(matches!(panicked, Err(Error::Internal(_))), "{panicked:?}");
    scene.gate.spoil(2, Fault::Away);
    let failed = scene.store.resolve(&keys(&[1]), Consistency::Latest).await;
    assert!(matches!(failed, Err(Error::Unavailable(_))), "{failed:?}");
    scene.gate.spoil(3, Fault::AnswerMissing);
    are(&answer(scene.latest(&[1, 2, 3])).await.unwrap(), &[1, 2]);
    assert_eq!(scene.gate.asked()[3..], [latest(&[1, 2, 3])], "its answer had no room for more");
}

/// Else those who come meanwhile would wait for it, however long it hangs.
#[tokio::test]
async fn where_one_call_is_all_there_may_be_it_has_a_clock() {
    let scene =
        Scene::quiet(Options { calls: 1, stall_timeout: Duration::from_millis(50), ..STEADY })
            .await;
    let first = scene.latest(&[1]);
    scene.gate.asked_for(2).await;
    let second = scene.latest(&[2]);
    assert_eq!(scene.gate.asked_for(3).await[2], latest(&[2]));
    scene.gate.open(2);
    are(&answer(first).await.unwrap(), &[1]);
    are(&answer(second).await.unwrap(), &[2]);
}
