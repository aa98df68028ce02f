//! Merges concurrent with other mutations of the same users.

use std::collections::BTreeMap;
use std::sync::Arc;

use polynym_directory::{Error, Mutation, State, User, UserChange};

use super::merging::{is_merged, merge};
use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, link, no_holds, unlink};

pub async fn one_of_two_opposite_merges_succeeds(f: Fixture) -> Result<(), Failure> {
    for n in 0..20 {
        let owns = [format!("handle:a{n}"), format!("handle:b{n}")];
        let (a, b) = (f.create(&[&owns[0]]).await?, f.create(&[&owns[1]]).await?);
        let outcomes =
            f.all(vec![f.mutation(a.id, merge(&b)), f.mutation(b.id, merge(&a))]).await?;
        let (done, refusals): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        equal(&(done.len(), refusals.len()), &(1, 1), "successful and refused merges")?;
        for merged in done {
            let merged = merged?;
            f.has(&merged).await?;
            equal(&merged.identities.len(), &2, "identities")?;
            let other = if merged.id == a.id { b.id } else { a.id };
            is_merged(&f, other, merged.id).await?;
            let wanted = format!("{:?}", Error::UserMerged { user: other, into: merged.id });
            ensure(
                refusals.iter().all(|e| matches!(e, Err(e) if format!("{e:?}") == wanted)),
                "another refusal",
            )?;
        }
    }

    Ok(())
}

/// Of a merge and a purge of one of its users, the second is refused or purges both.
pub async fn a_concurrent_merge_and_purge_are_serialized(f: Fixture) -> Result<(), Failure> {
    for n in 0..20 {
        let owns = [format!("handle:a{n}"), format!("handle:b{n}")];
        let (a, b) = (f.create(&[&owns[0]]).await?, f.create(&[&owns[1]]).await?);
        let purged = if n % 2 == 0 { &a } else { &b };
        let (merge, purge) =
            (f.mutation(a.id, merge(&b)), f.mutation(purged.id, UserChange::Purge));
        let store = f.store.clone();
        let purging = tokio::spawn(async move { store.mutations.mutate(purge).await });
        let merged = f.mutate(merge).await;
        let purged_both = purging.await?;
        let left: Vec<_> =
            f.invariants(&[a.id, b.id], &owns).await?.iter().map(|user| user.id).collect();
        let (expected, refusal) = match (&merged, &purged_both, n % 2) {
            (Ok(_), Ok(_), 0) => (vec![], None),
            (Ok(_), Err(error), 1) => {
                (vec![a.id, b.id], Some((error, Error::UserMerged { user: b.id, into: a.id })))
            }
            (Err(error), Ok(_), 0) => (vec![b.id], Some((error, Error::UserNotFound))),
            (Err(error), Ok(_), _) => (vec![a.id], Some((error, Error::UserNotFound))),
            other => return Err(format!("no order explains {other:?}").into()),
        };
        equal(&left, &expected, "the users that are left")?;
        let is_right =
            refusal.is_none_or(|(error, wanted)| format!("{error:?}") == format!("{wanted:?}"));
        ensure(is_right, format!("another refusal: {merged:?}, {purged_both:?}"))?;
    }

    Ok(())
}

/// Links and unlinks during merges and unmerges lose and duplicate nothing.
pub async fn concurrent_merges_and_links_keep_the_invariants(f: Fixture) -> Result<(), Failure> {
    let users = [
        f.create(&["handle:a"]).await?,
        f.create(&["handle:b"]).await?,
        f.create(&["handle:c"]).await?,
    ];
    let owns: Vec<_> =
        ["a", "b", "c", "d", "e"].iter().map(|name| format!("handle:{name}")).collect();
    let mut mutations = Vec::new();
    for round in 0..12 {
        for (n, user) in users.iter().enumerate() {
            let next = &users[(n + 1 + round % 2) % 3];
            mutations.push(match round % 4 {
                0 => f.mutation(user.id, link(&owns[3 + n % 2])?),
                1 => f.mutation(user.id, merge(next)),
                2 => f.mutation(user.id, unlink(&owns[(n + round) % 5])?),
                _ => f.mutation(user.id, UserChange::Unmerge(next.id)),
            });
        }
    }

    f.all(mutations).await?;
    let ids: Vec<_> = users.iter().map(|user| user.id).collect();
    let left = f.invariants(&ids, &owns).await?;
    equal(&left.len(), &3, "users")?;
    for user in &left {
        let merged = matches!(user.state, State::Merged { .. });
        ensure(!merged || user.identities.is_empty(), "a merged user owns something")?;
    }

    merges_lead_to_active_users(&left)?;
    let policies = Arc::new(no_holds());
    for user in left.iter().filter(|user| user.state == State::Active) {
        f.apply(Mutation { policies: policies.clone(), ..f.mutation(user.id, UserChange::Purge) })
            .await?;
    }

    f.create(&owns.iter().map(String::as_str).collect::<Vec<_>>()).await.map(drop)
}

/// Fails unless every merged user leads to an active one, in at most two steps.
fn merges_lead_to_active_users(users: &[User]) -> Result<(), Failure> {
    let into: BTreeMap<_, _> = users.iter().map(|user| (user.id, user.state)).collect();
    for user in users {
        let mut state = user.state;
        for _ in 0..2 {
            if let State::Merged { into: next } = state {
                state = into[&next];
            }
        }
        equal(&state, &State::Active, "the state at the end of the merges")?;
    }
    Ok(())
}
