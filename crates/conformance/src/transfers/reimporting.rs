//! Lines of imports about users who exist.

use std::sync::Arc;

use polynym_directory::{
    Effect, Error, EventKind, Imported, ImportedIdentity, ImportedUser, LineField, Mutation,
    MutationReport, OnConflict, OnExisting, Policies, Reimport, SkipReason, State, Tenant, Update,
    User, UserChange, Value,
};
use polynym_identifier::Kind;

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, draft, identifier};

/// A line that changes users as `on_existing` says, of a file with all fields.
fn line(names: &[&str], on_existing: OnExisting) -> Result<ImportedUser, Failure> {
    let identity = |(index, name): (usize, &&str)| -> Result<_, Failure> {
        Ok(ImportedIdentity { index, new: draft(name)?, link_time: None })
    };
    let identities = names.iter().enumerate().map(identity).collect::<Result<_, _>>()?;
    let reimport = Arc::new(Reimport::parse(on_existing, &[], "")?);
    Ok(ImportedUser { identities, reimport, is_found: true, ..ImportedUser::default() })
}

fn attributes(pairs: &[(&str, &str)]) -> std::collections::BTreeMap<String, Value> {
    let value = |text: &str| Value::String(text.to_owned());
    pairs.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect()
}

/// A user with two identities, a name and two attributes.
async fn joe(f: &Fixture) -> Result<User, Failure> {
    let user = f.create(&["email:joe@example.com", "handle:joe"]).await?;
    let named = Update::from_mask(
        Some(&["*".to_owned()]),
        "Joe".to_owned(),
        attributes(&[("plan", "free"), ("team", "search")]),
    )?;
    Ok(f.change(&user, UserChange::Update(named)).await?)
}

fn mutation(f: &Fixture, user: &User, line: ImportedUser) -> Mutation {
    f.mutation(user.id, UserChange::Import(Box::new(line)))
}

async fn import(f: &Fixture, user: &User, line: &ImportedUser) -> Result<Imported, Error> {
    match f.apply(mutation(f, user, line.clone())).await?.report {
        MutationReport::Imported(imported) => Ok(imported),
        other => Err(Error::Internal(format!("another report: {other:?}").into())),
    }
}

fn texts(user: &User) -> Vec<String> {
    user.identities.iter().map(|one| one.identifier.canonical().to_owned()).collect()
}

pub async fn an_update_sets_what_the_line_has(f: Fixture) -> Result<(), Failure> {
    let joe = joe(&f).await?;
    let mut line = line(&["email:joe@example.com", "email:joe@work.example"], OnExisting::Update)?;
    line.attributes = attributes(&[("plan", "pro")]);
    let dry = Mutation { dry_run: true, ..mutation(&f, &joe, line.clone()) };
    f.apply(dry).await?;
    equal(&f.get(joe.id).await?.as_ref(), &Some(&joe), "the user after a dry run")?;

    let imported = import(&f, &joe, &line).await?;
    let Effect::Changed(changes) = imported.effect else { return Err("no change".into()) };
    equal(&(changes.fields.len(), changes.identities.len()), &(1, 1), "the changes")?;
    let changed = f.get(joe.id).await?.ok_or("the user is gone")?;
    equal(&&*changed.display_name, &"Joe", "the display name")?;
    let wanted = attributes(&[("plan", "pro"), ("team", "search")]);
    equal(&changed.attributes, &wanted, "the attributes")?;
    equal(&changed.identities.len(), &3, "the identities")?;
    ensure(changed.update_time > joe.update_time, "the update time stayed")?;
    f.has(&changed).await?;
    let events = f.events(&changed).await?;
    let last = events.first().ok_or("there is no event")?;
    equal(&(last.kind, last.sequence), &(EventKind::UserImported, 3), "the last event")?;

    equal(&import(&f, &joe, &line).await?.effect, &Effect::Unchanged, "the same line again")?;
    equal(&f.get(joe.id).await?, &Some(changed.clone()), "the user after the same line")?;
    equal(&f.events(&changed).await?.len(), &3, "the events after the same line")?;

    line.reimport = Arc::new(Reimport::parse(OnExisting::Skip, &[], "")?);
    line.display_name = "Another".to_owned();
    equal(&import(&f, &joe, &line).await?.effect, &Effect::Unchanged, "a skipped line")?;
    equal(&f.get(joe.id).await?, &Some(changed), "the user after a skipped line")
}

pub async fn a_replacement_removes_what_the_line_lacks(f: Fixture) -> Result<(), Failure> {
    let joe = joe(&f).await?;
    let fields = ["email", "attributes.plan", "display_name", "state"].map(str::to_owned);
    let mut line = line(&["handle:joe", "email:new@example.com"], OnExisting::Replace)?;
    line.reimport = Arc::new(Reimport::parse(OnExisting::Replace, &fields, "handle")?);
    (line.state, line.has_state) = (State::Disabled, true);
    import(&f, &joe, &line).await?;
    let changed = f.get(joe.id).await?.ok_or("the user is gone")?;
    equal(&texts(&changed), &vec!["joe".to_owned(), "new@example.com".to_owned()], "the names")?;
    equal(&changed.attributes, &attributes(&[("team", "search")]), "the attributes")?;
    equal(&&*changed.display_name, &"", "the display name")?;
    equal(&changed.state, &State::Disabled, "the state")?;
    f.free(&["email:joe@example.com"]).await?;
    f.has(&changed).await?;
    ensure(changed.identities.iter().all(|one| one.primary), "an identity is not primary")
}

