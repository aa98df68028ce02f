//! What must follow each change of users, on the embedded store.

use super::store_in;
use crate::support::scenarios::changes::all_follow_each_change;
use crate::support::scenarios::changes::killed_undo::a_killed_undo_is_completed;

#[tokio::test(flavor = "multi_thread")]
async fn all_follow_each_change_on_the_embedded_store() {
    let [one, other] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    all_follow_each_change(&store_in(&one), &store_in(&other), one.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_undo_is_completed_on_the_embedded_store() {
    let folder = tempfile::tempdir().unwrap();
    a_killed_undo_is_completed(&store_in(&folder)).await;
}
