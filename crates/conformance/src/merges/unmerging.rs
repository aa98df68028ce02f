//! Undoing merges.

use std::time::Duration;

use polynym_directory::{
    ConflictPolicy, Error, Mutation, MutationReport, NotRestored, Policies, State, Timestamp,
    Update, User, UserChange, Verification,
};

use super::merging::{chain, conflicting_users, is_merged, merge, merge_by, text};
use crate::fixture::assertions::{ensure, equal, refused};
use crate::fixture::decoded;
use crate::fixture::factory::Failure;
use crate::fixture::{
    DAY, Fixture, draft, holding, identifier, link, lists, names, no_holds, request, unlink,
};

/// Undoes a merge. Returns the secondary and the fields that were not restored.
async fn unmerge(
    f: &Fixture,
    primary: &User,
    secondary: &User,
) -> Result<(User, Vec<NotRestored>), Failure> {
    let outcome = f.apply(f.mutation(primary.id, UserChange::Unmerge(secondary.id))).await?;
    match &outcome.report {
        MutationReport::NotRestored(what) => {
            Ok((outcome.user.clone().ok_or("no user")?, what.clone()))
        }
        other => Err(format!("an unmerge reports {other:?}").into()),
    }
}

/// The user with the update time of `like`.
fn with_time_of(user: &User, like: &User) -> User {
    User { update_time: like.update_time, ..user.clone() }
}

pub async fn an_unmerge_restores_both_users(f: Fixture) -> Result<(), Failure> {
    for policy in [ConflictPolicy::PrimaryWins, ConflictPolicy::SecondaryWins] {
        let (primary, secondary) = conflicting_users(&f).await?;
        f.change(&primary, merge_by(&secondary, policy)).await?;
        let (back, not_restored) = unmerge(&f, &primary, &secondary).await?;
        equal(&not_restored, &vec![], "the unrestored fields")?;
        equal(&with_time_of(&back, &secondary), &secondary, "the secondary")?;
        let now = f.get(primary.id).await?.ok_or("the primary is gone")?;
        equal(&with_time_of(&now, &primary), &primary, "the primary")?;
        ensure(
            back.update_time > secondary.update_time && back.etag() != secondary.etag(),
            "time and etag did not change",
        )?;
        f.has(&back).await?;
        f.has(&now).await?;
        for user in [&back, &now] {
            f.apply(f.mutation(user.id, UserChange::Purge)).await?;
        }
    }

    Ok(())
}

pub async fn an_unmerge_after_a_restart_restores_the_state(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    let disabled = f.change(&secondary, UserChange::Disable).await?;
    f.change(&primary, merge(&disabled)).await?;
    let f = f.reopen().await?;
    let (back, _) = unmerge(&f, &primary, &disabled).await?;
    equal(&with_time_of(&back, &disabled), &disabled, "the secondary")?;
    f.reopen().await?.has(&back).await
}

/// Merges two users and then changes most fields that the primary got. Returns the verification of
/// one identity.
async fn merge_and_change(
    f: &Fixture,
    primary: &User,
    secondary: &User,
) -> Result<Option<Verification>, Failure> {
    f.change(primary, merge_by(secondary, ConflictPolicy::SecondaryWins)).await?;
    f.change(primary, unlink("social:github/1")?).await?;
    f.change(primary, unlink("email:j@example.com")?).await?;
    f.change(primary, link("email:j@example.com")?).await?;
    let verification =
        Some(Verification { time: Timestamp::from_millis(1), by: "a letter".to_owned() });
    let verify = UserChange::Verify(identifier("email:joseph@example.com")?, verification.clone());
    f.change(primary, verify).await?;
    let paths = ["display_name".to_owned(), "attributes.city".to_owned()];
    let attributes = [("city".to_owned(), text("Oslo"))].into();
    f.change(
        primary,
        UserChange::Update(Update::from_mask(Some(&paths), "Joey".to_owned(), attributes)?),
    )
    .await?;

    Ok(verification)
}

