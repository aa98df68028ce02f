//! The look-ups that the cache answers.

use std::time::Duration;

use polynym_directory::{Consistency, LookUps, View};

use super::DAY;
use super::scene::{Scene, encoded};
use crate::support::users;

/// An age that an answer reaches after a short wait.
const SHORT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn an_answer_within_its_age_needs_no_read() {
    let scene = Scene::new().await;
    let [email, handle] = users::keys(3);
    assert_eq!(scene.resolve(&email, DAY).await, (Some(encoded(3)), 2));
    assert_eq!(scene.resolve(&email, DAY).await, (Some(encoded(3)), 0));
    assert_eq!(scene.resolve(&handle, DAY).await, (Some(encoded(3)), 2), "another key");
    assert_eq!(scene.resolve(&handle, DAY).await, (Some(encoded(3)), 0));
    assert_eq!(scene.below.asked().len(), 2);
}

#[tokio::test]
async fn each_caller_gets_answers_within_its_age() {
    let scene = Scene::new().await;
    let [key, _] = users::keys(3);
    scene.resolve(&key, SHORT).await;
    tokio::time::sleep(2 * SHORT).await;
    assert_eq!(scene.resolve(&key, DAY).await.1, 0, "a caller who accepts more");
    assert_eq!(scene.resolve(&key, SHORT).await.1, 2, "a caller who accepts less");
    assert_eq!(scene.resolve(&key, DAY).await.1, 0, "the new read counts for all");
    tokio::time::sleep(2 * SHORT).await;
    assert_eq!(scene.resolve(&key, SHORT).await.1, 2, "beyond its age");
}

#[tokio::test]
async fn without_an_age_the_cache_is_neither_read_nor_filled() {
    let scene = Scene::new().await;
    let [key, _] = users::keys(3);
    for _ in 0..2 {
        let keys = std::slice::from_ref(&key);
        let resolved = scene
            .store
            .resolve(keys, Consistency::Latest, View::Full, Duration::ZERO)
            .await
            .unwrap();
        assert_eq!(resolved.reads, 2);
        assert_eq!(scene.resolve(&key, Duration::ZERO).await.1, 2);
    }
    assert_eq!(scene.resolve(&key, DAY).await.1, 2, "nothing was kept");
    assert_eq!(scene.resolve(&key, Duration::ZERO).await.1, 2);
}

#[tokio::test]
async fn linearizable_look_ups_bypass_the_cache() {
    let scene = Scene::new().await;
    let [key, _] = users::keys(3);
    scene.resolve(&key, DAY).await;
    assert_eq!(scene.resolve_as(&key, Consistency::Linearizable, DAY).await.1, 2);
}

#[tokio::test]
async fn eventual_answers_are_not_cached() {
    let scene = Scene::new().await;
    let [key, _] = users::keys(3);
    for _ in 0..2 {
        assert_eq!(scene.resolve_as(&key, Consistency::Eventual, DAY).await.1, 2);
    }
    assert_eq!(scene.resolve(&key, DAY).await.1, 2);
    assert_eq!(scene.resolve_as(&key, Consistency::Eventual, DAY).await.1, 0, "of a LATEST read");
}

#[tokio::test]
async fn absence_is_cached() {
    let scene = Scene::new().await;
    let [key, _] = users::keys(99);
    assert_eq!(scene.resolve(&key, DAY).await, (None, 1));
    assert_eq!(scene.resolve(&key, DAY).await, (None, 0));
}

#[tokio::test]
async fn errors_are_not_cached() {
    let scene = Scene::new().await;
    let [key, _] = users::keys(3);
    scene.below.fail(true);
    for count in 1..3 {
        let keys = std::slice::from_ref(&key);
        let failed = scene.store.resolve(keys, Consistency::Latest, View::Full, DAY);
        assert!(failed.await.is_err());
        assert_eq!(scene.below.asked().len(), count);
    }
    scene.below.fail(false);
    assert_eq!(scene.resolve(&key, DAY).await, (Some(encoded(3)), 2));
}

#[tokio::test]
async fn a_batch_reads_only_uncached_keys() {
    let scene = Scene::new().await;
    let keys: Vec<_> = [5, 99, 2, 5, 3].into_iter().map(|n| users::keys(n)[0].clone()).collect();
    scene.resolve(&keys[0], DAY).await;
    scene.resolve(&keys[1], DAY).await;
    let resolved = scene.store.resolve(&keys, Consistency::Latest, View::Full, DAY).await.unwrap();
    let found = users::all(resolved.found).into_iter().map(|found| found.map(|found| found.user));
    let wanted = [Some(encoded(5)), None, Some(encoded(2)), Some(encoded(5)), Some(encoded(3))];
    assert_eq!(found.collect::<Vec<_>>(), wanted);
    assert_eq!(resolved.reads, 4, "two claims and two users");
    let read = (Consistency::Latest, vec![keys[2].clone(), keys[4].clone()]);
    assert_eq!(scene.below.asked()[2], read);
}

#[tokio::test]
async fn each_view_is_cached_separately() {
    let scene = Scene::new().await;
    let [key, _] = users::keys(3);
    let keys = std::slice::from_ref(&key);
    for (view, reads) in [(View::Full, 2), (View::Basic, 2), (View::Full, 0), (View::Basic, 0)] {
        let resolved = scene.store.resolve(keys, Consistency::Latest, view, DAY).await;
        assert_eq!(resolved.unwrap().reads, reads, "{view:?}");
    }
}
