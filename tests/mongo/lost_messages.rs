//! Lost messages between the store and its database, and a database that is killed between any two
//! messages.

use std::sync::Arc;

use mongodb::bson::doc;
use polynym_directory::{Error, Limits, Mutation, MutationReport, Mutations, UserChange};
use polynym_mongodb::Mongo;
use tokio::task::JoinHandle;

use super::servers::{Databases, Layout, ReplicaSet, Side, Signal};
use super::support::users;

/// The commands of the transaction that creates a user: the user, the claims, the commit.
const CREATE: [(&str, usize); 3] = [("insert", 1), ("insert", 2), ("commitTransaction", 1)];

async fn behind_a_proxy() -> (&'static ReplicaSet, Arc<Mongo>) {
    let set: &ReplicaSet =
        Box::leak(Box::new(ReplicaSet::start(Layout { proxied: true, ..Layout::default() }).await));
    (set, Arc::new(Databases::of_set(set, "").factory().mongo().await.unwrap()))
}

/// Starts the creation of user `n`.
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
async fn a_killed_database_has_all_of_a_mutation_or_none() {
    let (set, store) = behind_a_proxy().await;
    let (mut n, mut outcomes) = (0, Vec::new());
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
                    assert!(there, "{side:?} of {command} {nth}: an acknowledged user is lost")
                }
                Err(Error::Unavailable(_)) => {
                    assert!(!there, "{side:?} of {command} {nth}: a failed creation took effect")
                }
                Err(Error::OutcomeUnknown(_)) => {}
                Err(error) => panic!("{side:?} of {command} {nth}: {error:?}"),
            }
            outcomes.push(format!(
                "{side:?} of {command} {nth}: {}",
                if outcome.is_ok() { "done" } else { "refused" }
            ));
            n += 1;
        }
    }
    println!("{n} kills: {outcomes:#?}");
}

/// A step of a purge whose commit is not answered is taken again: nobody learns of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_purge_continues_after_commits_without_answers() {
    let (set, store) = behind_a_proxy().await;
    for n in 0..2 {
        create(&store, n).await.unwrap().unwrap();
    }
    for (from, to) in [(1, 0), (0, 1)].repeat(4) {
        let change = UserChange::Move(users::id(from), users::email(1));
        store.mutate(users::mutation(users::id(to), change)).await.unwrap();
    }
    let refuse = |mode: &str| {
        let data = doc! { "failCommands": ["commitTransaction"], "errorCode": 13 };
        set.members[0]
            .admin(doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data })
    };

    let limits = Limits { purge_events: 4, ..Limits::default() };
    let purge = users::mutation(users::id(1), UserChange::Purge);
    let mut step = Mutation { limits, ..purge };
    let (mut is_lost, mut lost) = (false, 0);
    for _ in 0..100 {
        is_lost = !is_lost;
        let trap = is_lost.then(|| set.proxies[0].trap(Side::Reply, "commitTransaction", 1));
        let (mutated, mutation) = (store.clone(), step.clone());
        let mutated = tokio::spawn(async move { mutated.mutate(mutation).await });
        if let Some(mut trap) = trap {
            trap.caught().await;
            refuse("alwaysOn").await.unwrap();
            drop(trap);
        }
        let outcome = mutated.await.unwrap();
        refuse("off").await.unwrap();
        match outcome.map(|outcome| outcome.report) {
            Ok(MutationReport::PurgeBegun(progress)) => {
                lost += usize::from(is_lost);
                step.purge = Some(progress);
            }
            Ok(report) => {
                assert_eq!(report, MutationReport::Purged(vec![users::id(1)]));
                assert!(lost > 3, "{lost} answers were lost");
                return;
            }
            // A step that only reads fails.
            Err(error) => {
                assert!(is_lost && !matches!(error, Error::OutcomeUnknown(_)), "{error:?}")
            }
        }
    }
    panic!("the purge does not end");
}

/// Whether a user exists, once the database answers.
async fn there(store: &Mongo, n: usize) -> bool {
    for _ in 0..20 {
        if let Ok(there) = users::look_up(store, n).await {
            return there;
        }
    }
    panic!("the database does not recover");
}
