//! Calls that fail: whom it concerns, and what they are told.

use polynym::directory::{Error, Resolved};
use polynym::store::coalesce::Options;

use super::gate::{Caller, Fault, STEADY, Scene, answer, are, settle};

/// An error and its causes, as the log tells them.
fn told(error: &Error) -> String {
    let top: &(dyn std::error::Error + 'static) = error;
    let causes = std::iter::successors(Some(top), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Spoils the second of three calls, each with three look-ups, and answers with what the callers of
/// that one are told.
async fn spoiled(fault: Fault) -> Vec<Error> {
    let scene = Scene::new(Options { calls: 1, keys: 3, ..STEADY }).await;
    scene.gate.spoil(1, fault);
    let callers: Vec<Caller<Result<Resolved, Error>>> =
        (0..9).map(|n| scene.latest(&[n])).collect();
    settle().await;
    scene.gate.open(3);
    let mut errors = Vec::new();
    for (n, caller) in callers.into_iter().enumerate() {
        match answer(caller).await {
            Ok(resolved) => are(&resolved, &[n]),
            Err(error) => errors.push((n, error)),
        }
    }
    assert_eq!(errors.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [3, 4, 5], "whom it concerns");
    scene.gate.open(1);
    are(&answer(scene.latest(&[7])).await.unwrap(), &[7]);
    errors.into_iter().map(|(_, error)| error).collect()
}

#[tokio::test]
async fn a_call_that_fails_fails_its_own_look_ups_and_each_is_told_why() {
    for error in spoiled(Fault::Away).await {
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
        assert_eq!(told(&error), "the store does not answer: look-up 1 went wrong");
    }
}

/// Which of the look-ups in a call is at fault, only shows where each is sent without it.
#[tokio::test]
async fn a_fault_of_one_look_up_takes_no_other_along() {
    for fault in [Fault::Damaged, Fault::Panics] {
        let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
        let busy = scene.busy(1).await;
        scene.gate.curse(5, fault);
        let callers: Vec<_> = (0..16).map(|n| (n, scene.latest(&[n]))).collect();
        settle().await;
        scene.gate.open(100);
        for (n, caller) in callers {
            match answer(caller).await {
                Ok(resolved) => are(&resolved, &[n]),
                Err(error) => {
                    assert!(n == 5 && matches!(error, Error::Internal(_)), "{n}: {error:?}")
                }
            }
        }
        assert_eq!(
            scene.gate.asked().len(),
            1 + 1 + 4 * 2,
            "the call, and both halves of what fails"
        );
        assert!(answer(scene.latest(&[5])).await.is_err());
        drop(busy);
    }
}

/// As where the store lets nobody in.
#[tokio::test]
async fn a_fault_of_all_look_ups_is_not_looked_for_without_end() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    let busy = scene.busy(1).await;
    (1..1_000).for_each(|call| scene.gate.spoil(call, Fault::Damaged));
    let callers: Vec<_> = (0..200).map(|n| scene.latest(&[n])).collect();
    settle().await;
    scene.gate.open(1_000);
    for caller in callers {
        let error = answer(caller).await.unwrap_err();
        assert!(told(&error).starts_with("internal error: look-up"), "{}", told(&error));
    }
    assert!(scene.gate.asked().len() < 50, "{} calls", scene.gate.asked().len());
    drop(busy);
}

/// A store leaves out what is too much for one answer. Here it is one caller's own answer that has
/// no room for more.
#[tokio::test]
async fn what_a_call_leaves_out_is_asked_for_again_unless_its_caller_has_enough() {
    let scene = Scene::new(Options { calls: 1, keys: 3, ..STEADY }).await;
    scene.gate.spoil(1, Fault::AnswerMissing);
    let callers: Vec<_> = (0..9).map(|n| scene.latest(&[n])).collect();
    settle().await;
    scene.gate.open(4);
    for (n, caller) in callers.into_iter().enumerate() {
        are(&answer(caller).await.unwrap(), &[n]);
    }
    scene.gate.spoil(4, Fault::AnswerMissing);
    let caller = scene.latest(&[1, 2, 3]);
    scene.gate.open(1);
    are(&answer(caller).await.unwrap(), &[1, 2]);
    assert_eq!(scene.gate.asked().len(), 5);
}

/// Were the answers dealt out all the same, a user might pass for absent.
#[tokio::test]
async fn a_store_that_leaves_out_everything_is_at_fault() {
    let scene = Scene::new(Options { calls: 1, keys: 3, ..STEADY }).await;
    [0, 1].into_iter().for_each(|look_up| scene.gate.spoil(look_up, Fault::AnswerMissing));
    scene.gate.open(2);
    let error = answer(scene.latest(&[1])).await.unwrap_err();
    assert!(matches!(error, Error::Internal(_)), "{error:?}");
}

#[test]
fn a_runtime_that_goes_half_way_wedges_nothing() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let scene = second.block_on(Scene::new(Options { calls: 1, keys: 2, ..STEADY }));
    let asking = first.enter();
    let caller = scene.latest(&[1]);
    drop(asking);
    first.block_on(scene.gate.asked_for(1));
    let waiting = {
        let _second = second.enter();
        [scene.latest(&[2]), scene.latest(&[3, 4, 5])]
    };
    second.block_on(settle());
    drop(first);
    for caller in waiting {
        let outcome = second.block_on(answer(caller));
        assert!(matches!(outcome, Err(Error::Unavailable(_))), "{outcome:?}");
    }
    scene.gate.open(1);
    let again = second.block_on(async { answer(scene.latest(&[1])).await }).unwrap();
    are(&again, &[1]);
    drop(caller);
}