pub async fn later_changes_are_reported(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    let verification = merge_and_change(&f, &primary, &secondary).await?;
    let (back, not_restored) = unmerge(&f, &primary, &secondary).await?;
    let identities = [
        NotRestored::Identity(identifier("social:github/1")?),
        NotRestored::Identity(identifier("email:j@example.com")?),
    ];
    let lost: Vec<_> = identities
        .into_iter()
        .chain([NotRestored::DisplayName, NotRestored::Attribute("city".to_owned())])
        .collect();
    equal(&not_restored, &lost, "the unrestored fields")?;
    lists(&back, &["email:joseph@example.com"])?;
    equal(&back.identities[0].verification, &verification, "the later verification")?;
    equal(
        &(back.display_name.as_str(), &back.attributes),
        &("Joseph", &secondary.attributes),
        "the secondary's fields",
    )?;
    let now = f.get(primary.id).await?.ok_or("the primary is gone")?;
    equal(
        &(now.display_name.as_str(), now.attributes.get("city")),
        &("Joey", Some(&text("Oslo"))),
        "the primary's fields",
    )?;
    equal(&now.attributes.get("team"), &None, "an attribute that the merge gave the primary")?;
    let wanted = ["email:joe@example.com", "handle:joe", "email:j@example.com"].map(str::to_owned);
    equal(&names(&now), &wanted.into(), "the identities of the primary")?;
    ensure(
        now.identities[0].primary && !now.identities[2].primary,
        "the primary mark was not restored",
    )?;
    f.has(&back).await?;

    f.has(&now).await
}

pub async fn a_merge_is_undone_once(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    let other = f.create(&["handle:other"]).await?;
    refused(f.change(&primary, UserChange::Unmerge(secondary.id)).await, &Error::NotMerged)?;
    f.change(&primary, merge(&secondary)).await?;
    refused(f.change(&other, UserChange::Unmerge(secondary.id)).await, &Error::NotMerged)?;
    refused(f.change(&primary, UserChange::Unmerge(f.ids.next_id())).await, &Error::UserNotFound)?;
    let stale = Mutation {
        etag: Some(primary.etag()),
        ..f.mutation(primary.id, UserChange::Unmerge(secondary.id))
    };
    refused(f.mutate(stale).await, &Error::EtagMismatch)?;
    let (back, _) = unmerge(&f, &primary, &secondary).await?;
    refused(f.change(&primary, UserChange::Unmerge(secondary.id)).await, &Error::NotMerged)?;
    refused(f.change(&secondary, UserChange::Unmerge(primary.id)).await, &Error::NotMerged)?;

    f.has(&back).await
}

pub async fn a_dry_run_undoes_nothing(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    let merged = f.change(&primary, merge(&secondary)).await?;
    let unlinked = f.change(&merged, unlink("social:github/1")?).await?;
    let dry =
        Mutation { dry_run: true, ..f.mutation(primary.id, UserChange::Unmerge(secondary.id)) };
    let lost = vec![NotRestored::Identity(identifier("social:github/1")?)];
    let preview = f.apply(dry).await?;
    equal(
        &preview.report,
        &MutationReport::NotRestored(lost),
        "the fields that would not be restored",
    )?;
    let user = preview.into_user()?;
    equal(&(user.id, user.state), &(secondary.id, secondary.state), "the user as it would be")?;
    f.has(&unlinked).await?;

    is_merged(&f, secondary.id, primary.id).await
}

pub async fn the_undo_window_ends(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    let policies = Policies { undo_window: DAY, ..no_holds() };
    let until = f.now().plus(DAY);
    let merged = f.change_with(&policies, &primary, merge(&secondary)).await?;
    let at = |time: Timestamp, change| {
        f.mutate(Mutation { now: time.into(), ..f.mutation(primary.id, change) })
    };
    refused(at(until, UserChange::Unmerge(secondary.id)).await, &Error::UndoExpired)?;
    let due = |time| decoded::expired_users(&f.store, time, 10);
    equal(
        &due(Timestamp::from_millis(until.as_millis() - 1)).await?,
        &vec![],
        "the expired users before the end",
    )?;
    equal(
        &due(until).await?,
        &vec![(secondary.tenant.clone(), secondary.id)],
        "the expired users",
    )?;
    let outcome = f
        .apply(Mutation { now: until.into(), ..f.mutation(secondary.id, UserChange::Expire) })
        .await?;
    equal(&outcome.report, &MutationReport::Nothing, "the report of an expiry")?;
    equal(&due(until).await?, &vec![], "the expired users afterwards")?;
    let early = Timestamp::from_millis(until.as_millis() - 1);
    refused(at(early, UserChange::Unmerge(secondary.id)).await, &Error::UndoExpired)?;
    is_merged(&f, secondary.id, primary.id).await?;
    f.has(&merged).await?;
    let never = Policies { undo_window: Duration::ZERO, ..no_holds() };
    let other = f.create(&["handle:other"]).await?;
    f.change_with(&never, &primary, merge(&other)).await?;
    refused(f.change(&primary, UserChange::Unmerge(other.id)).await, &Error::UndoExpired)?;

    equal(
        &due(Timestamp::MAX).await?,
        &vec![],
        "the expired users after a merge without an undo window",
    )
}

