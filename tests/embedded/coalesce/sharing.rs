//! Shared calls, and the distribution of their answers.

use std::time::Duration;

use polynym_directory::{Consistency, Tenant, UserChange};
use polynym_identifier::{Identifier, RawIdentifier};
use polynym_layers::coalesce::Options;

use super::gate::{Asked, STEADY, Scene, answer, are, latest, settle, wire};
use super::support::users;

#[tokio::test]
async fn a_lone_look_up_is_sent_at_once() {
    let scene = Scene::new(STEADY).await;
    let caller = scene.latest(&[3]);
    settle().await;
    assert_eq!(scene.gate.asked(), [latest(&[3])], "the first call is sent without delay");
    scene.gate.open(1);
    let resolved = answer(caller).await.unwrap();
    are(&resolved, &[3]);
    assert_eq!(resolved.reads, 2);
}

#[tokio::test]
async fn waiting_look_ups_share_the_next_call() {
    let scene = Scene::new(Options { calls: 2, ..STEADY }).await;
    let busy = scene.busy(2).await;
    let callers: Vec<_> = (1..11).map(|n| (n, scene.latest(&[n]))).collect();
    settle().await;
    assert_eq!(scene.gate.asked().len(), 2, "more calls in flight than the limit");

    scene.gate.open(1);
    assert_eq!(scene.gate.asked_for(3).await[2], latest(&(1..11).collect::<Vec<_>>()));
    scene.gate.open(2);
    for (n, caller) in callers {
        let resolved = answer(caller).await.unwrap();
        are(&resolved, &[n]);
        assert_eq!(resolved.reads, 20, "the reads of the shared call");
    }
    for caller in busy {
        are(&answer(caller).await.unwrap(), &[0]);
    }
    assert_eq!(scene.gate.asked().len(), 3);
}

#[tokio::test]
async fn a_further_call_needs_as_many_look_ups_as_are_in_flight() {
    let scene = Scene::new(STEADY).await;
    let busy = scene.busy(3).await;
    let (third, waiting) = ([1, 2, 3], [4, 5]);
    let mut callers: Vec<_> = third.iter().map(|n| (*n, scene.latest(&[*n]))).collect();
    settle().await;
    assert_eq!(scene.gate.asked().len(), 3, "three wait, and four are in flight");

    callers.push((0, scene.latest(&[0])));
    assert_eq!(scene.gate.asked_for(4).await[3], latest(&[1, 2, 3, 0]));
    callers.extend(waiting.map(|n| (n, scene.latest(&[n]))));
    settle().await;
    // The first two calls have one look-up each, the third has two: four remain of eight.
    scene.gate.open(3);
    scene.gate.answered(3).await;
    settle().await;
    assert_eq!(scene.gate.asked().len(), 4, "two wait, and four are in flight");

    scene.gate.open(2);
    for (n, caller) in callers {
        are(&answer(caller).await.unwrap(), &[n]);
    }
    assert_eq!(scene.gate.asked()[4..], [latest(&waiting)]);

    for caller in busy {
        are(&answer(caller).await.unwrap(), &[0]);
    }
}

/// For example, eight look-ups in a row went to a shard that hangs.
#[tokio::test]
async fn look_ups_bypass_up_to_eight_stalled_calls() {
    let scene =
        Scene::new(Options { calls: 1, stall_timeout: Duration::from_millis(50), ..STEADY }).await;
    let mut callers = Vec::new();
    for n in 0..9 {
        callers.push(scene.latest(&[n]));
        assert_eq!(scene.gate.asked_for(n + 1).await[n], latest(&[n]));
    }

    callers.extend([scene.latest(&[9]), scene.latest(&[10])]);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(scene.gate.asked().len(), 9, "eight are stalled, and one is in flight");
    scene.gate.open(1);
    assert_eq!(scene.gate.asked_for(10).await[9], latest(&[9, 10]));

    scene.gate.open(9);
    for (n, caller) in callers.into_iter().enumerate() {
        are(&answer(caller).await.unwrap(), &[n]);
    }
}

#[tokio::test]
async fn look_ups_that_start_together_share_a_call() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    let callers: Vec<_> = (0..5).map(|n| scene.latest(&[n])).collect();
    assert_eq!(scene.gate.asked_for(1).await, [latest(&[0, 1, 2, 3, 4])]);
    scene.gate.open(1);
    for (n, caller) in callers.into_iter().enumerate() {
        are(&answer(caller).await.unwrap(), &[n]);
    }
}

#[tokio::test]
async fn each_key_is_sent_once_and_answers_keep_their_order() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    let busy = scene.busy(1).await;
    let batches: [&[usize]; 5] = [&[3, 1, 1, 99, 2], &[2], &[5, 3], &[99, 98, 99], &[1]];
    let callers = batches.map(|batch| scene.latest(batch));
    settle().await;
    scene.gate.open(2);

    for (caller, batch) in callers.into_iter().zip(batches) {
        let resolved = answer(caller).await.unwrap();
        are(&resolved, batch);
        assert_eq!(resolved.reads, 10, "six claims and four users");
    }
    assert_eq!(scene.gate.asked(), [latest(&[0]), latest(&[3, 1, 99, 2, 5, 98])]);
    drop(busy);
}

#[tokio::test]
async fn look_ups_by_id_share_calls() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    let tenant = Tenant::DEFAULT;
    let batches: [&[usize]; 4] = [&[0], &[7, 99, 7], &[8, 7], &[9]];
    let first = scene.get(&tenant, batches[0]);
    scene.gate.asked_for(1).await;
    let callers =
        [&batches[1..]].concat().into_iter().map(|batch| (batch, scene.get(&tenant, batch)));
    let callers: Vec<_> = callers.collect();
    settle().await;
    scene.gate.open(2);
    assert_eq!(users::all(answer(first).await.unwrap()), wire(&[0]));

    for (batch, caller) in callers {
        assert_eq!(users::all(answer(caller).await.unwrap()), wire(batch));
    }

    let ids = [7, 99, 8, 9].map(users::id).to_vec();
    assert_eq!(scene.gate.asked()[1..], [Asked::Users(tenant, ids)]);
}

/// A look-up must see every mutation acknowledged before its start, so it cannot share a call that
/// began earlier.
#[tokio::test]
async fn a_look_up_never_joins_a_call_in_flight() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    let early = scene.latest(&[5]);
    scene.gate.asked_for(1).await;

    let handle = Identifier::parse(RawIdentifier::Handle("user5")).unwrap();
    scene
        .backend
        .mutations
        .mutate(users::mutation(users::id(5), UserChange::Unlink(handle)))
        .await
        .unwrap();
    let late = scene.latest(&[5]);
    settle().await;
    scene.gate.open(2);
    assert_eq!(users::all(answer(late).await.unwrap().found), [None]);
    assert_eq!(scene.gate.asked(), [latest(&[5]), latest(&[5])]);
    drop(early);
}

#[tokio::test]
async fn empty_look_ups_share_nothing() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    let busy = scene.busy(1).await;
    let no_keys = scene.resolve(&[], Consistency::Latest);
    let no_users = scene.get(&Tenant::DEFAULT, &[]);
    scene.gate.asked_for(3).await;
    scene.gate.open(3);
    assert!(answer(no_keys).await.unwrap().found.is_empty());
    assert!(answer(no_users).await.unwrap().is_empty());
    drop(busy);
}
