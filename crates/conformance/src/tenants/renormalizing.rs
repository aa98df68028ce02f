//! Identities of older rules.

use std::time::Duration;

use polynym_directory::{
    Consistency, Error, EventKind, Filter, Mutation, NewIdentity, NewUser, Policies, Tenant, User,
    UserChange, View, check_history,
};
use polynym_identifier::{Identifier, IdentityKey, Kind, RULES_VERSION, Rules};

use crate::fixture::assertions::{ensure, equal, refused, taken};
use crate::fixture::decoded;
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, identifier, link, lists, no_holds, tenant, user_id};

/// Later rules. The older ones kept the case of emails and handles and allowed handles of digits.
const LATER: Rules = Rules::new(RULES_VERSION + 1, Identifier::parse, Identifier::normalize);

/// An identity of older rules: its canonical form is the typed one.
fn old(kind: Kind, typed: &str) -> NewIdentity {
    let identifier = Identifier::from_canonical(kind, typed.to_owned());
    NewIdentity::new(identifier, typed.to_owned())
}

/// Applies the later rules to an identity of a user.
async fn renormalized(
    f: &Fixture,
    user: &User,
    kind: Kind,
    canonical: &str,
) -> Result<User, Error> {
    f.mutate(Mutation { rules: LATER, ..f.mutation(user.id, renormalize(kind, canonical)) }).await
}

async fn create(f: &Fixture, identities: Vec<NewIdentity>) -> Result<User, Failure> {
    Ok(f.change_new(UserChange::Create(NewUser { identities, ..NewUser::default() })).await?)
}

fn renormalize(kind: Kind, canonical: &str) -> UserChange {
    UserChange::Renormalize(Identifier::from_canonical(kind, canonical.to_owned()))
}

/// Whether the key of a canonical form resolves.
async fn resolves(f: &Fixture, kind: Kind, canonical: &str) -> Result<bool, Failure> {
    let key = IdentityKey::new("default", &Identifier::from_canonical(kind, canonical.to_owned()));
    let owners = decoded::owners(&f.store, &[key], Consistency::Latest).await?;
    Ok(owners.into_iter().flatten().count() == 1)
}

pub async fn an_old_identity_adopts_the_present_rules(f: Fixture) -> Result<(), Failure> {
    let user =
        create(&f, vec![old(Kind::Email, "Joe@EXAMPLE.com"), old(Kind::Handle, "joe")]).await?;
    ensure(resolves(&f, Kind::Email, "Joe@EXAMPLE.com").await?, "the old form does not resolve")?;
    let version = f.claim("handle:joe").await?.map(|claim| claim.rules_version);
    equal(&version, &Some(RULES_VERSION), "the version in the claim")?;
    let f = f.reopen().await?;
    let after = renormalized(&f, &user, Kind::Email, "Joe@EXAMPLE.com").await?;
    lists(&after, &["email:joe@example.com", "handle:joe"])?;
    equal(&after.identities[0].display, &user.identities[0].display, "the display form")?;
    ensure(!resolves(&f, Kind::Email, "Joe@EXAMPLE.com").await?, "the old form resolves")?;
    f.owns(&f.get(user.id).await?.ok_or("gone")?, &["email:joe@example.com"]).await?;
    // If the form stays, only the version changes, which reads do not return.
    let etag = after.etag();
    let after = renormalized(&f, &user, Kind::Handle, "joe").await?;
    equal(&after.etag(), &etag, "the etag")?;
    let version = f.claim("handle:joe").await?.map(|claim| claim.rules_version);
    equal(&version, &Some(LATER.version()), "the version in the claim")?;

    equal(&renormalized(&f, &user, Kind::Handle, "joe").await?, &after, "the user after a repeat")
}

/// Whether a search by this email finds the user.
async fn is_found(f: &Fixture, user: &User, email: &str) -> Result<bool, Failure> {
    let filter = Filter::parse(&format!("identities.email = \"{email}\""), &[Rules::PRESENT])?;
    let path = filter.access_paths().remove(0);
    let found = f.store.search.search(&Tenant::DEFAULT, &path, None, 10, View::Basic).await?;
    Ok(found.readable().any(|found| found.user.id == user.id))
}

pub async fn a_moved_identity_has_an_event_and_is_found(f: Fixture) -> Result<(), Failure> {
    let user = create(&f, vec![old(Kind::Email, "Joe@EXAMPLE.com")]).await?;
    ensure(!is_found(&f, &user, "joe@example.com").await?, "the new form is found before")?;
    let position = match f.store.feed.position().await {
        Err(Error::WatchUnsupported) => None,
        position => Some(position?),
    };
    let after = renormalized(&f, &user, Kind::Email, "Joe@EXAMPLE.com").await?;
    ensure(is_found(&f, &after, "joe@example.com").await?, "the new form is not found")?;
    let events = f.events(&after).await?;
    let event = events.first().ok_or("no event")?;
    let facts = (event.kind, event.sequence, event.changes.identities.len());
    equal(&facts, &(EventKind::IdentityRenormalized, 2, 2), "the event")?;
    check_history(&after, &events)?;
    if let Some(position) = position {
        let timeout = Duration::from_secs(20);
        let page = f.store.feed.events(&Tenant::DEFAULT, &position, timeout).await?;
        let (watched, _) = page.events.first().ok_or("the feed has stopped")?;
        equal(&**watched, event, "the watched event")?;
    }
    // If the form stays, there is no event.
    let again = renormalized(&f, &after, Kind::Email, "joe@example.com").await?;
    equal(&f.events(&again).await?.len(), &2, "the events after a repeat")
}

