//! Fields, verification, etags and times.

use std::collections::{BTreeMap, BTreeSet};

use polynym_directory::{
    Error, Mutation, NewUser, Timestamp, Update, User, UserChange, Value, Verification,
};

use crate::fixture::assertions::{ensure, equal, refused};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, identifier, link, replace, unlink};

fn texts(attributes: &[(&str, &str)]) -> BTreeMap<String, Value> {
    attributes
        .iter()
        .map(|(name, text)| ((*name).to_owned(), Value::String((*text).to_owned())))
        .collect()
}

/// The update of the fields in `mask`.
fn update(
    mask: &[&str],
    display_name: &str,
    attributes: &[(&str, &str)],
) -> Result<UserChange, Failure> {
    let paths: Vec<String> = mask.iter().map(|path| (*path).to_owned()).collect();
    Ok(UserChange::Update(Update::from_mask(
        Some(&paths),
        display_name.to_owned(),
        texts(attributes),
    )?))
}

/// A user with a name and two attributes.
async fn named(f: &Fixture) -> Result<User, Failure> {
    let attributes = texts(&[("city", "Paris"), ("plan", "free")]);
    let draft = NewUser { display_name: "Joe".to_owned(), attributes, ..NewUser::default() };
    let user = f.change_new(UserChange::Create(draft)).await?;
    Ok(f.change(&user, link("handle:joe")?).await?)
}

pub async fn update_sets_the_fields_of_the_mask(f: Fixture) -> Result<(), Failure> {
    let user = named(&f).await?;
    type Step = (&'static [&'static str], &'static str, &'static [(&'static str, &'static str)]);
    let steps: [Step; 6] = [
        (&["display_name"], "Joseph", &[("city", "Paris"), ("plan", "free")]),
        (&["attributes.plan"], "Joseph", &[("city", "Paris"), ("plan", "gold")]),
        (&["attributes.city", "attributes.a.b"], "Joseph", &[("a.b", "c"), ("plan", "gold")]),
        (&["attributes"], "Joseph", &[("x", "y")]),
        (&["*"], "", &[("z", "")]),
        (&["attributes"], "", &[]),
    ];
    let mut before = user;
    for (mask, name, attributes) in steps {
        let after = f.change(&before, update(mask, name, attributes)?).await?;
        equal(
            &after.display_name.as_str(),
            &name,
            &format!("the name after an update of {mask:?}"),
        )?;
        equal(
            &after.attributes,
            &texts(attributes),
            &format!("the attributes after an update of {mask:?}"),
        )?;
        equal(&after.identities, &before.identities, "the identities after an update")?;
        ensure(
            after.etag() != before.etag(),
            format!("the etag is the same after an update of {mask:?}"),
        )?;
        ensure(after.update_time > before.update_time, "the update time did not advance")?;
        f.has(&after).await?;
        before = after;
    }

    Ok(())
}

pub async fn no_op_changes_keep_time_and_etag(f: Fixture) -> Result<(), Failure> {
    let user = named(&f).await?;
    let changes = [
        update(&["display_name"], "Joe", &[])?,
        update(&["attributes.plan"], "", &[("plan", "free")])?,
        update(&["attributes.none"], "", &[])?,
        UserChange::Update(Update::from_mask(None, String::new(), BTreeMap::new())?),
        link("handle:joe")?,
        replace("handle:joe", "handle:joe")?,
        UserChange::Verify(identifier("handle:joe")?, None),
    ];
    for change in changes {
        let after = f.change(&user, change).await?;
        equal(&after, &user, "the user after a change that changes nothing")?;
        equal(&after.etag(), &user.etag(), "the etag after a change that changes nothing")?;
    }

    f.has(&user).await
}

pub async fn verify_sets_and_clears(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["email:joe@example.com", "handle:joe"]).await?;
    let email = identifier("email:joe@example.com")?;
    let verification = Some(Verification {
        time: Timestamp::from_millis(5),
        by: "a letter, по почте".to_owned(),
    });
    let verified = f.change(&user, UserChange::Verify(email.clone(), verification.clone())).await?;
    equal(&verified.identities[0].verification, &verification, "the verification")?;
    equal(&verified.identities[1], &user.identities[1], "the other identity")?;
    ensure(verified.etag() != user.etag(), "the etag is the same after a verification")?;
    f.has(&verified).await?;
    let again = Some(Verification { time: Timestamp::from_millis(6), by: String::new() });
    let verified = f.change(&user, UserChange::Verify(email.clone(), again.clone())).await?;
    equal(&verified.identities[0].verification, &again, "the second verification")?;
    f.has(&verified).await?;
    let cleared = f.change(&user, UserChange::Verify(email, None)).await?;
    equal(
        &cleared.identities,
        &user.identities,
        "the identities after the verification was removed",
    )?;

    f.has(&cleared).await
}

