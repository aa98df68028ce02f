//! The commands of docs/walkthrough.md print the same output on MongoDB.

use crate::server::polynym;
use crate::servers;
use crate::support::scenarios::walkthrough::walk;

#[tokio::test(flavor = "multi_thread")]
async fn the_walkthrough_is_true_on_mongodb() {
    let store = servers::one_member().await.uri("walk", "");
    let walked = tokio::task::spawn_blocking(move || {
        let init = polynym(&["store", "init", "--store", &store]).output().unwrap();
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        walk(&store);
    });
    walked.await.unwrap();
}
