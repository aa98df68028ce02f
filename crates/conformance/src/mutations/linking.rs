//! Linking and unlinking.

use polynym_directory::{Error, MutationKind, Update, User, UserChange, Verification};

use crate::fixture::assertions::{ensure, equal, refused, taken};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, draft, identifier, link, lists, names, replace, unlink, user_id};

/// The text forms of the primary identities, in order.
fn primaries(user: &User) -> Vec<String> {
    let primary = user.identities.iter().filter(|identity| identity.primary);
    primary.map(|identity| identity.identifier.to_string()).collect()
}

pub async fn link_adds_an_identity(f: Fixture) -> Result<(), Failure> {
    let before = f.create(&["email:joe@example.com"]).await?;
    let mut mutation = f.mutation(before.id, link("handle:Joe")?);
    let time = mutation.now.time;
    let verification = Some(Verification { time, by: String::new() });
    if let MutationKind::User(_, UserChange::Link(draft)) = &mut mutation.kind {
        draft.verification.clone_from(&verification);
    }

    let user = f.mutate(mutation).await?;
    lists(&user, &["email:joe@example.com", "handle:joe"])?;
    equal(&user.identities[0], &before.identities[0], "the identity from before")?;
    equal(&user.identities[1].link_time, &time, "the link time")?;
    equal(&user.identities[1].verification, &verification, "its verification")?;
    equal(&(user.create_time, user.update_time), &(before.create_time, time), "the user's times")?;
    ensure(user.etag() != before.etag(), "the etag is the same after a link")?;

    f.has(&user).await
}

pub async fn link_again_changes_nothing(f: Fixture) -> Result<(), Failure> {
    let created = f.create(&["email:Joe@example.com"]).await?;
    let user = f.change(&created, link("handle:joe")?).await?;
    for again in ["handle:joe", "handle:@JOE", "email:joe@EXAMPLE.com"] {
        equal(&f.change(&user, link(again)?).await?, &user, "the answer to a second link")?;
        f.has(&user).await?;
    }
    Ok(())
}

pub async fn link_of_a_taken_identifier_is_refused(f: Fixture) -> Result<(), Failure> {
    let owner = f.create(&["email:joe@example.com", "handle:joe"]).await?;
    let other = f.create(&["handle:other"]).await?;
    taken(f.change(&other, link("handle:joe")?).await, &owner, "identifier")?;
    taken(
        f.change(&other, replace("handle:other", "handle:joe")?).await,
        &owner,
        "new_identifier",
    )?;
    let creation = f.creation(&["handle:third", "social:github/3", "email:joe@example.com"])?;
    let id = user_id(&creation)?;
    taken(f.mutate(creation).await, &owner, "user.identities[2].identifier")?;
    f.free(&["handle:third", "social:github/3"]).await?;
    equal(&f.get(id).await?, &None, "the refused user")?;
    f.has(&other).await?;

    f.has(&owner).await
}

pub async fn unlink_frees_the_identifier(f: Fixture) -> Result<(), Failure> {
    let created = f.create(&["email:joe@example.com", "handle:joe", "handle:joseph"]).await?;
    let first = f.change(&created, unlink("handle:JOE")?).await?;
    lists(&first, &["email:joe@example.com", "handle:joseph"])?;
    f.free(&["handle:joe"]).await?;
    f.has(&first).await?;
    let empty = f.create(&[]).await?;
    let second = f.change(&empty, link("handle:joe")?).await?;
    f.has(&second).await?;
    taken(f.change(&first, link("handle:joe")?).await, &second, "identifier")?;
    let emptied = f.change(&second, unlink("handle:joe")?).await?;
    equal(&names(&emptied), &Vec::new(), "the identities after all were unlinked")?;
    let relinked = f.change(&first, link("handle:joe")?).await?;
    f.has(&relinked).await?;

    f.has(&emptied).await
}

pub async fn unlink_of_an_unowned_identifier_is_refused(f: Fixture) -> Result<(), Failure> {
    let owner = f.create(&["handle:joe"]).await?;
    let other = f.create(&["handle:other"]).await?;
    for name in ["handle:joe", "handle:nobody", "email:other@example.com"] {
        refused(f.change(&other, unlink(name)?).await, &Error::NotOwned)?;
        refused(f.change(&other, replace(name, "handle:new")?).await, &Error::NotOwned)?;
        refused(
            f.change(&other, UserChange::Verify(identifier(name)?, None)).await,
            &Error::NotOwned,
        )?;
    }

    f.free(&["handle:nobody", "handle:new"]).await?;
    f.has(&other).await?;
    f.has(&owner).await
}

pub async fn changes_of_unknown_users_are_refused(f: Fixture) -> Result<(), Failure> {
    let changes = [
        UserChange::Update(Update::from_mask(None, "Nobody".to_owned(), Default::default())?),
        link("handle:nobody")?,
        unlink("handle:nobody")?,
        replace("handle:nobody", "handle:somebody")?,
        UserChange::Verify(identifier("handle:nobody")?, None),
    ];
    let id = f.ids.next_id();
    for change in changes {
        refused(f.mutate(f.mutation(id, change)).await, &Error::UserNotFound)?;
    }
    equal(&f.get(id).await?, &None, "the unknown user")?;

    f.free(&["handle:nobody", "handle:somebody"]).await
}

pub async fn each_kind_keeps_one_primary(f: Fixture) -> Result<(), Failure> {
    let mut second = draft("handle:second")?;
    second.primary = true;
    let identities = vec![
        draft("handle:first")?,
        second,
        draft("email:a@example.com")?,
        draft("email:b@example.com")?,
    ];
    let creation =
        UserChange::Create(polynym_directory::NewUser { identities, ..Default::default() });
    let user = f.change_new(creation).await?;
    equal(
        &primaries(&user),
        &vec!["handle:second".to_owned(), "email:a@example.com".to_owned()],
        "the marked and the first",
    )?;
    let linked = f.change(&user, link("handle:third")?).await?;
    let unlinked = f.change(&linked, unlink("handle:second")?).await?;
    equal(
        &primaries(&unlinked),
        &vec!["handle:first".to_owned(), "email:a@example.com".to_owned()],
        "after the primary was unlinked",
    )?;
    let reduced = f.change(&unlinked, unlink("email:b@example.com")?).await?;
    equal(&primaries(&reduced).len(), &2, "primaries after another was unlinked")?;

    f.has(&reduced).await
}
