//! Importing users.

use std::sync::Arc;

use polynym_directory::{
    ClaimWrite, Effect, Error, Hold, Imported, ImportedIdentity, ImportedUser, Mutation,
    MutationKind, MutationReport, OnConflict, Outcome, Policies, SkipReason, SkippedIdentity,
    State, Tenant, Timestamp, Trial, User, UserChange, Verification, Write,
};
use polynym_identifier::{IdentityKey, Kind};

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{DAY, Fixture, draft, identifier, request};

/// A line with these identities.
fn line(names: &[&str]) -> Result<ImportedUser, Failure> {
    let identity = |(index, name): (usize, &&str)| -> Result<_, Failure> {
        Ok(ImportedIdentity { index, new: draft(name)?, link_time: None })
    };
    let identities = names.iter().enumerate().map(identity).collect::<Result<_, _>>()?;
    let mut line = ImportedUser::default();
    (line.display_name, line.identities) = ("Joe".to_owned(), identities);
    Ok(line)
}

fn import(f: &Fixture, line: &ImportedUser) -> Mutation {
    f.mutation(f.ids.next_id(), UserChange::Import(Box::new(line.clone())))
}

/// Whether the user is new, and the skipped identities.
fn report(outcome: Result<Outcome, Error>) -> Result<(bool, Vec<SkippedIdentity>), Failure> {
    match outcome?.report {
        MutationReport::Imported(Imported { effect, skipped }) => {
            Ok((effect == Effect::Created, skipped))
        }
        other => Err(format!("another report: {other:?}").into()),
    }
}

const CREATED: (bool, Vec<SkippedIdentity>) = (true, Vec::new());
const EXISTING: (bool, Vec<SkippedIdentity>) = (false, Vec::new());

pub async fn an_imported_user_keeps_all_fields(f: Fixture) -> Result<(), Failure> {
    let time = |millis: i64| Timestamp::from_millis(1_600_000_000_000 + millis);
    let mut line = line(&["email:joe@example.com", "handle:ѕсоре"])?;
    line.has_id = true;
    line.state = State::Deleted { delete_time: time(3), purge_time: f.now().plus(DAY) };
    (line.create_time, line.update_time) = (Some(time(0)), Some(time(5)));
    line.identities[0].link_time = Some(time(1));
    line.identities[0].new.verification =
        Some(Verification { time: time(2), by: "a letter".to_owned() });
    let mutation = import(&f, &line);
    let id = mutation.user_id().ok_or("no user")?;
    equal(&report(f.apply(mutation.clone()).await)?, &CREATED, "the first time")?;

    let user: User = f.get(id).await?.ok_or("the user is not there")?;
    equal(&user.state, &line.state, "the state")?;
    equal(&(user.create_time, user.update_time), &(time(0), time(5)), "the times")?;
    let first = &user.identities[0];
    equal(&first.link_time, &time(1), "the link time")?;
    equal(&first.verification, &line.identities[0].new.verification, "the verification")?;
    ensure(user.identities.iter().all(|identity| identity.primary), "no primaries")?;
    let guarded = f.create(&["handle:scope"]).await;
    ensure(guarded.is_err(), "its handle has no guard")?;

    equal(&report(f.apply(mutation.clone()).await)?, &EXISTING, "the second time")?;
    equal(&f.get(id).await?, &Some(user), "the user afterwards")?;
    line.display_name = "Jane".to_owned();
    let other = f.mutation(id, UserChange::Import(Box::new(line)));
    let refused = f.apply(other).await;
    ensure(matches!(refused, Err(Error::UserExists)), format!("{refused:?}"))
}

pub async fn a_line_is_imported_once(f: Fixture) -> Result<(), Failure> {
    let names = ["email:joe@example.com", "handle:joe"];
    let line = line(&names)?;
    let of = |key: &str| Mutation { request: request(key, 1), ..import(&f, &line) };
    equal(&report(f.apply(of("a")).await)?, &CREATED, "the first time")?;
    let user = f.owner(names[0]).await?.ok_or("no user has it")?;
    let again = report(f.apply(of("a")).await)?;
    equal(&again, &EXISTING, "the line again")?;
    equal(&report(f.apply(of("b")).await)?, &EXISTING, "a line that matches an existing user")?;
    f.has(&user).await?;

    // With a new request id, a line does not match a user that was changed since.
    f.change(&user, UserChange::Unlink(draft(names[1])?.identifier)).await?;
    equal(&report(f.apply(of("a")).await)?, &EXISTING, "the line after a change")?;
    let refused = f.apply(of("c")).await;
    let wanted =
        Error::IdentityTaken { owner: user.id, field: "user.identities[0].identifier".to_owned() };
    equal(&format!("{refused:?}"), &format!("{:?}", Err::<(), _>(wanted)), "the refusal")?;
    f.change(&user, UserChange::Purge).await.err().ok_or("the user is left")?;
    equal(&report(f.apply(of("a")).await)?, &EXISTING, "the line after the purge")?;
    f.free(&names).await
}

