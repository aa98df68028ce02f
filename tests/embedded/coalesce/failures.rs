//! Failed calls: the callers that are affected, and the errors they get.

use polynym_directory::{Error, Resolved};
use polynym_layers::coalesce::Options;

use super::gate::{Caller, Fault, STEADY, Scene, answer, are, settle};

/// Formats an error and its causes as the log does.
fn error_chain(error: &Error) -> String {
    let top: &(dyn std::error::Error + 'static) = error;
    let causes = std::iter::successors(Some(top), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Injects a fault into the second of three calls, each with three look-ups. Returns the errors of
/// the callers of that call.
async fn fail_second_call(fault: Fault) -> Vec<Error> {
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
    assert_eq!(
        errors.iter().map(|(n, _)| *n).collect::<Vec<_>>(),
        [3, 4, 5],
        "only the second call fails"
    );

    scene.gate.open(1);
    are(&answer(scene.latest(&[7])).await.unwrap(), &[7]);
    errors.into_iter().map(|(_, error)| error).collect()
}

#[tokio::test]
async fn a_failed_call_fails_only_its_own_look_ups() {
    for error in fail_second_call(Fault::Away).await {
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
        assert_eq!(error_chain(&error), "the store does not answer: look-up 1 failed");
    }
}

/// A faulty look-up is found by sending the look-ups of its call in smaller calls.
#[tokio::test]
async fn a_faulty_look_up_fails_no_other() {
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
            "the call, and both halves of each failed part"
        );
        assert!(answer(scene.latest(&[5])).await.is_err());
        drop(busy);
    }
}

/// For example, the store rejects the credentials.
#[tokio::test]
async fn the_search_for_a_faulty_look_up_is_bounded() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    let busy = scene.busy(1).await;
    (1..1_000).for_each(|call| scene.gate.spoil(call, Fault::Damaged));
    let callers: Vec<_> = (0..200).map(|n| scene.latest(&[n])).collect();
    settle().await;
    scene.gate.open(1_000);

    for caller in callers {
        let error = answer(caller).await.unwrap_err();
        assert!(
            error_chain(&error).starts_with("internal error: look-up"),
            "{}",
            error_chain(&error)
        );
    }
    assert!(scene.gate.asked().len() < 50, "{} calls", scene.gate.asked().len());
    drop(busy);
}

/// A store omits what exceeds one answer. In the second part, the caller's own answer is full.
#[tokio::test]
async fn omitted_answers_are_requested_again_unless_the_caller_is_full() {
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

/// An omission that is taken for an answer would report an existing user as absent.
#[tokio::test]
async fn an_answer_without_any_item_is_an_internal_error() {
    let scene = Scene::new(Options { calls: 1, keys: 3, ..STEADY }).await;
    [0, 1].into_iter().for_each(|look_up| scene.gate.spoil(look_up, Fault::AnswerMissing));
    scene.gate.open(2);
    let error = answer(scene.latest(&[1])).await.unwrap_err();
    assert!(matches!(error, Error::Internal(_)), "{error:?}");
}

#[test]
fn a_dropped_runtime_blocks_no_later_call() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let scene = second.block_on(Scene::new(Options { calls: 1, keys: 2, ..STEADY }));
    let entered = first.enter();
    let caller = scene.latest(&[1]);
    drop(entered);
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
