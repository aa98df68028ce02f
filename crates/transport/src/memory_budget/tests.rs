//! Tests of the memory that connections use.

use tokio::time::timeout;

use super::*;

fn budget_of(total: &Arc<GlobalBudget>, caller: &Caller) -> Arc<ConnectionBudget> {
    let budget = ConnectionBudget::new(total.clone());
    budget.assign_to(caller);
    Arc::new(budget)
}

fn budget(total: &Arc<GlobalBudget>) -> Arc<ConnectionBudget> {
    budget_of(total, &Caller::anonymous())
}

fn named(name: &str) -> Caller {
    Caller { name: name.to_owned(), ..Caller::anonymous() }
}

#[test]
fn a_connection_stays_within_its_limit_and_releases_everything() {
    let total = Arc::new(GlobalBudget::default());
    let budget = budget(&total);
    let mut reservations: Vec<_> = (0..17).map(|_| Reservation::for_call(&budget)).collect();
    let held: Vec<_> = reservations
        .iter_mut()
        .map(|reservation| reservation.reserve(MAX_CONNECTION_BYTES / 16))
        .collect();
    assert_eq!(held.iter().filter(|held| **held).count(), 16);
    assert!(budget.has_calls());
    reservations[0].release(MAX_CONNECTION_BYTES / 16);
    assert!(reservations[16].resize(MAX_CONNECTION_BYTES / 16));
    reservations.clear();
    assert_eq!((budget.bytes.load(Ordering::Relaxed), total.bytes.load(Ordering::Relaxed)), (0, 0));
    assert!(!budget.has_calls());
}

#[test]
fn each_connection_has_its_guaranteed_bytes() {
    let total = Arc::new(GlobalBudget::default());
    let mut greedy: Vec<_> = (0..3)
        .map(|_| Reservation::for_call(&budget(&total)))
        .map(|mut reservation| (reservation.reserve(MAX_CONNECTION_BYTES), reservation))
        .collect();
    assert!(!greedy.pop().is_some_and(|(held, _)| held), "the third exceeds the total");
    let mut modest = Reservation::for_call(&budget(&total));
    assert!(
        modest.budget.has_room() && modest.reserve(GUARANTEED_BYTES) && !modest.reserve(4 << 20)
    );
    assert!(!modest.budget.has_room());
    drop(greedy);
    assert!(modest.reserve(4 << 20));
}

#[test]
fn a_caller_has_its_share_on_all_its_connections() {
    let total = Arc::new(GlobalBudget::default());
    let (greedy, modest) = (named("greedy"), named("modest"));
    let part = MAX_SHARED_BYTES as usize / 64;
    let reserve = |caller: &Caller| {
        let mut reservation = Reservation::for_call(&budget_of(&total, caller));
        (reservation.reserve(part + GUARANTEED_BYTES), reservation)
    };
    let greedy_held: Vec<_> = (0..40).map(|_| reserve(&greedy)).collect();
    assert_eq!(greedy_held.iter().filter(|(fits, _)| *fits).count(), 32, "half of all");
    let mut of_greedy = Reservation::for_call(&budget_of(&total, &greedy));
    assert!(of_greedy.reserve(GUARANTEED_BYTES) && !of_greedy.budget.has_room());
    let (fits, of_modest) = reserve(&modest);
    assert!(fits && of_modest.budget.has_room());
    drop((greedy_held, of_greedy, of_modest));
    let left = [&greedy, &modest].map(|caller| caller.state.shared_bytes.load(Ordering::Relaxed));
    assert_eq!((left, total.bytes.load(Ordering::Relaxed)), ([0, 0], 0));
}

#[test]
fn a_connection_without_a_caller_has_its_guaranteed_bytes() {
    let total = Arc::new(GlobalBudget::default());
    let budget = Arc::new(ConnectionBudget::new(total.clone()));
    let mut reservation = Reservation::for_call(&budget);
    assert!(reservation.reserve(GUARANTEED_BYTES) && !reservation.reserve(1));
    budget.assign_to(&Caller::anonymous());
    assert!(reservation.reserve(1) && total.bytes.load(Ordering::Relaxed) == 1);
    drop(reservation);
    assert_eq!(total.bytes.load(Ordering::Relaxed), 0);
}

/// Makes calls one after the other. Returns the time of the longest.
async fn longest_of(count: usize, call: impl AsyncFn()) -> Duration {
    let mut longest = Duration::ZERO;
    for _ in 0..count {
        let begin = std::time::Instant::now();
        call().await;
        longest = longest.max(begin.elapsed());
    }
    longest
}

#[tokio::test]
async fn a_connection_is_unused_after_a_period_without_calls() {
    let budget = budget(&Arc::default());
    let limit = Duration::from_millis(200);
    let unused = || timeout(3 * limit, budget.unused(limit));
    assert!(budget.streams.try_add(1));
    assert!(unused().await.is_err(), "a stream is open");
    budget.streams.remove();
    loop {
        let calls = longest_of(40, async || {
            drop(Reservation::for_call(&budget));
            sleep(limit / 10).await;
        });
        let (outcome, longest) = tokio::join!(unused(), calls);
        // On a busy machine, the calls may come too late.
        if longest < limit {
            assert!(outcome.is_err(), "calls came again and again");
            break;
        }
    }
    assert!(unused().await.is_ok());
}

#[tokio::test]
async fn a_call_that_never_ends_is_stuck() {
    let budget = budget(&Arc::default());
    let limit = Duration::from_secs(1);
    loop {
        let quiet = timeout(3 * limit, budget.stuck(limit));
        let calls = longest_of(12, async || {
            let call = Reservation::for_call(&budget);
            sleep(limit / 4).await;
            drop(call);
        });
        let (quiet, longest) = tokio::join!(quiet, calls);
        // On a busy machine, the calls may be too long.
        if longest < limit {
            assert!(quiet.is_err(), "short calls, one after the other, are not stuck");
            break;
        }
    }
    let _call = Reservation::for_call(&budget);
    assert!(timeout(60 * limit, budget.stuck(limit)).await.is_ok());
}

#[tokio::test]
async fn a_request_of_the_site_is_in_use_and_never_stuck() {
    let budget = budget(&Arc::default());
    let limit = Duration::from_millis(20);
    let wait = Duration::from_secs(1);
    let request = Reservation::for_site(&budget);
    assert!(budget.has_calls());
    let (stuck, unused, idle, finished) = tokio::join!(
        timeout(wait, budget.stuck(limit)),
        timeout(wait, budget.unused(limit)),
        timeout(wait, budget.idle()),
        timeout(wait, budget.without_long_calls()),
    );
    assert!(stuck.is_err() && unused.is_err() && idle.is_err() && finished.is_err());
    drop(request);
    let _call = Reservation::for_call(&budget);
    budget.without_long_calls().await;
}