pub async fn conflicting_identities_are_skipped(f: Fixture) -> Result<(), Failure> {
    let owner = f.create(&["email:joe@example.com", "handle:scope"]).await?;
    let names = ["email:Joe@example.com", "handle:ѕсоре", "handle:admin", "phone:+14155552300"];
    let mut line = line(&names)?;
    let refused = f.apply(import(&f, &line)).await;
    ensure(refused.is_err(), "a conflicting line was imported")?;
    f.free(&names[3..]).await?;

    line.on_conflict = OnConflict::SkipIdentity;
    let skipped = |index, reason| SkippedIdentity { index, reason };
    let wanted = vec![
        skipped(0, SkipReason::Taken(owner.id)),
        skipped(1, SkipReason::Confusable),
        skipped(2, SkipReason::Reserved),
    ];
    let imported = report(f.apply(import(&f, &line)).await)?;
    equal(&imported, &(true, wanted), "the skipped identities")?;
    let user = f.owner(names[3]).await?.ok_or("no user has the rest")?;
    equal(&user.identities.len(), &1, "the imported identities")?;
    f.has(&owner).await?;

    // A user without remaining identities is created too.
    line.identities.truncate(1);
    line.display_name = "Nobody".to_owned();
    let (is_new, skipped) = report(f.apply(import(&f, &line)).await)?;
    ensure(is_new && skipped.len() == 1, "it was not created without identities")
}

pub async fn one_of_many_imports_of_a_line_succeeds(f: Fixture) -> Result<(), Failure> {
    let line = line(&["email:joe@example.com", "handle:joe"])?;
    let mutations = (0..16)
        .map(|_| Mutation { request: request("line", 1), ..import(&f, &line) })
        .collect::<Vec<_>>();
    let tasks: Vec<_> = mutations
        .into_iter()
        .map(|mutation| {
            let store = f.store.clone();
            tokio::spawn(async move { store.mutations.mutate(mutation).await })
        })
        .collect();
    let mut new = 0;
    for task in tasks {
        new += usize::from(report(task.await?)?.0);
    }
    equal(&new, &1, "successful imports")?;
    equal(&f.store.search.scan(&Tenant::DEFAULT, None, 10).await?.users.len(), &1, "users")
}

pub async fn a_batch_imports_each_line_as_if_alone(f: Fixture) -> Result<(), Failure> {
    let first = line(&["email:joe@example.com", "handle:ѕсоре"])?;
    let mut with_id = line(&["email:zoe@example.com"])?;
    with_id.has_id = true;
    let mut skipping = line(&["email:joe@example.com", "phone:+14155552300"])?;
    skipping.on_conflict = OnConflict::SkipIdentity;
    let lines = [
        ("first", first.clone()),
        ("first", first),
        ("taken", line(&["handle:joe", "email:joe@example.com"])?),
        ("confusable", line(&["handle:scope"])?),
        ("with id", with_id),
        ("skipping", skipping),
        ("last", line(&["handle:last"])?),
    ];
    let of = |(key, line): &(&str, ImportedUser)| Mutation {
        request: request(key, 1),
        ..import(&f, line)
    };
    let mutations: Vec<_> = lines.iter().map(of).collect();

    for expected in [Some(true), Some(false)] {
        let outcomes = f.store.mutations.mutate_all(mutations.clone()).await;
        let news: Vec<_> = outcomes
            .into_iter()
            .map(|outcome| report(outcome).ok().map(|(is_new, _)| is_new))
            .collect();
        let wanted = [expected, Some(false), None, None, expected, expected, expected];
        equal(&news.as_slice(), &wanted.as_slice(), "the new lines")?;
        f.free(&["handle:joe"]).await?;
    }
    let owner = f.owner("phone:+14155552300").await?.ok_or("no user has the phone")?;
    equal(&owner.identities.len(), &1, "the imported identities")?;
    let all = f.store.search.scan(&Tenant::DEFAULT, None, 10).await?;
    equal(&all.users.len(), &4, "users")
}

