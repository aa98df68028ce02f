//! Users that exceed the size of one answer: a call returns no more of them than an answer may
//! hold, and each caller gets its own users.

use locality_uuid::LocalityId;
use polynym_directory::{ANSWER_BYTES, Resolved};
use polynym_layers::coalesce::Options;

use super::gate::{STEADY, Scene, answer, latest, settle};
use crate::users;

/// The number of large users in one answer: the last one crosses the size limit.
const ROOM: usize = 11;

fn ids(resolved: &Resolved) -> Vec<LocalityId> {
    let user = |found: &polynym_directory::Found| found.user.decode().unwrap().id;
    resolved.found.iter().map(|found| user(found.as_ref().unwrap().as_ref().unwrap())).collect()
}

fn wanted(users: &[usize]) -> Vec<LocalityId> {
    users.iter().copied().map(users::id).collect()
}

impl Scene {
    /// Returns a scene with large users 100 to 131.
    async fn large() -> Self {
        let scene = Self::new(Options { calls: 1, ..STEADY }).await;
        for n in 100..132 {
            scene.backend.mutations.mutate(users::large_creation(n)).await.unwrap();
        }
        scene
    }
}

#[tokio::test]
async fn answers_are_delivered_before_the_next_call() {
    let scene = Scene::large().await;
    let busy = scene.busy(1).await;
    let batches: Vec<Vec<usize>> = (0..6).map(|n| (100 + 4 * n..104 + 4 * n).collect()).collect();
    let mut callers: Vec<_> = batches.iter().map(|batch| scene.latest(batch)).collect();
    settle().await;
    scene.gate.open(1);

    for round in 0..3 {
        let rest: Vec<usize> = batches[2 * round..].concat();
        assert_eq!(scene.gate.asked_for(2 + round).await[1 + round], latest(&rest));
        scene.gate.open(1);
        for (n, caller) in callers.drain(..2).enumerate() {
            assert_eq!(ids(&answer(caller).await.unwrap()), wanted(&batches[2 * round + n]));
        }
    }
    assert_eq!(scene.gate.asked().len(), 4);
    drop(busy);
}

#[tokio::test]
async fn an_answer_exceeds_its_size_limit_by_at_most_one_user() {
    let scene = Scene::large().await;
    let busy = scene.busy(1).await;
    let all: Vec<usize> = (100..132).collect();
    let callers = [scene.latest(&all), scene.latest(&[131])];
    settle().await;
    scene.gate.open(3);
    let [first, second] = callers.map(answer);
    let first = first.await.unwrap();
    assert_eq!(ids(&first), wanted(&all[..ROOM]));

    let size = |found: &polynym_directory::ItemResult<polynym_directory::Found>| {
        found.as_ref().unwrap().as_ref().unwrap().user.as_bytes().len()
    };
    assert!(first.found[1..].iter().map(size).sum::<usize>() <= ANSWER_BYTES);
    assert_eq!(ids(&second.await.unwrap()), wanted(&[131]));
    assert_eq!(scene.gate.asked()[1..], [latest(&all), latest(&[131])]);
    drop(busy);
}

#[tokio::test]
async fn shared_keys_are_answered_to_every_caller() {
    let scene = Scene::large().await;
    let busy = scene.busy(1).await;
    let batches: [&[usize]; 4] = [
        &[100, 100, 101, 102],
        &[103, 104, 105, 106, 107, 108, 109, 110],
        &[100, 111, 100],
        &[101],
    ];

    let callers = batches.map(|batch| scene.latest(batch));
    settle().await;
    scene.gate.open(3);

    for (caller, batch) in callers.into_iter().zip(batches) {
        assert_eq!(ids(&answer(caller).await.unwrap()), wanted(batch));
    }

    assert_eq!(scene.gate.asked()[2], latest(&[100, 111, 101]));
    drop(busy);
}
