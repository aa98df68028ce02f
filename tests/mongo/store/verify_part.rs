//! `store verify` of a part of a store, and what a verification reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mongodb::bson::{Document, doc};
use mongodb::event::EventHandler;
use mongodb::event::command::CommandEvent;
use mongodb::options::ClientOptions;
use mongodb::{Client, Database};
use polynym_directory::{Mutation, Mutations, Tenant};
use polynym_mongodb::{InitOptions, IntegritySession, Mongo, Options, Supported, init};
use polynym_store_common::integrity::{Finding, Observer, verify};

use super::{database, stderr, stdout, store};
use crate::servers;
use crate::support::scenarios::store_command::findings;
use crate::users;

/// The users whose verification is counted.
const COUNTED: usize = 1_000;
/// The variable with the number of users whose verification is timed.
const TIMED: &str = "POLYNYM_VERIFIED_USERS";
/// The users that one call creates.
const CREATED_AT_ONCE: usize = 100;

struct Silent;

impl Observer for Silent {
    fn at(&mut self, _: &'static str, _: u64, _: u64) {}

    fn found(&mut self, finding: &Finding) {
        panic!("{finding:?}");
    }
}

async fn store_of(uri: &str) -> Mongo {
    init(uri, &InitOptions::default(), &|_| {}).await.unwrap();
    Mongo::open(uri, Options::default()).await.unwrap()
}

/// Creates users, each with two names.
async fn create(store: &Mongo, users: usize) {
    let numbers: Vec<_> = (0..users).collect();
    for numbers in numbers.chunks(CREATED_AT_ONCE) {
        let creations = numbers.iter().map(|n| users::creation(*n)).collect();
        let created = store.mutate_all(creations).await;
        created.into_iter().for_each(|created| drop(created.unwrap()));
    }
}

/// A database whose reads are counted.
async fn counted(uri: &str) -> (Database, Arc<AtomicUsize>) {
    let reads = Arc::<AtomicUsize>::default();
    let counter = reads.clone();
    let mut options = ClientOptions::parse(uri).await.unwrap();
    options.command_event_handler = Some(EventHandler::callback(move |event| {
        if let CommandEvent::Started(started) = event
            && ["find", "getMore", "aggregate"].contains(&&*started.command_name)
        {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }));
    let client = Client::with_options(options).unwrap();
    (client.default_database().unwrap(), reads)
}

/// Two thousand claims: each batch of 500 users or claims takes a few reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_verification_reads_many_users_at_once() {
    let uri = servers::three_shards().await.uri("verify_reads");
    create(&store_of(&uri).await, COUNTED).await;
    let (database, reads) = counted(&uri).await;
    let session = IntegritySession::over(database, Supported::PRESENT).await.unwrap();
    let summary = verify(&session, false, &mut Silent).await.unwrap();
    assert_eq!((summary.users, summary.claims), (COUNTED as u64, 2 * COUNTED as u64));
    let reads = reads.load(Ordering::Relaxed);
    println!("{COUNTED} users were verified by {reads} reads");
    assert!(reads < COUNTED / 20, "{reads} reads");
}

/// Half of the claims of two tenants are gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_or_a_sample_is_verified() {
    const USERS: usize = 60;
    let uri = servers::three_shards().await.uri("verify_part");
    let opened = store_of(&uri).await;
    create(&opened, USERS).await;
    let acme = Tenant::parse("acme").unwrap();
    for n in USERS..2 * USERS {
        let creation = Mutation { tenant: acme.clone(), ..users::creation(n) };
        opened.mutate(creation).await.unwrap();
    }
    let claims = database(&uri).await.collection::<Document>("identities");
    let emails = doc! { "_id": { "$regex": ",email," } };
    assert_eq!(claims.delete_many(emails).await.unwrap().deleted_count, 2 * USERS as u64);

    assert_eq!(findings(&[], &uri).len(), 2 * USERS);
    assert_eq!(findings(&["--tenant", "acme"], &uri).len(), USERS);
    let output = store(&["verify", "--tenant", "acme"], &uri);
    let text = stdout(&output);
    assert!(text.contains("60 users and 60 claims read of tenant acme: 60 findings"), "{text}");
    assert!(text.ends_with("stray entries of the search index\n"), "{text}");
    let output = store(&["verify", "--tenant", "nobody"], &uri);
    assert!(!output.status.success() && stderr(&output).contains("nobody"), "{output:?}");

    let sample = |seed: &str| findings(&["--sample", "50%", "--seed", seed], &uri);
    let [one, again, other] = [sample("1"), sample("1"), sample("2")];
    assert!((USERS / 2..USERS * 3 / 2).contains(&one.len()), "{}", one.len());
    assert_eq!(one, again);
    assert_ne!(one, other);
    let text = stdout(&store(&["verify", "--sample", "30", "--seed", "7"], &uri));
    assert!(text.contains("a sample of about 120 and 120 by --seed 7"), "{text}");
    assert!(text.contains("not checked"), "{text}");
    let output = store(&["verify", "--sample", "30", "--repair"], &uri);
    assert_eq!(output.status.code(), Some(2), "{output:?}");

    assert_eq!(findings(&["--tenant", "acme", "--repair"], &uri).len(), USERS);
    assert_eq!(findings(&[], &uri).len(), USERS);
}

/// `POLYNYM_VERIFIED_USERS=5000` sets the number of users.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures an idle machine"]
async fn long_verification_rate() {
    let users = std::env::var(TIMED).map_or(5_000, |users| users.parse().unwrap());
    let uri = servers::three_shards().await.uri("verify_rate");
    let opened = store_of(&uri).await;
    create(&opened, users).await;
    opened.close().await;
    for _ in 0..3 {
        let begun = Instant::now();
        let output = store(&["verify"], &uri);
        assert!(output.status.success(), "{output:?}");
        let seconds = begun.elapsed().as_secs_f64();
        println!("{users} users in {seconds:.1} s: {:.0} a second", users as f64 / seconds);
    }
}
