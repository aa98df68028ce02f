//! Look-ups that share no call: the caller makes the call itself.

use std::time::Duration;

use polynym_directory::{Consistency, Error, View};
use polynym_layers::coalesce::Options;

use super::gate::{Fault, STEADY, Scene, answer, are, keys, latest, settle};

impl Scene {
    /// Returns a scene with users 0 to 15, after one call for a single look-up.
    async fn quiet(options: Options) -> Self {
        let scene = Self::new(options).await;
        scene.gate.open(1);
        are(&answer(scene.latest(&[0])).await.unwrap(), &[0]);
        settle().await;
        scene
    }
}

#[tokio::test]
async fn a_lone_look_up_spawns_no_task() {
    let scene = Scene::quiet(STEADY).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let caller = scene.latest(&[3]);
    scene.gate.asked_for(2).await;
    assert_eq!(tasks(), before + 1, "only the task of its caller");
    scene.gate.open(1);
    are(&answer(caller).await.unwrap(), &[3]);
}

#[tokio::test]
async fn later_look_ups_share_a_second_call() {
    // The first call hangs for much longer than its stall timeout.
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

    // After that, look-ups that start together share a call again.
    let callers: Vec<_> = (7..10).map(|n| (n, scene.latest(&[n]))).collect();
    assert_eq!(scene.gate.asked_for(4).await[3], latest(&[7, 8, 9]));
    scene.gate.open(1);
    for (n, caller) in callers {
        are(&answer(caller).await.unwrap(), &[n]);
    }
}

#[tokio::test]
async fn a_cancelled_caller_releases_its_slot() {
    let scene = Scene::quiet(Options { calls: 2, ..STEADY }).await;
    for n in 2..12 {
        let caller = scene.latest(&[n]);
        scene.gate.asked_for(n).await;
        caller.abort();
        settle().await;
    }
    scene.gate.open(1);
    are(&answer(scene.latest(&[1])).await.unwrap(), &[1]);
    assert_eq!(scene.gate.asked().len(), 12, "one call for each caller");
}

#[tokio::test]
async fn errors_reach_the_caller_and_release_the_slot() {
    let scene = Scene::quiet(STEADY).await;
    scene.gate.open(10);
    scene.gate.spoil(1, Fault::Panics);
    let panicked =
        scene.store.resolve(&keys(&[1]), Consistency::Latest, View::Full, Duration::ZERO).await;
    assert!(matches!(panicked, Err(Error::Internal(_))), "{panicked:?}");

    scene.gate.spoil(2, Fault::Away);
    let failed =
        scene.store.resolve(&keys(&[1]), Consistency::Latest, View::Full, Duration::ZERO).await;
    assert!(matches!(failed, Err(Error::Unavailable(_))), "{failed:?}");
    scene.gate.spoil(3, Fault::AnswerMissing);
    are(&answer(scene.latest(&[1, 2, 3])).await.unwrap(), &[1, 2]);
    assert_eq!(scene.gate.asked()[3..], [latest(&[1, 2, 3])], "the caller's own answer is full");
}

/// Without the timeout, later look-ups would wait for a stalled call without bound.
#[tokio::test]
async fn the_only_permitted_call_has_a_stall_timeout() {
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
