//! The size of a call, and the order of the queue.

use polynym_layers::coalesce::Options;

use super::gate::{STEADY, Scene, answer, are, latest, settle};

#[tokio::test]
async fn a_call_exceeds_its_key_limit_only_for_one_large_look_up() {
    let scene = Scene::new(Options { calls: 1, keys: 4, ..STEADY }).await;
    let batches: [&[usize]; 7] =
        [&[1, 2, 3], &[4, 5], &[6, 7], &[8, 9, 10, 11, 12, 13], &[1], &[2, 3, 4], &[5]];
    let callers = batches.map(|batch| scene.latest(batch));
    settle().await;
    scene.gate.open(5);
    for (caller, batch) in callers.into_iter().zip(batches) {
        are(&answer(caller).await.unwrap(), batch);
    }

    let calls: [&[usize]; 5] =
        [&[1, 2, 3], &[4, 5, 6, 7], &[8, 9, 10, 11, 12, 13], &[1, 2, 3, 4], &[5]];
    assert_eq!(scene.gate.asked(), calls.map(latest));
}

#[tokio::test]
async fn calls_in_flight_stay_within_the_limit() {
    for calls in [1, 2, 5] {
        let scene = Scene::new(Options { calls, ..STEADY }).await;
        let busy = scene.busy(calls).await;
        let more: Vec<_> = (0..20).map(|n| scene.latest(&[n % 10])).collect();
        settle().await;
        assert_eq!(scene.gate.asked().len(), calls);
        scene.gate.open(calls + 1);
        for caller in more.into_iter().chain(busy) {
            answer(caller).await.unwrap();
        }
        assert_eq!(scene.gate.asked().len(), calls + 1);
    }
}

/// Without this, a sequence of large batches would occupy the inner store alone.
#[tokio::test]
async fn look_ups_beyond_a_full_call_get_a_call_at_once() {
    let scene = Scene::new(Options { calls: 8, keys: 4, ..STEADY }).await;
    let callers: Vec<_> = (0..8).map(|n| scene.latest(&[n, n + 1, n + 2])).collect();
    settle().await;
    assert_eq!(
        scene.gate.asked().len(),
        5,
        "four wait and four are in flight: a fifth call is sent"
    );

    scene.gate.open(8);
    for (n, caller) in callers.into_iter().enumerate() {
        are(&answer(caller).await.unwrap(), &[n, n + 1, n + 2]);
    }
}

#[tokio::test]
async fn limits_of_zero_count_as_one() {
    let scene = Scene::new(Options { calls: 0, keys: 0, ..STEADY }).await;
    scene.gate.open(2);
    for n in 0..2 {
        are(&answer(scene.latest(&[n])).await.unwrap(), &[n]);
    }
}

/// More look-ups arrive than calls can carry, yet each is sent in the order of arrival.
#[tokio::test]
async fn a_steady_stream_starves_no_look_up() {
    let scene = Scene::new(Options { calls: 1, keys: 4, ..STEADY }).await;
    let busy = scene.busy(1).await;
    let crowd: Vec<_> = (1..9).map(|n| scene.latest(&[n])).collect();
    settle().await;
    let one = scene.latest(&[15]);
    settle().await;
    let mut stream = Vec::new();
    for call in 2..5 {
        stream.extend((1..7).map(|n| scene.latest(&[n, n + 1])));
        settle().await;
        scene.gate.open(1);
        scene.gate.asked_for(call).await;
    }
    assert_eq!(
        scene.gate.asked()[1..],
        [latest(&[1, 2, 3, 4]), latest(&[5, 6, 7, 8]), latest(&[15, 1, 2])]
    );

    scene.gate.open(1);
    are(&answer(one).await.unwrap(), &[15]);
    scene.gate.open(1_000);
    for caller in crowd.into_iter().chain(stream).chain(busy) {
        answer(caller).await.unwrap();
    }
}
