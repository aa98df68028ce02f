//! The rules for shared calls.

use std::collections::HashMap;

use futures_util::future::join_all;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tonic::Code;

use super::*;
use crate::batch::Queue;
use crate::batch::group::{MAX_BYTES, MAX_ITEMS};
use crate::fake::{Answer as Fakes, Fake, status};
use crate::{Builder, Kind, email, handle};

#[test]
fn only_look_ups_that_can_share_an_answer_share_a_call() {
    let request = ResolveIdentityRequest { tenant: "a".to_owned(), ..Default::default() };
    let key = |change: fn(&mut ResolveIdentityRequest)| {
        let mut other = request.clone();
        change(&mut other);
        Key::new(other)
    };
    let same = key(|request| request.identifier = Some(email("joe@example.com")));
    assert!(same == Key::new(request.clone()));
    let changes: [fn(&mut ResolveIdentityRequest); 5] = [
        |request| request.tenant = "b".to_owned(),
        |request| request.consistency = Consistency::Eventual.into(),
        |request| request.max_staleness = Some(Default::default()),
        |request| request.show_disabled = true,
        |request| request.read_mask = Some(Default::default()),
    ];
    for change in changes {
        assert!(key(change) != same);
    }
    let linearizable = Consistency::Linearizable.into();
    assert!(!may_share(&ResolveIdentityRequest { consistency: linearizable, ..request.clone() }));
    assert!(!may_share(&ResolveIdentityRequest { as_of: Some(Default::default()), ..request }));
}

#[test]
fn a_group_is_bounded_by_number_and_by_bytes() {
    let mut queue = Queue::default();
    for _ in 0..=MAX_ITEMS {
        let identifier = email("joe@example.com");
        drop(queue.group_for(&identifier, MAX_ITEMS).add(identifier, Instant::now()));
    }
    assert_eq!(queue.groups.len(), 2);
    queue.group_for(&email("x".repeat(MAX_BYTES)), MAX_ITEMS);
    assert_eq!(queue.groups.len(), 3);
    queue.group_for(&email("joe@example.com"), 0);
    assert_eq!(queue.groups.len(), 4);
}

/// A client of a server that accepts connections and never answers.
async fn unanswered() -> (TcpListener, Client) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let builder = Builder::new(format!("http://{address}")).timeout(Duration::from_secs(3_600));
    (listener, builder.connect_lazy().unwrap())
}

/// Makes ten look-ups until the client's queues are as wanted.
async fn look_up_until(client: &Client, is_reached: impl Fn(&HashMap<Key, Queue>) -> bool) {
    let call = async |n: usize| client.resolve(email(format!("user{n}@example.com"))).await;
    let calls = join_all((0..10).map(call));
    tokio::select! {
        _ = calls => panic!("the server does not answer"),
        () = reached(client, is_reached) => {}
    }
}

