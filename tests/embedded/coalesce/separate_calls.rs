//! Look-ups that never share a call.

use polynym_directory::{Consistency, Mutation, Tenant};
use polynym_layers::coalesce::Options;

use super::gate::{Asked, STEADY, Scene, answer, are, keys, latest, settle, wire};
use super::support::users;

#[tokio::test]
async fn linearizable_look_ups_are_sent_alone_and_at_once() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    let busy = scene.busy(1).await;
    let waiting = scene.latest(&[4]);
    let exact = |users: &[usize]| Asked::Owners(Consistency::Linearizable, keys(users));
    let callers = [[4, 5, 4], [4, 5, 4], [1, 2, 3]]
        .map(|n| (n, scene.resolve(&n, Consistency::Linearizable)));
    let asked = scene.gate.asked_for(4).await;
    assert_eq!(asked, [latest(&[0]), exact(&[4, 5, 4]), exact(&[4, 5, 4]), exact(&[1, 2, 3])]);

    scene.gate.open(5);
    for (users, caller) in callers {
        are(&answer(caller).await.unwrap(), &users);
    }
    are(&answer(waiting).await.unwrap(), &[4]);
    assert_eq!(scene.gate.asked().len(), 5);
    drop(busy);
}

#[tokio::test]
async fn eventual_look_ups_share_calls_with_each_other() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    let busy = scene.busy(1).await;
    let first = scene.resolve(&[1], Consistency::Eventual);
    scene.gate.asked_for(2).await;
    let calls = [(2, Consistency::Eventual), (3, Consistency::Latest), (4, Consistency::Eventual)];
    let callers = calls.map(|(n, consistency)| (n, scene.resolve(&[n], consistency)));
    settle().await;
    scene.gate.open(4);
    are(&answer(first).await.unwrap(), &[1]);

    for (n, caller) in callers {
        are(&answer(caller).await.unwrap(), &[n]);
    }

    let eventual = |users: &[usize]| Asked::Owners(Consistency::Eventual, keys(users));
    let asked = scene.gate.asked();
    assert_eq!(asked.len(), 4);
    for wanted in [latest(&[0]), eventual(&[1]), eventual(&[2, 4]), latest(&[3])] {
        assert!(asked.contains(&wanted), "{wanted:?} is not in {asked:?}");
    }

    drop(busy);
}

#[tokio::test]
async fn tenants_share_no_call() {
    let scene = Scene::new(Options { calls: 1, ..STEADY }).await;
    let other = Tenant::parse("other").unwrap();
    scene
        .backend
        .mutations
        .mutate(Mutation { tenant: other.clone(), ..users::creation(20) })
        .await
        .unwrap();
    let tenants = [Tenant::DEFAULT, other.clone(), Tenant::parse("third").unwrap()];
    // One call per tenant is in flight; look-ups wait only for the call of their own tenant.
    let busy: Vec<_> = tenants.iter().map(|tenant| scene.get(tenant, &[0])).collect();
    scene.gate.asked_for(3).await;
    let callers: Vec<_> = (0..9).map(|n| (n % 3, scene.get(&tenants[n % 3], &[20, n]))).collect();
    settle().await;
    assert_eq!(scene.gate.asked().len(), 3);

    scene.gate.open(6);
    for (number, (tenant, caller)) in callers.into_iter().enumerate() {
        let found = users::all(answer(caller).await.unwrap());
        assert_eq!(found[0].is_some(), tenants[tenant] == other, "user 20 for {}", tenants[tenant]);
        assert_eq!(found[1..], if tenant == 0 { wire(&[number]) } else { vec![None] });
    }

    let asked = scene.gate.asked();
    assert_eq!(asked.len(), 6);
    for (n, tenant) in tenants.into_iter().enumerate() {
        let ids = [20, n, n + 3, n + 6].map(users::id).to_vec();
        assert!(asked.contains(&Asked::Users(tenant, ids)), "{asked:?}");
    }

    drop(busy);
}