pub async fn an_etag_is_enforced(f: Fixture) -> Result<(), Failure> {
    let first = named(&f).await?;
    let user = f.change(&first, link("handle:joseph")?).await?;
    let changes = [
        update(&["display_name"], "Eve", &[])?,
        link("handle:eve")?,
        link("handle:joe")?,
        unlink("handle:joe")?,
        unlink("handle:nobody")?,
        replace("handle:joe", "handle:eve")?,
        UserChange::Verify(identifier("handle:joe")?, None),
    ];
    for change in changes {
        for etag in [first.etag(), String::new(), user.etag().to_uppercase() + "0"] {
            let mutation = Mutation { etag: Some(etag), ..f.mutation(user.id, change.clone()) };
            refused(f.mutate(mutation).await, &Error::EtagMismatch)?;
        }
    }

    f.free(&["handle:eve"]).await?;
    f.has(&user).await?;
    let mut user = user;
    for change in
        [link("handle:eve")?, unlink("handle:joe")?, update(&["display_name"], "Eve", &[])?]
    {
        user =
            f.mutate(Mutation { etag: Some(user.etag()), ..f.mutation(user.id, change) }).await?;
        f.has(&user).await?;
    }

    Ok(())
}

pub async fn times_never_go_back(f: Fixture) -> Result<(), Failure> {
    let user = named(&f).await?;
    let early = Timestamp::from_millis(user.create_time.as_millis() - 86_400_000);
    let mutation =
        Mutation { now: early.into(), ..f.mutation(user.id, link("email:joe@example.com")?) };
    let after = f.mutate(mutation).await?;
    let next = Timestamp::from_millis(user.update_time.as_millis() + 1);
    equal(&after.update_time, &next, "the time of a change while the clock was behind")?;
    equal(&after.identities[1].link_time, &next, "the link time")?;
    ensure(
        after.etag() != user.etag(),
        "the etag is the same after a change while the clock was behind",
    )?;

    f.has(&after).await
}

/// Executes the changes in order within one millisecond. Returns the user after each.
async fn in_one_millisecond(
    f: &Fixture,
    user: &User,
    changes: Vec<UserChange>,
) -> Result<Vec<User>, Failure> {
    let time = f.now();
    let mut users = Vec::new();
    for change in changes {
        let etag = users.last().map(User::etag);
        users.push(
            f.mutate(Mutation { now: time.into(), etag, ..f.mutation(user.id, change) }).await?,
        );
    }
    Ok(users)
}

pub async fn changes_in_one_millisecond_have_an_order(f: Fixture) -> Result<(), Failure> {
    let user = named(&f).await?;
    let verified = Verification { time: f.now(), by: String::new() };
    let handle = identifier("handle:joe")?;
    let changes = in_one_millisecond(
        &f,
        &user,
        vec![
            update(&["display_name"], "Joseph", &[])?,
            update(&["display_name"], "Joe", &[])?,
            update(&["display_name"], "Joseph", &[])?,
            link("handle:new")?,
            unlink("handle:new")?,
            link("handle:new")?,
            replace("handle:new", "handle:newer")?,
            replace("handle:newer", "handle:new")?,
            UserChange::Verify(handle.clone(), Some(verified.clone())),
            UserChange::Verify(handle.clone(), None),
            UserChange::Verify(handle, Some(verified)),
            UserChange::Disable,
            UserChange::Enable,
            UserChange::Delete,
            UserChange::Undelete,
            UserChange::Delete,
        ],
    );
    let users = changes.await?;
    for (n, pair) in users.windows(2).enumerate() {
        ensure(
            pair[0].update_time < pair[1].update_time,
            format!("change {n} is not before the next: {pair:?}"),
        )?;
    }

    let etags: BTreeSet<_> = users.iter().map(User::etag).collect();
    equal(&etags.len(), &users.len(), "different etags")?;
    f.has(users.last().ok_or("no user")?).await
}