pub async fn a_filling_line_leaves_what_the_user_has(f: Fixture) -> Result<(), Failure> {
    let joe = joe(&f).await?;
    f.create(&["email:ann@example.com"]).await?;
    // The address of another user is no conflict, since the user has one.
    let names = ["handle:joe", "email:ann@example.com", "social:github/1", "social:x/1"];
    let mut line = line(&names, OnExisting::Fill)?;
    line.attributes = attributes(&[("plan", "pro"), ("city", "Oslo")]);
    line.display_name = "Another".to_owned();
    (line.state, line.has_state) = (State::Disabled, true);
    import(&f, &joe, &line).await?;
    let changed = f.get(joe.id).await?.ok_or("the user is gone")?;
    equal(&texts(&changed).len(), &4, "the identities")?;
    let wanted = attributes(&[("city", "Oslo"), ("plan", "free"), ("team", "search")]);
    equal(&changed.attributes, &wanted, "the attributes")?;
    equal(&&*changed.display_name, &"Joe", "the display name")?;
    equal(&changed.state, &State::Active, "the state")?;
    f.has(&changed).await?;

    let mut second = line.clone();
    second.identities.truncate(1);
    second.attributes = attributes(&[("city", "Rome")]);
    equal(&import(&f, &joe, &second).await?.effect, &Effect::Unchanged, "a line with no more")?;
    equal(&f.get(joe.id).await?, &Some(changed), "the user after it")
}

pub async fn a_line_changes_only_the_user_that_it_names(f: Fixture) -> Result<(), Failure> {
    let (joe, ann) = (joe(&f).await?, f.create(&["email:ann@example.com"]).await?);
    let line = line(&["email:ann@example.com", "handle:joe"], OnExisting::Update)?;
    // Another user has one of the identities, or all of them.
    let taken = import(&f, &joe, &line).await;
    ensure(
        matches!(taken, Err(Error::IdentityTaken { owner, .. }) if owner == ann.id),
        "not taken",
    )?;
    let mut other = line.clone();
    other.identities.truncate(1);
    let moved = import(&f, &joe, &other).await;
    ensure(matches!(moved, Err(Error::UserExists)), "another user was changed")?;
    // A line that found nobody creates nobody if somebody is there by then.
    let absent = ImportedUser { is_found: false, ..line.clone() };
    let created = f.change_new(UserChange::Import(Box::new(absent))).await;
    ensure(matches!(created, Err(Error::IdentityTaken { .. })), "a second user was created")?;
    // The key of the file may be an attribute.
    let mut keyed = line.clone();
    keyed.identities.clear();
    keyed.attributes = attributes(&[("team", "ads")]);
    keyed.reimport = Arc::new(Reimport {
        key: Some(LineField::Attribute("team".to_owned())),
        ..(*line.reimport).clone()
    });
    let other_team = import(&f, &joe, &keyed).await;
    ensure(matches!(other_team, Err(Error::UserExists)), "a user of another key was changed")?;

    let skipping = ImportedUser { on_conflict: OnConflict::SkipIdentity, ..line };
    let imported = import(&f, &joe, &skipping).await?;
    equal(&imported.skipped.len(), &1, "the skipped identities")?;
    equal(&imported.skipped[0].reason, &SkipReason::Taken(ann.id), "the reason")?;
    equal(&f.get(joe.id).await?, &Some(joe.clone()), "the user")?;

    let elsewhere = Mutation {
        tenant: Tenant::parse("elsewhere")?,
        ..mutation(&f, &joe, ImportedUser { has_id: true, is_found: false, ..skipping })
    };
    ensure(f.apply(elsewhere).await.is_err(), "a user of another tenant was found")?;
    equal(&f.get(joe.id).await?, &Some(joe), "the user after all")
}

pub async fn policies_hold_for_lines(f: Fixture) -> Result<(), Failure> {
    let joe = joe(&f).await?;
    let with = |policies: Policies, line: &ImportedUser| Mutation {
        policies: Arc::new(policies),
        ..mutation(&f, &joe, line.clone())
    };
    let mut none = line(&[], OnExisting::Replace)?;
    none.has_id = true;
    let keep_last = Policies { keep_last: true, ..Policies::default() };
    let last = f.apply(with(keep_last, &none)).await;
    ensure(matches!(last, Err(Error::LastIdentity)), "the last identity was removed")?;
    let reserving =
        Policies { reserved_handles: Some(["admin".to_owned()].into()), ..Policies::default() };
    let mut reserved = line(&["handle:joe", "handle:admin"], OnExisting::Update)?;
    let refused = f.apply(with(reserving.clone(), &reserved)).await;
    ensure(matches!(refused, Err(Error::IdentityReserved { .. })), "a reserved handle was given")?;
    reserved.on_conflict = OnConflict::SkipIdentity;
    let imported = f.apply(with(reserving, &reserved)).await?;
    let skipped = matches!(&imported.report,
        MutationReport::Imported(imported) if imported.skipped.len() == 1);
    ensure(skipped, "a reserved handle was not skipped")?;

    f.change(&joe, UserChange::Delete).await?;
    let line = line(&["handle:joe"], OnExisting::Update)?;
    let deleted = import(&f, &joe, &line).await;
    ensure(matches!(deleted, Err(Error::UserDeleted { .. })), "a deleted user was changed")?;
    ensure(identifier("handle:joe")?.kind() == Kind::Handle, "a handle has another kind")
}
