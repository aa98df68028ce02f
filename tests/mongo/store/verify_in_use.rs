//! Verifying and repairing a store in use: no false findings, and no repair of a concurrent change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use locality_uuid::{Generator, Mode};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};
use polynym_directory::{Error, Inboxes, Mutations, UserChange};
use polynym_identifier::{Identifier, RawIdentifier};
use polynym_mongodb::{InitOptions, IntegritySession, Mongo, Options, init};
use polynym_store_common::integrity::{Finding, Inconsistency, Observer, Summary, verify};

use super::database;
use crate::servers;
use crate::support::scenarios::deliveries::{START, delivery};
use crate::users;

const USERS: usize = 24;
/// Names that the users continually link and unlink.
const NAMES: usize = 12;
const ROUNDS: usize = 6;
/// The moves of names before each round.
const MOVES: usize = 9;
/// The time limit.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Observer for Findings {
    fn at(&mut self, _: &'static str, _: u64, _: u64) {}

    fn found(&mut self, finding: &Finding) {
        self.0.push(finding.clone());
    }
}

async fn audit(uri: &str, repair: bool) -> (Summary, Vec<Finding>) {
    let mut findings = Findings::default();
    let audit = IntegritySession::open(uri).await.unwrap();
    let summary = verify(&audit, repair, &mut findings).await.unwrap();
    (summary, findings.0)
}

fn name(n: usize) -> Identifier {
    Identifier::parse(RawIdentifier::Handle(&format!("moving{}", n % NAMES))).unwrap()
}

/// Links and unlinks names until `stop`. Returns the number of links.
async fn move_names(
    store: Arc<Mongo>,
    stop: Arc<AtomicBool>,
    moved: Arc<AtomicUsize>,
    from: usize,
) {
    let mut n = from;
    while !stop.load(Ordering::Relaxed) {
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (user, name) = (users::id((n >> 33) % USERS), name(n >> 45));
        let link = UserChange::Link(users::identity(name.clone()));
        match store.mutate(users::mutation(user, link)).await {
            Ok(_) => {
                moved.fetch_add(1, Ordering::Relaxed);
                let unlink = store.mutate(users::mutation(user, UserChange::Unlink(name))).await;
                assert!(
                    matches!(unlink, Ok(_) | Err(Error::NotOwned | Error::Unavailable(_))),
                    "{unlink:?}"
                );
            }
            Err(Error::IdentityTaken { .. } | Error::Unavailable(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_use_is_verified_and_repaired() {
    let uri = servers::three_shards().await.uri("verify_moving");
    init(&uri, &InitOptions { spread: false }, &|_| {}).await.unwrap();
    let store = Arc::new(Mongo::open(&uri, Options::default()).await.unwrap());
    for n in 0..USERS {
        store.mutate(users::creation(n)).await.unwrap();
    }
    let (stop, moved) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let movers: Vec<_> = (0..4)
        .map(|n| tokio::spawn(move_names(store.clone(), stop.clone(), moved.clone(), n)))
        .collect();
    let claims = database(&uri).await.collection::<Document>("identities");
    let mut repaired = 0;
    for round in 0..ROUNDS {
        let since = Instant::now();
        while moved.load(Ordering::Relaxed) < (round + 1) * MOVES {
            assert!(since.elapsed() < TIMEOUT, "names stop moving");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let (summary, findings) = audit(&uri, false).await;
        assert_eq!((summary.findings, findings.as_slice()), (0, &[][..]), "round {round}");
        // Damages claims of users whose other names move.
        for n in [round, round + 8] {
            claims
                .delete_one(doc! { "_id": format!("default,email,user{n}@example.com") })
                .await
                .unwrap();
        }
        let (summary, findings) = audit(&uri, true).await;
        assert_eq!((summary.findings, summary.repaired), (2, 2), "{findings:?}");
        assert!(
            findings.iter().all(|finding| finding.fault == Inconsistency::Unclaimed),
            "{findings:?}"
        );
        repaired += summary.repaired;
    }
    stop.store(true, Ordering::Relaxed);
    for mover in movers {
        mover.await.unwrap();
    }
    println!(
        "{repaired} findings were repaired while names moved {} times",
        moved.load(Ordering::Relaxed)
    );
    let (summary, findings) = audit(&uri, false).await;
    assert!(summary.is_clean(), "{findings:?}");
}

/// Notices whose user does not exist are found and removed.
#[tokio::test(flavor = "multi_thread")]
async fn notices_without_an_owner_are_removed() {
    let uri = servers::one_member().await.uri("inbox_strays", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let store = Mongo::open(&uri, Options::default()).await.unwrap();
    let ids = Generator::new(Mode::Variable);
    let add = async |n| {
        store.mutate(users::creation(n)).await.unwrap();
        store.deliver(Arc::new(delivery(ids.next_id(), START, users::id(n)))).await.unwrap();
    };
    add(0).await;
    add(1).await;
    let client = servers::one_member().await.client().await;
    let all = client.database("inbox_strays").collection::<Document>("users");
    all.delete_many(doc! {}).await.unwrap();
    add(2).await;
    for (repair, expected) in [(false, 2), (true, 2), (false, 0)] {
        let (_, findings) = audit(&uri, repair).await;
        let strays = findings.iter().filter(|found| found.fault == Inconsistency::StrayNotice);
        assert_eq!(strays.count(), expected, "{findings:?}");
    }
    assert_eq!(store.inbox(users::id(2), None, 10, true).await.unwrap().len(), 1);
    store.close().await;
}

/// Unreadable notices are reported. A repair does not change them.
#[tokio::test(flavor = "multi_thread")]
async fn unreadable_notices_are_reported() {
    let uri = servers::one_member().await.uri("inbox_unreadable", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let store = Mongo::open(&uri, Options::default()).await.unwrap();
    store.mutate(users::creation(0)).await.unwrap();
    let id = Generator::new(Mode::Variable).next_id();
    store.deliver(Arc::new(delivery(id, START, users::id(0)))).await.unwrap();
    store.close().await;
    let database = database(&uri).await;
    let notices = database.collection::<Document>("notices");
    let damage =
        doc! { "$set": { "b": Binary { subtype: BinarySubtype::Generic, bytes: vec![7] } } };
    notices.update_one(doc! {}, damage).bypass_document_validation(true).await.unwrap();
    let insert = notices.insert_one(doc! { "_id": "no row" });
    insert.bypass_document_validation(true).await.unwrap();
    for repair in [false, true] {
        let (summary, findings) = audit(&uri, repair).await;
        assert_eq!((summary.findings, summary.repaired, summary.repairable), (2, 0, 0));
        assert!(findings.iter().all(|found| found.fault == Inconsistency::UnreadableNotice));
        let documents: Vec<_> =
            findings.iter().filter_map(|found| found.document.as_deref()).collect();
        assert!(documents.contains(&"no row"), "{documents:?}");
    }
}
