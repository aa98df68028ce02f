//! Repeated requests (AIP-155).

use polynym_directory::{Error, IdempotencyKey, Mutation, Timestamp};

use crate::fixture::assertions::{equal, refused, taken};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, link, request, unlink, user_id};

pub async fn a_repeated_create_makes_one_user(f: Fixture) -> Result<(), Failure> {
    let names = ["handle:joe", "email:joe@example.com"];
    let creation = |f: &Fixture| {
        Ok::<_, Failure>(Mutation { request: request("create", 1), ..f.creation(&names)? })
    };
    let user = f.mutate(creation(&f)?).await?;
    let again = creation(&f)?;
    let id = user_id(&again)?;
    equal(&f.mutate(again).await?, &user, "the answer to the same request")?;
    equal(&f.get(id).await?, &None, "a second user")?;
    let unlinked = f.change(&user, unlink("handle:joe")?).await?;
    equal(&f.mutate(creation(&f)?).await?, &unlinked, "the user as it is now")?;
    f.free(&["handle:joe"]).await?;

    f.has(&unlinked).await
}

pub async fn a_repeated_change_happens_once(f: Fixture) -> Result<(), Failure> {
    let first = f.create(&["handle:joe"]).await?;
    let etag = Some(first.etag());
    let linking = |f: &Fixture| -> Result<Mutation, Failure> {
        Ok(Mutation {
            request: request("link", 1),
            etag: etag.clone(),
            ..f.mutation(first.id, link("handle:new")?)
        })
    };
    let linked = f.mutate(linking(&f)?).await?;
    equal(
        &f.mutate(linking(&f)?).await?,
        &linked,
        "the answer to the same request, with a stale etag",
    )?;
    let unlinked = f.change(&first, unlink("handle:new")?).await?;
    equal(&f.mutate(linking(&f)?).await?, &unlinked, "the user as it is now")?;
    f.free(&["handle:new"]).await?;

    f.has(&unlinked).await
}

pub async fn a_request_id_names_one_request(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["handle:joe"]).await?;
    for (key, change) in
        [("changes", link("handle:new")?), ("changes-nothing", link("handle:joe")?)]
    {
        let user =
            f.mutate(Mutation { request: request(key, 1), ..f.mutation(user.id, change) }).await?;
        for other in [link("handle:other")?, unlink("handle:joe")?, unlink("handle:nobody")?] {
            let reused = Mutation { request: request(key, 2), ..f.mutation(user.id, other) };
            refused(f.mutate(reused).await, &Error::RequestIdReused)?;
        }
        f.has(&user).await?;
    }

    f.free(&["handle:other"]).await
}

pub async fn request_keys_differ_by_tenant_method_and_caller(f: Fixture) -> Result<(), Failure> {
    let id = "5bcb4db0-314a-bd53-7a50-013a65ca76d2";
    let keys = [
        ("a", "CreateUser", ""),
        ("a", "CreateUser", "joe"),
        ("a", "LinkIdentity", ""),
        ("a-b", "CreateUser", ""),
    ];
    for (n, (tenant, method, caller)) in keys.into_iter().enumerate() {
        let key = format!("{tenant},{method},{id},{caller}");
        let creation = f.creation(&[&format!("handle:user{n}")])?;
        let wanted = user_id(&creation)?;
        let user = f.mutate(Mutation { request: request(&key, n as u64), ..creation }).await?;
        equal(&user.id, &wanted, &format!("the user of request {n}"))?;
        f.has(&user).await?;
    }

    Ok(())
}

pub async fn a_request_is_remembered_for_a_day(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["handle:joe"]).await?;
    let start = user.create_time.as_millis();
    let at = |millis: i64, change| {
        let time = Timestamp::from_millis(start + millis);
        f.mutate(Mutation {
            now: time.into(),
            request: request("key", 1),
            ..f.mutation(user.id, change)
        })
    };
    at(0, link("handle:new")?).await?;
    let unlinked = f.change(&user, unlink("handle:new")?).await?;
    let day = IdempotencyKey::LIFETIME.as_millis() as i64;
    equal(&at(day - 1, link("handle:new")?).await?, &unlinked, "the answer within a day")?;
    f.free(&["handle:new"]).await?;
    let again = at(day, link("handle:new")?).await?;
    f.owns(&again, &["handle:new"]).await?;
    let unlinked_again = f.change(&unlinked, unlink("handle:new")?).await?;
    equal(
        &at(2 * day - 1, link("handle:new")?).await?,
        &unlinked_again,
        "the answer within a day of the second time",
    )?;

    f.free(&["handle:new"]).await
}

pub async fn expiry_keeps_renewed_requests(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&[]).await?;
    let start = user.create_time.as_millis();
    let later = |days: i64, n: usize, name: String| -> Result<Mutation, Failure> {
        let time = Timestamp::from_millis(start + days * 25 * 60 * 60 * 1_000 + n as i64);
        Ok(Mutation {
            now: time.into(),
            request: request(&format!("r{n}"), 1),
            ..f.mutation(user.id, link(&name)?)
        })
    };
    for n in 0..20 {
        f.mutate(later(0, n, format!("handle:old{n}"))?).await?;
    }

    for n in 0..20 {
        f.mutate(later(1, n, format!("handle:new{n}"))?).await?;
    }
    let stored = f.get(user.id).await?.ok_or("the user is gone")?;
    equal(&stored.identities.len(), &40, "identities")?;
    for n in 0..20 {
        let again = f.mutate(later(1, n, format!("handle:again{n}"))?).await?;
        equal(&again, &stored, &format!("the answer to request {n}, sent a third time"))?;
    }

    f.has(&stored).await
}

pub async fn a_refused_request_is_not_remembered(f: Fixture) -> Result<(), Failure> {
    let owner = f.create(&["handle:joe"]).await?;
    let user = f.create(&[]).await?;
    let send = |request_hash| -> Result<Mutation, Failure> {
        Ok(Mutation {
            request: request("key", request_hash),
            ..f.mutation(user.id, link("handle:joe")?)
        })
    };
    taken(f.mutate(send(1)?).await, &owner, "identifier")?;
    let stale = Mutation { etag: Some("0".repeat(16)), ..send(1)? };
    refused(f.mutate(stale).await, &Error::EtagMismatch)?;
    f.change(&owner, unlink("handle:joe")?).await?;
    let linked = f.mutate(send(2)?).await?;
    f.owns(&linked, &["handle:joe"]).await?;

    refused(f.mutate(send(1)?).await, &Error::RequestIdReused)
}

pub async fn concurrent_repeats_happen_once(f: Fixture) -> Result<(), Failure> {
    let send = |_| {
        Ok::<_, Failure>(Mutation { request: request("key", 1), ..f.creation(&["handle:joe"])? })
    };
    let mutations = (0..32).map(send).collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<_> = mutations.iter().filter_map(Mutation::user_id).collect();
    let mut answers = Vec::new();
    for answer in f.all(mutations).await? {
        answers.push(answer?);
    }

    let users = f.invariants(&ids, &["handle:joe".to_owned()]).await?;
    equal(&users.len(), &1, "users")?;
    for answer in answers {
        equal(&answer, &users[0], "an answer")?;
    }

    Ok(())
}
