//! Messages that are lost between the store and its database, and a database that is killed between
//! any two of them.

use std::sync::Arc;

use polynym_directory::{Error, Mutations};
use polynym_mongodb::Mongo;
use tokio::task::JoinHandle;

use super::servers::{Databases, Layout, ReplicaSet, Side, Signal};
use super::support::users;

/// The commands of the transaction that creates a user: the user, the claims, the commit.
const CREATE: [(&str, usize); 3] = [("insert", 1), ("insert", 2), ("commitTransaction", 1)];

async fn behind_a_proxy() -> (&'static ReplicaSet, Arc<Mongo>) {
    let set: &ReplicaSet =
        Box::leak(Box::new(ReplicaSet::start(Layout { proxied: true, ..Layout::default() }).await));
    (set, Arc::new(Databases::of_set(set, "").place().mongo().await.unwrap()))
}

/// Begins to create user `n`.
fn create(store: &Arc<Mongo>, n: usize) -> JoinHandle<Result<(), Error>> {
    let store = store.clone();
    tokio::spawn(async move { store.mutate(users::creation(n)).await.map(drop) })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_message_changes_no_outcome() {
    let (set, store) = behind_a_proxy().await;
    let mut n = 0;
    for side in [Side::Request, Side::Reply] {
        for (command, nth) in CREATE {
            let mut trap = set.proxies[0].trap(side, command, nth);
            let create = create(&store, n);
            trap.caught().await;
            drop(trap);
            create
                .await
                .unwrap()
                .unwrap_or_else(|error| panic!("{side:?} of {command} {nth}: {error:?}"));
            assert!(users::look_up(&*store, n).await.unwrap(), "{side:?} of {command} {nth}");
            n += 1;
        }
    }
    println!("{n} messages were lost, each create happened once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_killed_half_way_has_all_or_nothing() {
    let (set, store) = behind_a_proxy().await;
    let (mut n, mut told) = (0, Vec::new());
    for side in [Side::Request, Side::Reply] {
        for (command, nth) in CREATE {
            let mut trap = set.proxies[0].trap(side, command, nth);
            let create = create(&store, n);
            trap.caught().await;
            set.members[0].signal(Signal::Kill).await;
            drop(trap);
            set.members[0].restart().await;
            set.primary().await;
            let outcome = create.await.unwrap();
            let there = there(&store, n).await;
            match &outcome {
                Ok(()) => {
                    assert!(there, "{side:?} of {command} {nth}: what was acknowledged is lost")
                }
                Err(Error::Unavailable(_)) => {
                    assert!(!there, "{side:?} of {command} {nth}: what failed happened")
                }
                Err(Error::OutcomeUnknown(_)) => {}
                Err(error) => panic!("{side:?} of {command} {nth}: {error:?}"),
            }
            told.push(format!(
                "{side:?} of {command} {nth}: {}",
                if outcome.is_ok() { "done" } else { "refused" }
            ));
            n += 1;
        }
    }
    println!("{n} kills: {told:#?}");
}

/// Whether a user is there, once the database answers.
async fn there(store: &Mongo, n: usize) -> bool {
    for _ in 0..20 {
        if let Ok(there) = users::look_up(store, n).await {
            return there;
        }
    }
    panic!("the database does not come back");
}
