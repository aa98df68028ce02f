//! A disk that hangs: a bounded number of mutations wait, and look-ups continue.

use std::fs;
use std::pin::Pin;
use std::time::Duration;

use futures_util::poll;

use super::{creation, exists, wait_for_recovery};
use crate::file::lock::FileId;
use crate::file::opener::FILE;
use crate::file::tests::faults::Failing;
use crate::job::{Job, MIN_BYTES, QUEUE_BYTES};
use crate::options::Options;
use crate::store::Embedded;
use polynym_directory::{Error, Mutation, MutationKind, Mutations, Outcome, UserChange, Value};

type Pending<'s> = Pin<Box<dyn Future<Output = Result<Outcome, Error>> + 's>>;

fn large_creation(n: u32) -> Mutation {
    let mut mutation = creation(n);
    if let MutationKind::User(_, UserChange::Create(draft)) = &mut mutation.kind {
        draft.attributes =
            (0..32).map(|n| (format!("a{n}"), Value::String("x".repeat(4_000)))).collect();
    }
    mutation
}

/// Fills the queue with mutations that wait.
async fn fill(store: &Embedded, mutation: impl Fn(u32) -> Mutation) -> Vec<Pending<'_>> {
    let mut waiting = Vec::new();
    loop {
        let mut call: Pending<'_> = Box::pin(store.mutate(mutation(2 + waiting.len() as u32)));
        match poll!(&mut call) {
            std::task::Poll::Pending => waiting.push(call),
            std::task::Poll::Ready(Err(Error::Overloaded)) => return waiting,
            std::task::Poll::Ready(outcome) => panic!("{outcome:?}"),
        }
    }
}

async fn fill_and_leave(mutation: impl Fn(u32) -> Mutation) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), Options::default()).unwrap();
    store.mutate(creation(0)).await.unwrap();
    let file = FileId::of(&fs::metadata(folder.path().join(FILE)).unwrap());
    let hanging = Failing::hanging(file);
    let mut begun: Pending<'_> = Box::pin(store.mutate(creation(1)));
    while hanging.taken() == 0 {
        assert!(poll!(&mut begun).is_pending());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let waiting = fill(&store, mutation).await;
    let count = waiting.len();
    assert!(exists(&store, 0).await.unwrap(), "a look-up finds nobody while the disk hangs");
    drop(waiting);
    drop(hanging);
    begun.await.unwrap();
    wait_for_recovery(&store).await;
    store.mutate(creation(1_000_000)).await.unwrap();
    for n in [1, 1_000_000] {
        assert!(exists(&store, n).await.unwrap(), "user {n} is lost");
    }
    for n in (0..count as u32).step_by(97) {
        assert!(
            !exists(&store, 2 + n).await.unwrap(),
            "user {n} was created although its caller had left"
        );
    }
    count
}

#[tokio::test]
async fn the_queue_is_bounded_and_mutations_of_callers_who_left_are_dropped() {
    let small = fill_and_leave(creation).await;
    assert!((1_000..=QUEUE_BYTES / MIN_BYTES).contains(&small), "{small} waited");
    let large = fill_and_leave(large_creation).await;
    assert!((100..=QUEUE_BYTES / (32 * 4_000)).contains(&large), "{large} waited");
}

#[tokio::test]
async fn the_end_of_the_writer_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), Options::default()).unwrap();
    store.mutate(creation(0)).await.unwrap();
    store.send(Job::Panic).unwrap();
    store.writer_ended().await;
    assert!(matches!(store.mutate(creation(1)).await, Err(Error::Unavailable(_))));
    assert!(exists(&store, 0).await.unwrap());
}
