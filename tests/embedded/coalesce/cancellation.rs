//! Cancelled callers.

use polynym_layers::coalesce::Options;

use super::gate::{STEADY, Scene, answer, are, latest, settle};

#[tokio::test]
async fn a_cancelled_caller_does_not_stop_its_call() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    let callers: Vec<_> = (0..4).map(|n| scene.latest(&[n])).collect();
    scene.gate.asked_for(1).await;
    callers[0].abort();
    callers[2].abort();
    settle().await;
    scene.gate.open(1);

    for (n, caller) in callers.into_iter().enumerate().filter(|(n, _)| n % 2 == 1) {
        are(&answer(caller).await.unwrap(), &[n]);
    }

    assert_eq!(scene.gate.asked(), [latest(&[0, 1, 2, 3])]);
}

#[tokio::test]
async fn an_abandoned_call_runs_to_completion() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    scene.busy(1).await.iter().for_each(|caller| caller.abort());
    let waiting = scene.latest(&[1]);
    settle().await;
    assert_eq!(scene.gate.asked().len(), 1, "an abandoned call still counts");
    scene.gate.open(1);
    scene.gate.answered(1).await;
    scene.gate.open(1);
    are(&answer(waiting).await.unwrap(), &[1]);
}

#[tokio::test]
async fn cancelled_look_ups_are_not_sent() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    let busy = scene.busy(1).await;
    let callers: Vec<_> = (0..10).map(|n| scene.latest(&[n])).collect();
    settle().await;
    callers.iter().step_by(3).for_each(|caller| caller.abort());
    settle().await;
    scene.gate.open(2);
    assert_eq!(scene.gate.asked_for(2).await[1], latest(&[1, 2, 4, 5, 7, 8]));

    for (n, caller) in callers.into_iter().enumerate().filter(|(n, _)| n % 3 != 0) {
        are(&answer(caller).await.unwrap(), &[n]);
    }
    drop(busy);
}

/// No call is sent for cancelled look-ups, and the next look-up finds a free slot.
#[tokio::test]
async fn an_abandoned_queue_is_discarded() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    let busy = scene.busy(1).await;
    let waiting = scene.latest(&[1]);
    settle().await;
    waiting.abort();
    settle().await;
    scene.gate.open(1);
    settle().await;
    assert_eq!(scene.gate.asked(), [latest(&[0])]);

    scene.gate.open(1);
    are(&answer(scene.latest(&[2])).await.unwrap(), &[2]);
    drop(busy);
}
