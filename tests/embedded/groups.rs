//! Group commit: mutations that share a sync have the same outcomes as single ones.

use conformance::StoreFactory;
use polynym_directory::{Backend, Error, Outcome, Update, UserChange};
use polynym_embedded::Options;
use polynym_identifier::{Identifier, RawIdentifier};

use super::Folder;
use super::support::users;

const CALLERS: usize = 8;
const MUTATIONS: usize = 25;

/// Returns the mutations of one caller on its own user. They run in sequence, so that no other
/// caller affects their outcomes.
fn script(caller: usize) -> Vec<UserChange> {
    let name = |n: usize| {
        Identifier::parse(RawIdentifier::Handle(&format!("caller{caller}-{n}"))).unwrap()
    };
    let link = |n| UserChange::Link(users::identity(name(n)));
    let changes = (0..MUTATIONS).map(|n| match n % 5 {
        0 => link(n),
        1 => UserChange::Replace(name(n - 1), users::identity(name(n))),
        2 => UserChange::Unlink(name(n - 2)),
        3 => UserChange::Link(users::identity(
            Identifier::parse(RawIdentifier::Handle("shared")).unwrap(),
        )),
        _ => UserChange::Update(
            Update::from_mask(None, format!("Name {n}"), Default::default()).unwrap(),
        ),
    });
    changes.collect()
}

async fn run(store: Backend, caller: usize) -> Vec<Result<Outcome, Error>> {
    let mut outcomes = vec![store.mutations.mutate(users::creation(caller)).await];
    for change in script(caller) {
        outcomes.push(store.mutations.mutate(users::mutation(users::id(caller), change)).await);
    }
    outcomes
}

/// Returns the outcomes of all callers. User 1,000 owns the handle that each of them tries to link.
async fn outcomes(group_limit: usize) -> Vec<String> {
    let folder = Folder::new(Options { group_limit, ..Options::default() });
    let store = folder.open().await.unwrap();
    store.mutations.mutate(users::creation(1_000)).await.unwrap();
    let shared = users::identity(Identifier::parse(RawIdentifier::Handle("shared")).unwrap());
    store
        .mutations
        .mutate(users::mutation(users::id(1_000), UserChange::Link(shared)))
        .await
        .unwrap();
    let callers: Vec<_> =
        (0..CALLERS).map(|caller| tokio::spawn(run(store.clone(), caller))).collect();
    let mut outcomes = Vec::new();
    for caller in callers {
        outcomes.extend(caller.await.unwrap().iter().map(|outcome| format!("{outcome:?}")));
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn the_group_size_changes_no_outcome() {
    let single = outcomes(1).await;
    assert_eq!(single.len(), CALLERS * (MUTATIONS + 1));
    let refused = |kind: &str| single.iter().filter(|outcome| outcome.contains(kind)).count();
    assert_eq!(
        refused("IdentityTaken"),
        CALLERS * MUTATIONS / 5,
        "links of the handle of user 1,000"
    );
    assert_eq!(refused("NotOwned"), CALLERS * MUTATIONS / 5, "unlinks of replaced handles");

    for group_limit in [0, 2, 1_024] {
        assert_eq!(outcomes(group_limit).await, single, "groups of {group_limit}");
    }
}

/// Many callers on a single-threaded runtime: the store has a thread of its own.
#[tokio::test(flavor = "current_thread")]
async fn one_async_thread_is_enough() {
    let folder = Folder::new(Options::default());
    let store = folder.open().await.unwrap();
    let tasks: Vec<_> = (0..50)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { store.mutations.mutate(users::creation(n)).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    for n in 0..50 {
        assert!(users::look_up(&*store.lookups, n).await.unwrap());
    }
    assert!(!users::look_up(&*store.lookups, 50).await.unwrap());
}
