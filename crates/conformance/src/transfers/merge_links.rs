//! Imported records that name other users.

use locality_uuid::LocalityId;
use polynym_directory::{
    Error, ImportedUser, Invalid, MergeSnapshot, Mutation, MutationReport, Outcome, Record, State,
    Tenant, Timestamp, User, UserChange, UserInternals,
};

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{DAY, Fixture, create, tenant};

/// A line of a user in this state that lists these users as merged into it.
fn line(state: State, merged: &[LocalityId]) -> ImportedUser {
    let internals = UserInternals { merged: merged.to_vec(), ..UserInternals::default() };
    ImportedUser { has_id: true, state, internals: Some(internals), ..ImportedUser::default() }
}

fn merged_into(into: LocalityId) -> ImportedUser {
    line(State::Merged { into }, &[])
}

fn import_of(f: &Fixture, id: LocalityId, line: ImportedUser) -> Mutation {
    f.mutation(id, UserChange::Import(Box::new(line)))
}

async fn import(f: &Fixture, id: LocalityId, line: ImportedUser) -> Result<Outcome, Error> {
    f.apply(import_of(f, id, line)).await
}

/// A user of the tenant `other`.
async fn other_user(f: &Fixture, id: LocalityId) -> Result<User, Failure> {
    let creation = f.mutation(id, create(&["email:joe@example.com"])?);
    Ok(f.mutate(Mutation { tenant: tenant("other")?, ..creation }).await?)
}

/// Fails unless a user of the tenant `other` is unchanged.
async fn has_other(f: &Fixture, user: &User) -> Result<(), Failure> {
    let users = f.store.search.scan(&tenant("other")?, None, 10).await?;
    equal(&users.into_readable().map(|record| record.user).collect(), &vec![user.clone()], "others")
}

/// Fails unless a line was rejected because of this field.
#[track_caller]
fn rejected(outcome: Result<Outcome, Error>, path: &str) -> Result<(), Failure> {
    match outcome {
        Err(Error::Invalid { what: Invalid::UserId, field, .. }) if field == path => Ok(()),
        other => Err(format!("not rejected because of {path}: {other:?}").into()),
    }
}

#[track_caller]
fn damaged<T: std::fmt::Debug>(outcome: Result<T, Error>, id: LocalityId) -> Result<(), Failure> {
    let is_damaged = matches!(&outcome, Err(Error::MergeDamaged { user }) if *user == id);
    ensure(is_damaged, format!("not refused as damaged: {outcome:?}"))
}

pub async fn a_line_names_only_users_that_name_it_back(f: Fixture) -> Result<(), Failure> {
    let other = other_user(&f, f.ids.next_id()).await?;
    let joe = f.create(&["email:joe@example.com"]).await?;
    let [primary, secondary] = [(); 2].map(|()| f.ids.next_id());
    for named in [other.id, joe.id] {
        let listing = import(&f, primary, line(State::Active, &[secondary, named])).await;
        rejected(listing, "internals.merged_user_ids[1]")?;
        rejected(import(&f, secondary, merged_into(named)).await, "user.merged_into")?;
    }
    let twice = line(State::Active, &[secondary, secondary]);
    rejected(import(&f, primary, twice).await, "internals.merged_user_ids[1]")?;
    let itself = line(State::Active, &[primary]);
    rejected(import(&f, primary, itself).await, "internals.merged_user_ids[0]")?;
    equal(&f.get(primary).await?, &None, "the rejected line")?;
    f.has(&joe).await?;
    has_other(&f, &other).await
}

/// A line of a merged user, whose merge restores the user `before`.
fn undoable(into: LocalityId, before: User, until: Timestamp) -> ImportedUser {
    let undo = MergeSnapshot {
        until,
        before: Record::new(before),
        display_name: None,
        attributes: [].into(),
        unmarked: Vec::new(),
    };
    let internals = UserInternals { undo: Some(Box::new(undo)), ..UserInternals::default() };
    ImportedUser { internals: Some(internals), ..merged_into(into) }
}

pub async fn undo_data_belongs_to_the_merged_user(f: Fixture) -> Result<(), Failure> {
    let other = other_user(&f, f.ids.next_id()).await?;
    let joe = f.create(&["email:joe@example.com"]).await?;
    let [primary, secondary] = [(); 2].map(|()| f.ids.next_id());
    let until = f.now().plus(DAY);
    let own = User { id: secondary, identities: Vec::new(), ..joe.clone() };
    let elsewhere = User { tenant: tenant("other")?, ..own.clone() };
    let merged = User { state: State::Merged { into: primary }, ..own.clone() };
    for before in [other.clone(), joe.clone(), elsewhere, merged] {
        let line = undoable(primary, before, until);
        rejected(import(&f, secondary, line).await, "internals.undo.user")?;
    }

    import(&f, secondary, undoable(primary, own.clone(), until)).await?;
    import(&f, primary, line(State::Active, &[secondary])).await?;
    f.apply(f.mutation(primary, UserChange::Unmerge(secondary))).await?;
    let restored = f.get(secondary).await?.ok_or("the secondary is gone")?;
    equal(&restored.display_name, &own.display_name, "the restored name")?;
    f.has(&joe).await?;
    has_other(&f, &other).await
}

