//! Merging one user into another.

use locality_uuid::LocalityId;
use polynym_directory::{
    Conflict, ConflictPolicy, Error, Invalid, Limits, Mutation, MutationReport, NewUser, Preview,
    State, User, UserChange, Value,
};

use crate::fixture::assertions::{ensure, equal, refused, taken};
use crate::fixture::factory::Failure;
use crate::fixture::{
    DAY, Fixture, draft, holding, identifier, link, names, request, tenant, unlink,
};

/// A merge under this policy.
pub fn merge_by(secondary: &User, policy: ConflictPolicy) -> UserChange {
    UserChange::Merge(secondary.id, policy)
}

/// A merge in which the primary wins.
pub fn merge(secondary: &User) -> UserChange {
    merge_by(secondary, ConflictPolicy::PrimaryWins)
}

pub fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

/// A user with a name and attributes.
pub async fn person(
    f: &Fixture,
    name: &str,
    attributes: &[(&str, &str)],
    owns: &[&str],
) -> Result<User, Failure> {
    let owned = attributes.iter().map(|(name, value)| ((*name).to_owned(), text(value)));
    let identities = owns.iter().map(|name| draft(name)).collect::<Result<_, _>>()?;
    let draft = NewUser { display_name: name.to_owned(), attributes: owned.collect(), identities };
    Ok(f.change_new(UserChange::Create(draft)).await?)
}

/// Two users with conflicting, equal and different fields.
pub async fn conflicting_users(f: &Fixture) -> Result<(User, User), Failure> {
    let owns = ["email:joe@example.com", "handle:joe"];
    let primary =
        person(f, "Joe", &[("city", "Paris"), ("plan", "gold"), ("same", "x")], &owns).await?;
    let owns = ["email:joseph@example.com", "social:github/1", "email:j@example.com"];
    let secondary =
        person(f, "Joseph", &[("city", "Rome"), ("team", "core"), ("same", "x")], &owns).await?;
    Ok((primary, secondary))
}

/// Fails unless the secondary is empty and merged into the primary.
pub async fn is_merged(
    f: &Fixture,
    secondary: LocalityId,
    primary: LocalityId,
) -> Result<(), Failure> {
    let left = f.get(secondary).await?.ok_or("the secondary is gone")?;
    equal(&left.state, &State::Merged { into: primary }, "the secondary's state")?;
    equal(
        &(left.identities.len(), left.attributes.len(), left.display_name.len()),
        &(0, 0, 0),
        "the content of the secondary",
    )
}

fn attributes(user: &User) -> Vec<(&str, &Value)> {
    user.attributes.iter().map(|(name, value)| (name.as_str(), value)).collect()
}

pub async fn a_merged_user_is_part_of_the_primary(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    let merged = f.change(&primary, merge(&secondary)).await?;
    let all: Vec<_> = names(&primary).into_iter().chain(names(&secondary)).collect();
    equal(&names(&merged), &all, "the identities of the primary")?;
    equal(&merged.display_name.as_str(), &"Joe", "its name")?;
    let wanted = [
        ("city", &text("Paris")),
        ("plan", &text("gold")),
        ("same", &text("x")),
        ("team", &text("core")),
    ];
    equal(attributes(&merged).as_slice(), &wanted, "its attributes")?;
    let marks: Vec<bool> = merged.identities.iter().map(|identity| identity.primary).collect();
    equal(marks.as_slice(), &[true, true, false, true, false], "its marks")?;
    equal(
        &merged.identities[2].link_time,
        &secondary.identities[0].link_time,
        "the link time of an identity",
    )?;
    equal(
        &(merged.id, merged.create_time, merged.state),
        &(primary.id, primary.create_time, State::Active),
        "the rest",
    )?;
    ensure(
        merged.update_time > primary.update_time && merged.etag() != primary.etag(),
        "time and etag did not change",
    )?;
    let f = f.reopen().await?;
    f.has(&merged).await?;
    is_merged(&f, secondary.id, primary.id).await?;
    let other = f.create(&[]).await?;

    taken(f.change(&other, link("email:joseph@example.com")?).await, &merged, "identifier")
}

pub async fn the_secondary_can_win(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    let merged = f.change(&primary, merge_by(&secondary, ConflictPolicy::SecondaryWins)).await?;
    equal(&merged.display_name.as_str(), &"Joseph", "the name")?;
    let wanted = [
        ("city", &text("Rome")),
        ("plan", &text("gold")),
        ("same", &text("x")),
        ("team", &text("core")),
    ];
    equal(attributes(&merged).as_slice(), &wanted, "the attributes")?;
    let marks: Vec<bool> = merged.identities.iter().map(|identity| identity.primary).collect();
    equal(marks.as_slice(), &[false, true, true, true, false], "the marks")?;

    f.has(&merged).await
}