pub async fn an_old_identity_that_collides_stays(f: Fixture) -> Result<(), Failure> {
    let owner = f.create(&["email:joe@example.com"]).await?;
    let user =
        create(&f, vec![old(Kind::Email, "JOE@example.com"), old(Kind::Handle, "12")]).await?;
    taken(renormalized(&f, &user, Kind::Email, "JOE@example.com").await, &owner, "identifier")?;
    // The later rules reject it.
    let kept = renormalized(&f, &user, Kind::Handle, "12").await?;
    lists(&kept, &["email:JOE@example.com", "handle:12"])?;
    equal(&kept.etag(), &user.etag(), "the etag")?;
    let key = IdentityKey::new("default", &old(Kind::Handle, "12").identifier);
    let claim = f.store.reads.claims(&[key]).await?.into_iter().next().flatten();
    equal(&claim.map(|claim| claim.rules_version), &Some(RULES_VERSION), "the version")?;
    refused(renormalized(&f, &user, Kind::Handle, "other").await, &Error::NotOwned)?;
    ensure(
        resolves(&f, Kind::Email, "JOE@example.com").await?,
        "the colliding identity no longer resolves",
    )?;

    equal(&f.get(user.id).await?.map(|user| user.identities.len()), &Some(2), "identities")
}

pub async fn a_dry_run_renormalizes_nothing(f: Fixture) -> Result<(), Failure> {
    let owner = f.create(&["handle:joe"]).await?;
    let user = create(&f, vec![old(Kind::Handle, "Joe"), old(Kind::Handle, "Eve")]).await?;
    let dry = |name| Mutation {
        dry_run: true,
        rules: LATER,
        ..f.mutation(user.id, renormalize(Kind::Handle, name))
    };
    taken(f.mutate(dry("Joe")).await, &owner, "identifier")?;
    f.mutate(dry("Eve")).await?;
    ensure(resolves(&f, Kind::Handle, "Eve").await?, "a dry run changed the identity")?;
    f.free(&["handle:eve"]).await
}

pub async fn renormalizing_adds_a_guard(f: Fixture) -> Result<(), Failure> {
    let draft = NewUser { identities: vec![old(Kind::Handle, "ѕсоре")], ..NewUser::default() };
    let policies = Policies { allow_lookalikes: true, ..no_holds() }.into();
    let user = f
        .mutate(Mutation { policies, ..f.mutation(f.ids.next_id(), UserChange::Create(draft)) })
        .await?;
    let user = renormalized(&f, &user, Kind::Handle, "ѕсоре").await?;
    let other = f.create(&[]).await?;
    let confusable = Error::IdentityConfusable { field: "identifier".to_owned() };
    refused(f.change(&other, link("handle:scope")?).await, &confusable)?;
    f.change(&user, UserChange::Unlink(identifier("handle:ѕсоре")?)).await?;
    f.change(&other, link("handle:scope")?).await.map(drop).map_err(Failure::from)
}

pub async fn a_scan_lists_each_user_of_a_tenant_once(f: Fixture) -> Result<(), Failure> {
    let elsewhere = tenant("elsewhere")?;
    let mut ids = Vec::new();
    for n in 0..150 {
        let creation = f.creation(&[&format!("handle:user{n}")])?;
        let creation =
            if n % 3 == 0 { Mutation { tenant: elsewhere.clone(), ..creation } } else { creation };
        ids.push((creation.tenant.clone(), user_id(&creation)?));
        f.mutate(creation).await?;
    }

    for (tenant, page) in [(Tenant::DEFAULT, 7), (Tenant::DEFAULT, 1_000), (elsewhere, 10)] {
        let mut wanted: Vec<_> =
            ids.iter().filter(|(other, _)| *other == tenant).map(|(_, id)| *id).collect();
        wanted.sort_unstable();
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let users = f.store.search.scan(&tenant, after, page).await?;
            ensure(
                users.readable().all(|record| record.user.tenant == tenant),
                "a user of another tenant",
            )?;
            found.extend(users.readable().map(|record| record.id()));
            after = users.next;
            if after.is_none() {
                break;
            }
        }
        equal(&found, &wanted, "the scanned users")?;
    }

    Ok(())
}

pub async fn a_display_form_of_another_identifier_does_not_count(
    f: Fixture,
) -> Result<(), Failure> {
    let shown = |name: &str, display: &str| -> Result<_, Failure> {
        Ok(NewIdentity::new(identifier(name)?, display.to_owned()))
    };
    let user = create(
        &f,
        vec![
            shown("email:joe@example.com", "eve@example.com")?,
            shown("handle:joe", "eve")?,
            shown("url:https://example.com/joe", "https://example.com/eve")?,
            shown("email:ann@example.com", "Ann@EXAMPLE.com")?,
        ],
    )
    .await?;
    let forms: Vec<_> =
        user.identities.iter().map(|identity| identity.identifier.clone()).collect();
    let mut after = user;
    for form in &forms {
        let change = UserChange::Renormalize(form.clone());
        after = f.mutate(Mutation { rules: LATER, ..f.mutation(after.id, change) }).await?;
    }
    let moved: Vec<_> =
        after.identities.iter().map(|identity| identity.identifier.clone()).collect();
    equal(&moved, &forms, "the identifiers")?;
    f.free(&["email:eve@example.com", "handle:eve"]).await
}