pub async fn merged_users_and_primaries_come_in_any_order(f: Fixture) -> Result<(), Failure> {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let [first, second, last] = [(); 3].map(|()| f.ids.next_id());
        let lines = [
            (first, merged_into(second)),
            (second, line(State::Merged { into: last }, &[first])),
            (last, line(State::Disabled, &[first, second])),
        ];
        for n in order {
            let (id, line) = lines[n].clone();
            import(&f, id, line).await.map_err(|error| format!("{order:?}: {error}"))?;
        }
        let mut inboxes = f.store.inboxes.inboxes(&Tenant::DEFAULT, last).await?;
        inboxes.iter_mut().for_each(|inboxes| inboxes.sort());
        let mut all = [first, second, last];
        all.sort();
        equal(&inboxes, &Some(all.to_vec()), "the inboxes")?;
        let purged = f.apply(f.mutation(last, UserChange::Purge)).await?.report;
        equal(&purged, &MutationReport::Purged(all.to_vec()), "the purged users")?;
    }
    Ok(())
}

pub async fn lines_form_no_circle(f: Fixture) -> Result<(), Failure> {
    let [a, b, c] = [(); 3].map(|()| f.ids.next_id());
    rejected(import(&f, a, merged_into(a)).await, "user.merged_into")?;
    let both = line(State::Merged { into: b }, &[b]);
    rejected(import(&f, a, both).await, "internals.merged_user_ids[0]")?;

    import(&f, a, line(State::Merged { into: b }, &[c])).await?;
    rejected(import(&f, b, line(State::Merged { into: a }, &[])).await, "user.merged_into")?;
    import(&f, b, line(State::Merged { into: c }, &[a, c])).await.err().ok_or("a circle")?;
    import(&f, b, line(State::Merged { into: c }, &[a])).await?;
    rejected(
        import(&f, c, line(State::Merged { into: a }, &[a, b])).await,
        "internals.merged_user_ids[0]",
    )?;
    rejected(import(&f, c, line(State::Merged { into: a }, &[b])).await, "user.merged_into")?;
    import(&f, c, line(State::Active, &[a, b])).await.map(drop).map_err(Failure::from)
}

pub async fn a_listed_user_of_another_tenant_is_never_changed(f: Fixture) -> Result<(), Failure> {
    let [primary, deleted, foreign] = [(); 3].map(|()| f.ids.next_id());
    let purge_time = f.now().plus(DAY);
    let due = State::Deleted { delete_time: f.now(), purge_time };
    import(&f, primary, line(State::Active, &[foreign])).await?;
    import(&f, deleted, line(due, &[foreign])).await?;
    let secondary = f.create(&[]).await?;
    let other = other_user(&f, foreign).await?;

    damaged(f.store.inboxes.inboxes(&Tenant::DEFAULT, primary).await, primary)?;
    damaged(f.apply(f.mutation(primary, UserChange::Purge)).await, primary)?;
    let merge = UserChange::Merge(primary, polynym_directory::ConflictPolicy::PrimaryWins);
    damaged(f.apply(f.mutation(secondary.id, merge)).await, primary)?;
    f.wait_until(purge_time.plus(DAY));
    damaged(f.apply(f.mutation(deleted, UserChange::Expire)).await, deleted)?;
    ensure(f.get(primary).await?.is_some() && f.get(deleted).await?.is_some(), "removed")?;
    has_other(&f, &other).await?;

    for id in [primary, deleted] {
        f.apply(f.mutation(id, UserChange::RemoveMergeFaults)).await?;
    }
    let inboxes = f.store.inboxes.inboxes(&Tenant::DEFAULT, primary).await?;
    equal(&inboxes, &Some(vec![primary]), "the inboxes after the repair")?;
    for (id, change) in [(primary, UserChange::Purge), (deleted, UserChange::Expire)] {
        let purged = f.apply(f.mutation(id, change)).await?.report;
        equal(&purged, &MutationReport::Purged(vec![id]), "the purged users")?;
    }
    has_other(&f, &other).await
}

pub async fn a_listed_user_who_was_not_merged_stays(f: Fixture) -> Result<(), Failure> {
    let [primary, listed] = [(); 2].map(|()| f.ids.next_id());
    import(&f, primary, line(State::Active, &[listed])).await?;
    let joe = f.mutate(f.mutation(listed, create(&["email:joe@example.com"])?)).await?;
    let inboxes = f.store.inboxes.inboxes(&Tenant::DEFAULT, primary).await?;
    equal(&inboxes, &Some(vec![primary]), "the inboxes")?;
    let unmerge = f.apply(f.mutation(primary, UserChange::Unmerge(listed))).await;
    ensure(matches!(unmerge, Err(Error::NotMerged)), format!("{unmerge:?}"))?;
    let purged = f.apply(f.mutation(primary, UserChange::Purge)).await?.report;
    equal(&purged, &MutationReport::Purged(vec![primary]), "the purged users")?;
    f.has(&joe).await
}
