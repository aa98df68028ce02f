//! A dry run of an import counts its lines as the import does, also those that are about the users
//! of earlier lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use polynym_proto::v1;
use tokio::sync::Semaphore;
use v1::import_users_request::Options;
use v1::import_users_response::Progress;
use v1::{ImportUsersRequest as Line, OnConflict, OnExisting};

use super::{fresh, user};
use crate::support::calls::{Client, email, handle, phone, text};

/// The numbers of an import, and the reasons of its rejects by line and identity.
type Counts = ([i64; 5], BTreeMap<(i64, Option<i32>), String>);

async fn import(client: &mut Client, options: Options, users: &[v1::User]) -> Counts {
    let line = |(line, user): (i64, &v1::User)| Line {
        line,
        user: Some(user.clone()),
        ..Default::default()
    };
    // A line that takes an identity that an earlier one removes from another user comes before or
    // after it, as it happens: each waits for the answer to the one before.
    let has_turns = options.on_existing() == OnExisting::Replace;
    let turns = Arc::new(Semaphore::new(if has_turns { 1 } else { Semaphore::MAX_PERMITS }));
    let first = Line { options: Some(options), ..Default::default() };
    let lines: Vec<_> = (1..).zip(users).map(line).collect();
    let taken = turns.clone();
    let lines = stream::iter(lines).then(move |line| {
        let taken = taken.clone();
        async move {
            taken.acquire_owned().await.unwrap().forget();
            line
        }
    });
    let lines = stream::iter([first]).chain(lines);
    let mut answers = client.admin.import_users(lines).await.unwrap().into_inner();
    let (mut progress, mut rejects) = (Progress::default(), BTreeMap::new());
    while let Some(answer) = answers.message().await.unwrap() {
        turns.add_permits(usize::from(has_turns));
        progress = answer.progress.unwrap_or(progress);
        let own = answer.rejects.into_iter();
        rejects.extend(own.map(|one| ((one.line, one.identity_index), one.reason)));
    }
    let Progress { created, changed, existing, rejected, skipped, .. } = progress;
    ([created, changed, existing, rejected, skipped], rejects)
}

/// A user of few names, numbers and identities, so that many lines are about the same person.
fn random_user(random: &mut fastrand::Rng) -> v1::User {
    let mut identities = Vec::new();
    for _ in 0..random.usize(0..3) {
        let n = random.usize(0..6);
        identities.push(match random.usize(0..8) {
            0..4 => email(&format!("person{n}@example.com")),
            4 => email(&format!("Person{n}@Example.com")),
            5 => handle(["joe", "ann", "pa\u{443}pal", "paypal", "no spaces", "eve"][n]),
            6 => phone(&format!("+4930123456{n}"), ""),
            _ => email("not an email"),
        });
    }
    let mut one = user(["", "Ann", "Joe"][random.usize(0..3)], identities);
    if random.bool() {
        one.attributes.insert("team".to_owned(), text(["a", "b"][random.usize(0..2)]));
    }
    if random.usize(0..3) == 0 {
        one.attributes.insert("number".to_owned(), text(&random.usize(0..5).to_string()));
    }
    one
}

fn random_options(random: &mut fastrand::Rng, tenant: &str) -> Options {
    let existing = [
        OnExisting::Reject,
        OnExisting::Skip,
        OnExisting::Update,
        OnExisting::Fill,
        OnExisting::Replace,
    ];
    let on_existing = existing[random.usize(0..existing.len())];
    let keys = ["", "email", "handle"];
    let key = if on_existing == OnExisting::Reject { "" } else { keys[random.usize(0..3)] };
    let on_conflict = [OnConflict::Reject, OnConflict::SkipIdentity][random.usize(0..2)];
    Options {
        tenant: tenant.to_owned(),
        on_existing: on_existing.into(),
        on_conflict: on_conflict.into(),
        key: key.to_owned(),
        ..Options::default()
    }
}

#[tokio::test]
async fn a_dry_run_counts_what_the_import_then_does() {
    let (_server, mut client) = fresh().await;
    for seed in 0..150 {
        let mut random = fastrand::Rng::with_seed(seed);
        let tenant = format!("trial-{seed}");
        let request = v1::UpdateTenantRequest { tenant: tenant.clone(), ..Default::default() };
        client.admin.update_tenant(request).await.unwrap();
        let there: Vec<_> = (0..random.usize(0..5)).map(|_| random_user(&mut random)).collect();
        // Lines of imports that change users are remembered within their import alone.
        let on_existing = OnExisting::Update.into();
        let first = Options { tenant: tenant.clone(), on_existing, ..Options::default() };
        import(&mut client, first, &there).await;

        let users: Vec<_> = (0..random.usize(1..30)).map(|_| random_user(&mut random)).collect();
        let options = random_options(&mut random, &tenant);
        let dry = Options { validate_only: true, ..options.clone() };
        let foreseen = import(&mut client, dry, &users).await;
        let done = import(&mut client, options.clone(), &users).await;
        assert_eq!(foreseen, done, "seed {seed}, {options:?}:\n{users:#?}");
    }
}
