//! Users that are too large for one answer: a call holds no more of them than an answer may, and
//! each caller gets its own.

use locality_uuid::LocalityId;
use polynym::directory::{ANSWER_BYTES, Resolved, Store};
use polynym::store::coalesce::Options;

use super::gate::{STEADY, Scene, answer, latest, settle};
use crate::users;

/// How many of the large users an answer has room for: the last of them is more than was left.
const ROOM: usize = 11;

fn ids(resolved: &Resolved) -> Vec<LocalityId> {
    let user = |found: &polynym::directory::Found| found.user.decode().unwrap().id;
    resolved.found.iter().map(|found| user(found.as_ref().unwrap().as_ref().unwrap())).collect()
}

fn wanted(users: &[usize]) -> Vec<LocalityId> {
    users.iter().copied().map(users::id).collect()
}

impl Scene {
    /// With large users 100 to 131.
    async fn large() -> Self {
        let scene = Self::new(Options { calls: 1, ..STEADY }).await;
        for n in 100..132 {
            scene.store.mutate(users::large_creation(n)).await.unwrap();
        }
        scene
    }
}

#[tokio::test]
async fn who_has_an_answer_gets_it_before_others_are_asked_for() {
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
async fn one_answer_has_no_more_than_it_may() {
    let scene = Scene::large().await;
    let busy = scene.busy(1).await;
    let everybody: Vec<usize> = (100..132).collect();
    let callers = [scene.latest(&everybody), scene.latest(&[131])];
    settle().await;
    scene.gate.open(3);
    let [first, second] = callers.map(answer);
    let first = first.await.unwrap();
    assert_eq!(ids(&first), wanted(&everybody[..ROOM]));
    let size = |found: &polynym::directory::ItemResult<polynym::directory::Found>| {
        found.as_ref().unwrap().as_ref().unwrap().user.as_bytes().len()
    };
    assert!(first.found[1..].iter().map(size).sum::<usize>() <= ANSWER_BYTES);
    assert_eq!(ids(&second.await.unwrap()), wanted(&[131]));
    assert_eq!(scene.gate.asked()[1..], [latest(&everybody), latest(&[131])]);
    drop(busy);
}

#[tokio::test]
async fn keys_that_several_ask_for_are_told_to_each() {
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
