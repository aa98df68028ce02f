//! Many concurrent callers on several threads, some of them cancelled, over a store with occasional
//! failures.

use std::sync::Arc;
use std::time::Duration;

use polynym_directory::{Consistency, Error, Tenant, View};
use polynym_layers::coalesce::Options;

use super::gate::{Fault, STEADY, Scene, are, keys, wire};
use super::support::users;

const CALLERS: usize = 64;
/// Look-ups per caller.
const LOOK_UPS: usize = 100;
/// The time limit of one look-up.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Outcomes of the look-ups of one caller.
#[derive(Clone, Copy, Default)]
struct Tally {
    answered: usize,
    failed: usize,
    cancelled: usize,
}

/// Makes [`LOOK_UPS`] look-ups and cancels some of them before they are answered.
async fn run_caller(scene: Arc<Scene>, caller: usize) -> Tally {
    let mut tally = Tally::default();
    for turn in (1..=LOOK_UPS).map(|n| caller + n * (CALLERS + 3)) {
        let timeout = if turn.is_multiple_of(5) {
            Duration::from_micros(turn as u64 % 5_000)
        } else {
            ANSWER_TIMEOUT
        };
        match tokio::time::timeout(timeout, look_up(&scene, turn)).await {
            Ok(Ok(())) => tally.answered += 1,
            Ok(Err(Error::Unavailable(_) | Error::Internal(_))) => tally.failed += 1,
            Ok(Err(error)) => panic!("{error:?}"),
            Err(_) if timeout == ANSWER_TIMEOUT => panic!("a look-up without an answer"),
            Err(_) => tally.cancelled += 1,
        }
    }

    tally
}

/// Releases a few look-ups at a time, so that others have to wait.
async fn open_slowly(scene: Arc<Scene>) {
    loop {
        scene.gate.open(4);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Makes a look-up of a kind that depends on `turn`, and asserts its answer.
async fn look_up(scene: &Scene, turn: usize) -> Result<(), Error> {
    let wanted: Vec<_> = (0..1 + turn % 3).map(|n| (turn * 7 + n * 5) % 20).collect();
    let consistency =
        [Consistency::Latest, Consistency::Eventual, Consistency::Linearizable][turn % 7 % 3];
    if turn.is_multiple_of(4) {
        let ids: Vec<_> = wanted.iter().copied().map(users::id).collect();
        assert_eq!(
            users::all(scene.store.get(&Tenant::DEFAULT, &ids, View::Full).await?),
            wire(&wanted)
        );
    } else {
        are(
            &scene.store.resolve(&keys(&wanted), consistency, View::Full, Duration::ZERO).await?,
            &wanted,
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_caller_gets_its_own_answer_under_load() {
    let scene = Arc::new(Scene::new(Options { calls: 2, keys: 16, ..STEADY }).await);
    for call in (50..1_000_000).step_by(50) {
        scene.gate.spoil(call, [Fault::Away, Fault::Damaged][call / 50 % 2]);
    }

    let opener = tokio::spawn(open_slowly(scene.clone()));
    let callers: Vec<_> =
        (0..CALLERS).map(|caller| tokio::spawn(run_caller(scene.clone(), caller))).collect();
    let mut tallies = Vec::new();
    for caller in callers {
        tallies.push(caller.await.unwrap());
    }

    let sum = |part: fn(&Tally) -> usize| tallies.iter().map(part).sum::<usize>();
    let (answered, failed, cancelled) =
        (sum(|t| t.answered), sum(|t| t.failed), sum(|t| t.cancelled));
    let least = tallies.iter().map(|tally| tally.answered).min().unwrap();
    let calls = scene.gate.asked().len();
    println!(
        "{answered} answered, {failed} failed, {cancelled} cancelled, {calls} calls, \
         at least {least} answers per caller"
    );
    assert!(failed > 0 && cancelled > 0 && least > 0 && calls < answered);

    opener.abort();
    scene.gate.mend();
    scene.gate.open(1_000);
    for n in 0..20 {
        assert_eq!(users::look_up(&*scene.store, n).await.unwrap(), n < 16, "user {n}");
    }
}
