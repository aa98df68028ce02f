//! Many callers at once on several threads, some of whom leave, over a store that fails now and
//! then.

use std::sync::Arc;
use std::time::Duration;

use polynym::directory::{Consistency, Error, Store, Tenant};
use polynym::store::coalesce::Options;

use super::gate::{Fault, STEADY, Scene, are, keys, wire};
use super::support::users;

const CALLERS: usize = 64;
/// Look-ups of each.
const TURNS: usize = 100;
/// The longest that a look-up may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of a caller's look-ups.
#[derive(Clone, Copy, Default)]
struct Tally {
    answered: usize,
    failed: usize,
    left: usize,
}

/// Asks so many times; leaves some of its look-ups before they are answered.
async fn ask(scene: Arc<Scene>, caller: usize) -> Tally {
    let mut tally = Tally::default();
    for turn in (1..=TURNS).map(|n| caller + n * (CALLERS + 3)) {
        let stall_timeout = if turn.is_multiple_of(5) {
            Duration::from_micros(turn as u64 % 5_000)
        } else {
            PATIENCE
        };
        match tokio::time::timeout(stall_timeout, look_up(&scene, turn)).await {
            Ok(Ok(())) => tally.answered += 1,
            Ok(Err(Error::Unavailable(_) | Error::Internal(_))) => tally.failed += 1,
            Ok(Err(error)) => panic!("{error:?}"),
            Err(_) if stall_timeout == PATIENCE => panic!("a look-up without an answer"),
            Err(_) => tally.left += 1,
        }
    }
    tally
}

/// Lets few look-ups through at a time, so that others have to wait.
async fn open_slowly(scene: Arc<Scene>) {
    loop {
        scene.gate.open(4);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A look-up of one kind or another, whose answer must be right.
async fn look_up(scene: &Scene, turn: usize) -> Result<(), Error> {
    let wanted: Vec<_> = (0..1 + turn % 3).map(|n| (turn * 7 + n * 5) % 20).collect();
    let consistency =
        [Consistency::Latest, Consistency::Eventual, Consistency::Linearizable][turn % 7 % 3];
    if turn.is_multiple_of(4) {
        let ids: Vec<_> = wanted.iter().copied().map(users::id).collect();
        assert_eq!(users::all(scene.store.get(&Tenant::DEFAULT, &ids).await?), wire(&wanted));
    } else {
        are(&scene.store.resolve(&keys(&wanted), consistency).await?, &wanted);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everybody_is_answered_and_nobody_with_what_is_anothers() {
    let scene = Arc::new(Scene::new(Options { calls: 2, keys: 16, ..STEADY }).await);
    for call in (50..1_000_000).step_by(50) {
        scene.gate.spoil(call, [Fault::Away, Fault::Damaged][call / 50 % 2]);
    }
    let opener = tokio::spawn(open_slowly(scene.clone()));
    let callers: Vec<_> =
        (0..CALLERS).map(|caller| tokio::spawn(ask(scene.clone(), caller))).collect();
    let mut tallies = Vec::new();
    for caller in callers {
        tallies.push(caller.await.unwrap());
    }
    let sum = |part: fn(&Tally) -> usize| tallies.iter().map(part).sum::<usize>();
    let (answered, failed, left) = (sum(|t| t.answered), sum(|t| t.failed), sum(|t| t.left));
    let least = tallies.iter().map(|tally| tally.answered).min().unwrap();
    let calls = scene.gate.asked().len();
    println!(
        "{answered} answered, {failed} failed, {left} left, {calls} calls, at least {least} answers a caller"
    );
    assert!(failed > 0 && left > 0 && least > 0 && calls < answered);
    opener.abort();
    scene.gate.mend();
    scene.gate.open(1_000);
    for n in 0..20 {
        assert_eq!(users::look_up(&*scene.store, n).await.unwrap(), n < 16, "user {n}");
    }
}