async fn reached(client: &Client, is_reached: impl Fn(&HashMap<Key, Queue>) -> bool) {
    let batches = client.batches().unwrap();
    let wait = async {
        while !is_reached(&batches.lock()) {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(30), wait).await.unwrap();
}

#[tokio::test]
async fn a_call_whose_callers_have_all_left_ends() {
    let (_listener, client) = unanswered().await;
    look_up_until(&client, |queues| !queues.is_empty()).await;
    reached(&client, HashMap::is_empty).await;
}

#[tokio::test]
async fn look_ups_do_not_wait_for_a_stalled_call() {
    let (_listener, client) = unanswered().await;
    let are_sent = |queue: &Queue| queue.stalled > 0 && queue.groups.is_empty();
    look_up_until(&client, |queues| queues.values().any(are_sent)).await;
    reached(&client, HashMap::is_empty).await;
}

fn found(answers: &[Answer]) -> usize {
    answers.iter().flatten().count()
}

async fn look_up(client: &Client, count: usize) -> Vec<Answer> {
    let call = async |n: usize| client.resolve(handle(format!("user{n}"))).await;
    join_all((0..count).map(call)).await
}

#[tokio::test]
async fn the_look_ups_of_a_failed_call_go_alone() {
    let unavailable = status(Code::Unavailable, "STORE_UNAVAILABLE", Duration::ZERO, "");
    let fake = Fake::start(move |call| match call.is_batch {
        true => Fakes::Fails(unavailable.clone()),
        false => Fakes::Found,
    });
    let fake = fake.await;
    let client = fake.builder().connect_lazy().unwrap();
    assert_eq!(found(&look_up(&client, 50).await), 50);
    let counts = fake.counts();
    assert_eq!(counts[..2], [1, 49]);
    assert_eq!(counts[2..], [1; 49]);
}

#[tokio::test]
async fn a_client_without_retries_sends_nothing_again() {
    let unavailable = status(Code::Unavailable, "STORE_UNAVAILABLE", Duration::ZERO, "");
    let fake = Fake::start(move |call| match call.is_batch {
        true => Fakes::Fails(unavailable.clone()),
        false => Fakes::Found,
    });
    let fake = fake.await;
    let client = fake.builder().attempts(1).connect_lazy().unwrap();
    assert_eq!(found(&look_up(&client, 50).await), 1);
    assert_eq!(fake.counts(), [1, 49]);
}

#[tokio::test]
async fn a_refused_item_goes_alone_after_its_delay() {
    let delay = Duration::from_millis(20);
    let refusal = status(Code::ResourceExhausted, "RATE_LIMITED", delay, "");
    let fake = Fake::start(move |call| match call.is_batch {
        true => Fakes::RefusesFirst(refusal.clone()),
        false => Fakes::Found,
    });
    let fake = fake.await;
    let client = fake.builder().connect_lazy().unwrap();
    assert_eq!(found(&look_up(&client, 50).await), 50);
    assert_eq!(fake.counts(), [1, 49, 1]);
}

#[tokio::test]
async fn look_ups_leave_a_silent_call_at_half_of_their_time() {
    let fake = Fake::start(|call| match call.is_batch {
        true => Fakes::Never,
        false => Fakes::Found,
    });
    let fake = fake.await;
    let client = fake.builder().timeout(Duration::from_secs(4)).connect_lazy().unwrap();
    assert_eq!(found(&look_up(&client, 40).await), 40);
    assert_eq!(fake.counts().len(), 2 + 39);
}

#[tokio::test]
async fn a_look_up_that_has_its_call_for_itself_sends_no_other_at_its_deadline() {
    let fake = Fake::start(|_| Fakes::Never).await;
    let client = fake.builder().connect().await.unwrap().with_timeout(Duration::from_millis(50));
    for n in 1..=20 {
        let error = client.resolve(handle("joe")).await.unwrap_err();
        assert_eq!(error.kind(), Kind::DeadlineExceeded);
        assert!(fake.counts().len() <= n);
    }
}

#[tokio::test]
async fn the_limit_of_the_server_is_learned_once() {
    let fake = Fake::start(|call| match call.count > 10 {
        true => {
            Fakes::Fails(status(Code::InvalidArgument, "BATCH_TOO_LARGE", Duration::ZERO, "10"))
        }
        false => Fakes::Found,
    });
    let fake = fake.await;
    let client = fake.builder().attempts(1).connect_lazy().unwrap();
    assert_eq!(found(&look_up(&client, 32).await), 32);
    let refused = |counts: &[usize]| counts.iter().filter(|count| **count > 10).count();
    assert_eq!(refused(&fake.counts()), 1);

    let many = client.resolve_many((0..35).map(|n| handle(format!("user{n}")))).await;
    assert!(many.iter().all(Result::is_ok));
    assert_eq!(refused(&fake.counts()), 1);
    assert_eq!(fake.counts().into_iter().rev().take(4).collect::<Vec<_>>(), [5, 10, 10, 10]);
}

#[test]
fn a_runtime_that_ends_leaves_no_look_up_behind() {
    let lasting = tokio::runtime::Runtime::new().unwrap();
    let fake = lasting.block_on(Fake::start(|call| match call.number {
        1 => Fakes::Never,
        _ => Fakes::Found,
    }));
    let client = fake.builder().connect_lazy().unwrap();

    let first = tokio::runtime::Runtime::new().unwrap();
    let lost = client.clone();
    first.spawn(async move { look_up(&lost, 3).await });
    first.block_on(reached(&client, |queues| {
        let waits = queues.values().any(|queue| !queue.groups.is_empty());
        waits && fake.counts() == [1]
    }));
    drop(first);

    let second = tokio::runtime::Runtime::new().unwrap();
    let answers = second.block_on(look_up(&client, 3));
    assert_eq!(found(&answers), 3);
}