pub async fn a_repeated_unmerge_happens_once(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    f.change(&primary, merge(&secondary)).await?;
    f.change(&primary, unlink("social:github/1")?).await?;
    let send = || Mutation {
        request: request("unmerge", 1),
        ..f.mutation(primary.id, UserChange::Unmerge(secondary.id))
    };
    let first = f.apply(send()).await?;
    equal(&f.apply(send()).await?, &first, "the answer to the same request")?;
    let renamed = f.change(&secondary, link("handle:joseph")?).await?;
    let again = f.apply(send()).await?;

    equal(&(again.user, again.report), &(Some(renamed), first.report), "the secondary as it is now")
}

pub async fn a_chain_is_undone_from_its_end(f: Fixture) -> Result<(), Failure> {
    let users = chain(&f, 3).await?;
    let merged = Error::UserMerged { user: users[1].id, into: users[2].id };
    refused(f.change(&users[1], UserChange::Unmerge(users[0].id)).await, &merged)?;
    refused(f.change(&users[2], UserChange::Unmerge(users[0].id)).await, &Error::NotMerged)?;
    let (second, not_restored) = unmerge(&f, &users[2], &users[1]).await?;
    equal(&(second.identities.len(), not_restored.len()), &(4, 0), "identities of the second")?;
    is_merged(&f, users[0].id, users[1].id).await?;
    let (first, not_restored) = unmerge(&f, &users[1], &users[0]).await?;
    equal(&(first.identities.len(), not_restored.len()), &(2, 0), "identities of the first")?;
    for (n, user) in users.iter().enumerate() {
        let stored = f.get(user.id).await?.ok_or("a user is gone")?;
        equal(
            &names(&stored),
            &vec![format!("handle:user{n}"), format!("email:user{n}@example.com")],
            "the identities",
        )?;
        equal(&stored.state, &State::Active, "its state")?;
        f.has(&stored).await?;
    }

    let report = f.apply(f.mutation(users[2].id, UserChange::Purge)).await?.report;
    equal(&report, &MutationReport::Purged(vec![users[2].id]), "the purged users")
}

pub async fn holds_return_to_the_secondary(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = (
        f.create(&["handle:joe"]).await?,
        f.create(&["handle:a", "handle:b", "handle:ѕсоре"]).await?,
    );
    for name in ["handle:a", "handle:b"] {
        f.change_with(&holding(10), &secondary, unlink(name)?).await?;
    }

    f.change(&primary, merge(&secondary)).await?;
    f.change(&primary, link("handle:b")?).await?;
    let (back, not_restored) = unmerge(&f, &primary, &secondary).await?;
    equal(
        &(names(&back), not_restored),
        &(vec!["handle:ѕсоре".to_owned()], vec![]),
        "the identities of the secondary",
    )?;
    let claim = f.claim("handle:a").await?.ok_or("a hold is gone")?;
    equal(&claim.owner, &Some(secondary.id), "the owner of the hold")?;
    let outcome = f.change(&primary, link("handle:a")?).await;
    ensure(
        matches!(outcome, Err(Error::IdentityHeld { .. })),
        "the primary can take the secondary's hold",
    )?;
    let relinked = f.change(&back, link("handle:a")?).await?;
    f.has(&relinked).await?;
    let confusable = Error::IdentityConfusable { field: "identifier".to_owned() };
    refused(f.change(&primary, link("handle:scope")?).await, &confusable)?;
    let unlinked = f.change(&relinked, unlink("handle:ѕсоре")?).await?;
    f.has(&unlinked).await?;

    f.change(&primary, UserChange::Link(draft("handle:scope")?))
        .await
        .map(drop)
        .map_err(Failure::from)
}

/// An identity that the primary unlinks and links again, even in the same millisecond, is its own.
pub async fn relinked_identities_stay_with_the_primary(f: Fixture) -> Result<(), Failure> {
    let time = f.now();
    let at = |mutation| Mutation { now: time.into(), ..mutation };
    let primary = f.mutate(at(f.creation(&["handle:joe"])?)).await?;
    let secondary = f.mutate(at(f.creation(&["handle:new"])?)).await?;
    for change in [merge(&secondary), unlink("handle:new")?, link("handle:new")?] {
        f.mutate(at(f.mutation(primary.id, change))).await?;
    }

    let outcome = f.apply(at(f.mutation(primary.id, UserChange::Unmerge(secondary.id)))).await?;
    let lost = vec![NotRestored::Identity(identifier("handle:new")?)];
    equal(&outcome.report, &MutationReport::NotRestored(lost), "the unrestored fields")?;
    let now = f.get(primary.id).await?.ok_or("the primary is gone")?;
    lists(&now, &["handle:joe", "handle:new"])?;

    f.has(&now).await
}
