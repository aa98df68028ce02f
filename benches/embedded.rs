//! The cost of the embedded store without any RPC: look-ups, durable creates with and without group
//! commit, and opening.
//!
//! `cargo bench --bench embedded` with `USERS` (100,000) users of three identities each and a page
//! cache of `CACHE_MIB` (1,024).

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use locality_uuid::{Generator, Mode};
use polynym_directory::{
    Consistency, LookUps, Mutation, Mutations, NewIdentity, NewUser, Tenant, Timestamp, UserChange,
    Value, View,
};
use polynym_embedded::{Embedded, Options};
use polynym_identifier::{Identifier, IdentityKey, RawIdentifier};

fn identifiers(n: u64) -> [Identifier; 3] {
    let (email, handle, subject) =
        (format!("user{n}@example.com"), format!("user{n}"), format!("{n}"));
    let social = RawIdentifier::Social { provider: "github", subject: &subject };
    [RawIdentifier::Email(&email), RawIdentifier::Handle(&handle), social]
        .map(|raw| Identifier::parse(raw).expect("a well-formed identifier"))
}

fn create(ids: &Generator, n: u64) -> Mutation {
    let identity = |identifier: Identifier| {
        let display = identifier.canonical().to_owned();
        NewIdentity::new(identifier, display)
    };
    let note =
        Value::String("some sixty bytes that stand for what a company knows of a user".to_owned());
    let draft = NewUser {
        display_name: format!("User number {n}"),
        identities: identifiers(n).map(identity).into(),
        attributes: [("note".to_owned(), note)].into(),
    };
    Mutation::of_user(Tenant::DEFAULT, ids.next_id(), Timestamp::now(), UserChange::Create(draft))
}

/// Creates users `from..to` with `concurrency` callers, and returns the rate a second.
async fn creates(
    store: &Arc<Embedded>,
    ids: &Arc<Generator>,
    from: u64,
    to: u64,
    concurrency: u64,
) -> f64 {
    let start = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..concurrency {
        let (store, ids) = (store.clone(), ids.clone());
        callers.spawn(async move {
            for n in (from + caller..to).step_by(concurrency as usize) {
                store.mutate(create(&ids, n)).await.expect("a create");
            }
        });
    }
    callers.join_all().await;
    (to - from) as f64 / start.elapsed().as_secs_f64()
}

async fn resolves(store: &Arc<Embedded>, users: u64, time: Duration) -> f64 {
    let keys: Vec<_> = (0..50_000u64)
        .map(|n| {
            IdentityKey::new(
                "default",
                &identifiers(n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % users)[(n % 3) as usize],
            )
        })
        .collect();
    let (start, mut count) = (Instant::now(), 0u64);
    while start.elapsed() < time {
        for key in &keys[..1_000] {
            let _ = store
                .resolve(std::slice::from_ref(key), Consistency::Latest, View::Full, Duration::ZERO)
                .await;
        }
        for key in &keys {
            let found = store
                .resolve(std::slice::from_ref(key), Consistency::Latest, View::Full, Duration::ZERO)
                .await
                .expect("a read");
            assert!(matches!(found.found[0], Ok(Some(_))));
            count += 1;
        }
    }
    count as f64 / start.elapsed().as_secs_f64()
}

fn open(folder: &Path, group_limit: usize) -> Arc<Embedded> {
    let start = Instant::now();
    let cache_bytes = setting("CACHE_MIB", 1_024) << 20;
    let store = Embedded::open(
        folder,
        Options { group_limit, cache_bytes: cache_bytes as usize, ..Options::default() },
    )
    .expect("a store");
    println!("open                           {:>12.1} ms", start.elapsed().as_secs_f64() * 1e3);
    Arc::new(store)
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[tokio::main]
async fn main() {
    let users = setting("USERS", 100_000);
    let folder = tempfile::tempdir().expect("a folder");
    let ids = Arc::new(Generator::new(Mode::Variable));
    let mut store = open(folder.path(), 1_024);
    println!(
        "load of {users} users at 1,024 {:>12.0} /s",
        creates(&store, &ids, 0, users, 1_024).await
    );
    let rate = resolves(&store, users, Duration::from_secs(3)).await;
    println!("resolve, one thread            {rate:>12.0} /s  {:.0} ns", 1e9 / rate);
    let mut next = users;
    for (concurrency, count) in
        [(1, 300), (16, 3_000), (64, 10_000), (256, 20_000), (1_024, 40_000)]
    {
        let rate = creates(&store, &ids, next, next + count, concurrency).await;
        println!("creates at {concurrency:>5}, grouped       {rate:>12.0} /s");
        next += count;
    }
    drop(store);
    store = open(folder.path(), 1);
    let rate = creates(&store, &ids, next, next + 2_000, 64).await;
    println!("creates at    64, one a sync   {rate:>12.0} /s");
}