pub async fn conflicts_can_fail_a_merge(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    let fields = ["display_name", "attributes.city", "primary.email"].map(str::to_owned).into();
    refused(
        f.change(&primary, merge_by(&secondary, ConflictPolicy::Fail)).await,
        &Error::MergeConflict { fields },
    )?;
    f.has(&primary).await?;
    f.has(&secondary).await?;
    let unlike = person(&f, "", &[("team", "core")], &["phone:+14155552300"]).await?;
    let merged = f.change(&primary, merge_by(&unlike, ConflictPolicy::Fail)).await?;
    equal(
        &(merged.identities.len(), merged.attributes.len()),
        &(3, 4),
        "identities and attributes",
    )?;

    f.has(&merged).await
}

/// The preview of a merge.
async fn preview(
    f: &Fixture,
    primary: &User,
    change: UserChange,
) -> Result<(Option<User>, Preview), Failure> {
    let outcome = f.apply(Mutation { dry_run: true, ..f.mutation(primary.id, change) }).await?;
    match outcome.report {
        MutationReport::Preview(preview) => Ok((outcome.user, *preview)),
        other => Err(format!("a dry run of a merge reports {other:?}").into()),
    }
}

pub async fn a_preview_shows_the_result_of_a_merge(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    for (policy, secondary_wins) in
        [(ConflictPolicy::PrimaryWins, false), (ConflictPolicy::SecondaryWins, true)]
    {
        let (user, preview) = preview(&f, &primary, merge_by(&secondary, policy)).await?;
        equal(&user.as_ref(), &Some(&primary), "the primary before the merge")?;
        let moved: Vec<_> =
            preview.moved.iter().map(|identity| identity.identifier.to_string()).collect();
        equal(&moved, &names(&secondary), "the moved identities")?;
        let conflicts = [
            ("display_name", "Joe", "Joseph"),
            ("attributes.city", "Paris", "Rome"),
            ("primary.email", "email:joe@example.com", "email:joseph@example.com"),
        ];
        let conflict = |(field, own, other): (&str, &str, &str)| {
            let (kept, dropped) = if secondary_wins { (other, own) } else { (own, other) };
            Conflict { field: field.to_owned(), kept: text(kept), dropped: text(dropped) }
        };
        equal(&preview.conflicts, &conflicts.map(conflict).into(), "the conflicts")?;
        f.has(&primary).await?;
        f.has(&secondary).await?;
        if secondary_wins {
            let merged = f.change(&primary, merge_by(&secondary, policy)).await?;
            let result = User { update_time: merged.update_time, ..preview.result };
            equal(&result, &merged, "the result")?;
        }
    }

    Ok(())
}

pub async fn bad_merges_are_refused(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    let itself = f.change(&primary, merge(&primary)).await;
    let named = |field: &str| field == "secondary_user_id";
    ensure(
        matches!(&itself, Err(Error::Invalid { what: Invalid::UserId, field, .. }) if named(field)),
        "with itself",
    )?;
    let nobody = User { id: f.ids.next_id(), ..secondary.clone() };
    refused(f.change(&primary, merge(&nobody)).await, &Error::UserNotFound)?;
    refused(f.change(&nobody, merge(&primary)).await, &Error::UserNotFound)?;
    let elsewhere =
        f.mutate(Mutation { tenant: tenant("elsewhere")?, ..f.creation(&["handle:joe"])? }).await?;
    refused(f.change(&primary, merge(&elsewhere)).await, &Error::UserNotFound)?;
    refused(f.change(&elsewhere, merge(&primary)).await, &Error::UserNotFound)?;
    let created = f.create(&["handle:gone"]).await?;
    let gone = f.change(&created, UserChange::Delete).await?;
    refused(f.change(&primary, merge(&gone)).await, &Error::UserDeleted { user: gone.id })?;
    refused(f.change(&gone, merge(&primary)).await, &Error::UserDeleted { user: gone.id })?;
    let stale =
        Mutation { etag: Some(secondary.etag()), ..f.mutation(primary.id, merge(&secondary)) };
    refused(f.mutate(stale).await, &Error::EtagMismatch)?;
    let limits = Limits { identities: 4, ..Limits::default() };
    let many = Mutation { limits, ..f.mutation(primary.id, merge(&secondary)) };
    refused(f.mutate(many).await, &Error::TooMany { what: "identities", limit: 4, count: 5 })?;
    let limits = Limits { merged: 0, ..Limits::default() };
    let many = Mutation { limits, ..f.mutation(primary.id, merge(&secondary)) };
    refused(
        f.mutate(many).await,
        &Error::TooMany { what: "users merged into it", limit: 0, count: 1 },
    )?;
    for user in [&primary, &secondary, &gone] {
        f.has(user).await?;
    }

    Ok(())
}

