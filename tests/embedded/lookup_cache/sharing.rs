//! Look-ups that miss at the same time: they share reads in the layer below.

use std::sync::Arc;

use futures_util::future::join_all;
use polynym_layers::coalesce::{Coalesced, Options};

use super::DAY;
use super::scene::{Scene, encoded};
use crate::support::users;

/// Sixteen look-ups are worth a call, and the first few go out before as many have come.
#[tokio::test]
async fn concurrent_misses_of_one_key_share_reads() {
    let scene = Scene::with(|below| Arc::new(Coalesced::new(below, Options::default()))).await;
    let [key, _] = users::keys(3);
    for (found, reads) in join_all((0..64).map(|_| scene.resolve(&key, DAY))).await {
        assert_eq!((found, reads), (Some(encoded(3)), 2));
    }
    let calls = scene.below.asked().len();
    assert!(calls <= 8, "{calls} calls");
    assert_eq!(scene.resolve(&key, DAY).await.1, 0);
}