pub async fn a_dry_run_imports_nothing(f: Fixture) -> Result<(), Failure> {
    let names = ["email:joe@example.com"];
    let dry = Mutation { dry_run: true, ..import(&f, &line(&names)?) };
    equal(&report(f.apply(dry.clone()).await)?, &CREATED, "the result of a dry run")?;
    f.free(&names).await?;
    let owner = f.create(&names).await?;
    let refused = f.apply(dry).await;
    ensure(refused.is_err(), "a dry run ignores a conflict")?;
    f.has(&owner).await
}

/// Lines of a trial are decided as after the earlier ones, and write nothing.
pub async fn a_line_of_a_trial_follows_the_earlier_ones(f: Fixture) -> Result<(), Failure> {
    let trial = Arc::new(Trial::default());
    let dry = |line: &ImportedUser| Mutation {
        dry_run: true,
        trial: Some(trial.clone()),
        ..import(&f, line)
    };
    let names = ["email:joe@example.com", "handle:joe"];
    let joe = line(&names)?;
    let first = f.apply(dry(&joe)).await?;
    for write in &first.foreseen {
        match write {
            Write::PutUser(record) => trial.put_user(record),
            Write::Claim(key, ClaimWrite::Insert(claim)) => {
                trial.put_claim(key.clone(), Some(claim.clone()));
            }
            _ => {}
        }
    }
    equal(&report(Ok(first))?, &CREATED, "the first line")?;
    equal(&report(f.apply(dry(&joe)).await)?, &EXISTING, "the same line")?;
    let other = f.apply(dry(&line(&["handle:joe", "handle:eve"])?)).await;
    ensure(other.is_err(), "a trial ignores a conflict with an earlier line")?;
    equal(&report(f.apply(dry(&line(&["handle:eve"])?)).await)?, &CREATED, "another line")?;
    f.free(&names).await
}

pub async fn ownerless_holds_are_exported_and_imported(f: Fixture) -> Result<(), Failure> {
    let holding = Policies { holds: [(Kind::Handle, DAY)].into(), ..Policies::default() };
    for name in ["handle:ann", "handle:ѕсоре"] {
        let user = f.create(&[name]).await?;
        f.change_with(&holding, &user, UserChange::Unlink(identifier(name)?)).await?;
        let purge = f.mutation(user.id, UserChange::Purge);
        f.apply(Mutation { policies: holding.clone().into(), ..purge }).await?;
    }
    let eve = f.create(&["handle:eve"]).await?;
    f.change_with(&holding, &eve, UserChange::Unlink(identifier("handle:eve")?)).await?;
    let holds = f.store.tenants.ownerless_holds(&Tenant::DEFAULT, None, 10).await?;
    // Two handles, and the guard of the second.
    equal(&holds.len(), &3, "holds without an owner")?;
    let rest = f.store.tenants.ownerless_holds(&Tenant::DEFAULT, Some(&holds[0].key), 1).await?;
    equal(&rest, &holds[1..2].to_vec(), "the next hold")?;

    let import = |hold: &Hold| f.apply(f.mutation_of(MutationKind::ImportHold(hold.clone())));
    for hold in &holds {
        equal(&report(import(hold).await)?, &EXISTING, "an existing hold")?;
    }
    let until = holds[0].until;
    let key = IdentityKey::new("default", &identifier("handle:bob")?);
    let bob = Hold { key: key.clone(), ..holds[0].clone() };
    let over = Hold { until: Timestamp::from_millis(1), ..bob.clone() };
    equal(&report(import(&over).await)?, &EXISTING, "an expired hold")?;
    equal(&report(import(&bob).await)?, &CREATED, "a hold")?;
    let refused = f.mutate(f.creation(&["handle:bob"])?).await;
    ensure(matches!(refused, Err(Error::IdentityHeld { until: to, .. }) if to == until), "held")?;

    f.create(&["handle:carl"]).await?;
    let carl = Hold { key: IdentityKey::new("default", &identifier("handle:carl")?), ..bob };
    let taken = import(&carl).await;
    ensure(matches!(taken, Err(Error::IdentityTaken { .. })), format!("{taken:?}"))
}