pub async fn a_merged_user_is_not_changed(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    let merged = f.change(&primary, merge(&secondary)).await?;
    let other = f.create(&["handle:other"]).await?;
    let changes = [
        link("handle:new")?,
        unlink("email:joseph@example.com")?,
        UserChange::Verify(identifier("email:joseph@example.com")?, None),
        UserChange::Disable,
        UserChange::Enable,
        UserChange::Delete,
        UserChange::Undelete,
        UserChange::Purge,
        merge(&other),
    ];
    let gone = Error::UserMerged { user: secondary.id, into: primary.id };
    for change in changes {
        refused(f.change(&secondary, change).await, &gone)?;
    }

    refused(f.change(&primary, merge(&secondary)).await, &gone)?;
    refused(f.change(&other, merge(&secondary)).await, &gone)?;
    f.has(&merged).await?;
    is_merged(&f, secondary.id, primary.id).await
}

pub async fn a_repeated_merge_happens_once(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    let send =
        || Mutation { request: request("merge", 1), ..f.mutation(primary.id, merge(&secondary)) };
    let merged = f.mutate(send()).await?;
    let outcome = f.apply(send()).await?;
    equal(
        &(outcome.user, outcome.report),
        &(Some(merged), MutationReport::Nothing),
        "the answer to the same request",
    )?;
    let left = f.change(&primary, unlink("email:j@example.com")?).await?;

    equal(&f.mutate(send()).await?, &left, "the primary as it is now")
}

/// Merges each user into the next. Returns all.
pub async fn chain(f: &Fixture, count: usize) -> Result<Vec<User>, Failure> {
    let mut users = Vec::new();
    for n in 0..count {
        users.push(
            f.create(&[&format!("handle:user{n}"), &format!("email:user{n}@example.com")]).await?,
        );
    }

    for n in 1..count {
        users[n] = f.change(&users[n], merge(&users[n - 1])).await?;
    }
    Ok(users)
}

pub async fn chains_of_merges_lead_to_one_user(f: Fixture) -> Result<(), Failure> {
    let users = chain(&f, 5).await?;
    let last = &users[4];
    equal(&last.identities.len(), &10, "identities")?;
    f.has(last).await?;
    for n in 0..4 {
        is_merged(&f, users[n].id, users[n + 1].id).await?;
    }

    let round = f.change(&users[0], merge(last)).await;
    refused(round, &Error::UserMerged { user: users[0].id, into: users[1].id })?;
    let limits = Limits { merged: 4, ..Limits::default() };
    let other = f.create(&[]).await?;
    let too_many = Error::TooMany { what: "users merged into it", limit: 4, count: 5 };

    refused(f.mutate(Mutation { limits, ..f.mutation(other.id, merge(last)) }).await, &too_many)
}

pub async fn purging_a_primary_purges_its_secondaries(f: Fixture) -> Result<(), Failure> {
    let users = chain(&f, 4).await?;
    let outcome = f.apply(f.mutation(users[3].id, UserChange::Purge)).await?;
    let mut ids: Vec<_> = users.iter().map(|user| user.id).collect();
    ids.sort_unstable();
    equal(&outcome.report, &MutationReport::Purged(ids), "the purged users")?;
    for (n, user) in users.iter().enumerate() {
        equal(&f.get(user.id).await?, &None, "a purged user")?;
        f.free(&[&format!("handle:user{n}"), &format!("email:user{n}@example.com")]).await?;
    }
    f.create(&["handle:user0", "email:user3@example.com"]).await.map(drop)
}

pub async fn a_disabled_user_can_be_merged(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) = conflicting_users(&f).await?;
    f.change(&secondary, UserChange::Disable).await?;
    let merged = f.change(&primary, merge(&secondary)).await?;
    equal(&merged.state, &State::Active, "the primary's state")?;
    f.has(&merged).await
}

pub async fn holds_of_the_secondary_move_to_the_primary(f: Fixture) -> Result<(), Failure> {
    let (primary, secondary) =
        (f.create(&["handle:joe"]).await?, f.create(&["handle:jo", "handle:ѕсоре"]).await?);
    let until = f.now().plus(DAY * 10);
    f.change_with(&holding(10), &secondary, unlink("handle:jo")?).await?;
    let merged = f.change(&primary, merge(&secondary)).await?;
    let other = f.create(&["handle:other"]).await?;
    let held = Error::IdentityHeld { until, field: "identifier".to_owned() };
    refused(f.change(&other, link("handle:jo")?).await, &held)?;
    let confusable = Error::IdentityConfusable { field: "identifier".to_owned() };
    refused(f.change(&other, link("handle:scope")?).await, &confusable)?;
    let linked = f.change(&merged, link("handle:jo")?).await?;
    f.has(&linked).await?;
    let unlinked = f.change(&linked, unlink("handle:ѕсоре")?).await?;
    f.has(&unlinked).await?;

    f.change(&other, link("handle:scope")?).await.map(drop).map_err(Failure::from)
}
