//! Renormalization under later rules while servers of both versions run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Directory, Error, Limits, MutationCall, RawIdentity, ResolveOptions, Tenant, Value,
};
use polynym_identifier::RawIdentifier;
use polynym_mongodb::{IntegritySession, Mongo, OpenError, Options, Supported, upgrade_to};
use polynym_store_common::integrity::{Finding, Observer, verify};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::servers::{self, Databases, InDatabase};
use crate::support::golden::{later_rules, records};
use crate::support::users;

const SCHEMA: i64 = Supported::PRESENT.schema;

/// The initial users.
const USERS: usize = 40;

fn supported() -> Supported {
    Supported { rules: later_rules().version(), ..Supported::PRESENT }
}

/// A server.
struct Server {
    directory: Directory,
    store: Arc<Mongo>,
}

impl Server {
    async fn older(factory: &InDatabase) -> Self {
        let store = Arc::new(factory.mongo().await.unwrap());
        Self { directory: directory(store.clone()), store }
    }

    async fn newer(factory: &InDatabase) -> Self {
        let opened =
            Mongo::open_supporting(&factory.uri().await, Options::default(), supported()).await;
        let store = Arc::new(opened.unwrap());
        Self { directory: directory(store.clone()).with_rules(later_rules()), store }
    }

    async fn resolve(&self, email: &str) -> Result<LocalityId, Error> {
        let raw = Some(RawIdentifier::Email(email));
        let found = self
            .directory
            .resolve(
                &Tenant::DEFAULT,
                raw,
                ResolveOptions { show_disabled: true, ..ResolveOptions::default() },
            )
            .await;
        found.map(|(found, _)| found.user.decode().unwrap().id)
    }

    async fn create(&self, email: &str) -> Result<LocalityId, Error> {
        let identifier = Some(RawIdentifier::Email(email));
        let identities =
            [RawIdentity { identifier, display: "", verification: None, primary: false }];
        let attributes: BTreeMap<String, Value> = BTreeMap::new();
        let created = self.directory.create(call("Create"), String::new(), &identities, attributes);
        created.await.map(|user| user.id)
    }

    async fn unlink(&self, user: LocalityId, email: &str) -> Result<(), Error> {
        let raw = Some(RawIdentifier::Email(email));
        self.directory.unlink(call("Unlink"), &user.to_string(), raw).await.map(drop)
    }
}

fn directory(store: Arc<Mongo>) -> Directory {
    Directory::new(store.backend(), Generator::new(Mode::Variable), Limits::default())
}

fn call(method: &'static str) -> MutationCall<'static> {
    users::call(Tenant::DEFAULT, method)
}

/// Whether an error asks for a retry, possibly on another server.
fn is_retryable(error: &Error) -> bool {
    matches!(error, Error::Outdated(_) | Error::RulesChanging | Error::Unavailable(_))
}

async fn assert_clean(factory: &InDatabase) {
    struct Silent;
    impl Observer for Silent {
        fn at(&mut self, _: &'static str, _: u64, _: u64) {}
        fn found(&mut self, finding: &Finding) {
            panic!("{finding:?}");
        }
    }
    let audit = IntegritySession::open_supporting(&factory.uri().await, supported()).await.unwrap();
    assert!(verify(&audit, false, &mut Silent).await.unwrap().is_clean());
    audit.close().await;
}

async fn renormalize(factory: &InDatabase) -> Result<(), OpenError> {
    upgrade_to(&factory.uri().await, SCHEMA, later_rules(), &|line| println!("{line}")).await
}

/// Two spellings of an email that are equal under the later rules.
fn spellings(n: usize) -> [String; 2] {
    [format!("user.{n}.x@example.com"), format!("user{n}x@example.com")]
}

/// Looks users up in a loop until stopped: each is found if the server answers. Returns the number
/// of answers.
async fn look_up(
    server: Arc<Server>,
    ids: Arc<Vec<LocalityId>>,
    is_over: Arc<AtomicBool>,
) -> usize {
    let mut answered = 0;
    while !is_over.load(Relaxed) {
        for (n, id) in ids.iter().enumerate() {
            let [typed, _] = spellings(n);
            match server.resolve(&typed).await {
                Ok(found) => assert_eq!(found, *id, "{typed} leads to another user"),
                Err(error) => assert!(is_retryable(&error), "{typed}: {error:?}"),
            }
            answered += 1;
        }
    }
    answered
}

/// Creates users with emails that other calls want too. Returns the created ones.
async fn register(
    server: Arc<Server>,
    next: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
) -> Vec<(usize, LocalityId)> {
    let mut won = Vec::new();
    while !is_over.load(Relaxed) {
        // Each number is drawn twice, by either server.
        let n = next.fetch_add(1, Relaxed) / 2;
        match server.create(&spellings(n)[0]).await {
            Ok(id) => won.push((n, id)),
            Err(Error::IdentityTaken { .. }) => {}
            Err(error) => assert!(is_retryable(&error), "{error:?}"),
        }
        tokio::task::yield_now().await;
    }
    won
}

#[tokio::test(flavor = "multi_thread")]
async fn each_identifier_has_one_owner_among_mixed_versions() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let old = Arc::new(Server::older(&factory).await);
    let new = [Arc::new(Server::newer(&factory).await), Arc::new(Server::newer(&factory).await)];
    let mut ids = Vec::new();
    for n in 0..USERS {
        ids.push(old.create(&spellings(n)[0]).await.unwrap());
    }
    let (ids, is_over) = (Arc::new(ids), Arc::new(AtomicBool::new(false)));
    let next = Arc::new(AtomicUsize::new(2 * USERS));
    let (mut readers, mut writers) = (Vec::new(), Vec::new());
    for server in [&old, &new[0], &new[1]] {
        readers.push(tokio::spawn(look_up(server.clone(), ids.clone(), is_over.clone())));
        writers.push(tokio::spawn(register(server.clone(), next.clone(), is_over.clone())));
    }
    renormalize(&factory).await.unwrap();
    is_over.store(true, Relaxed);
    for reader in readers {
        assert!(reader.await.unwrap() >= USERS);
    }
    let mut owners: BTreeMap<usize, LocalityId> = ids.iter().copied().enumerate().collect();
    for writer in writers {
        for (n, id) in writer.await.unwrap() {
            assert!(owners.insert(n, id).is_none(), "two users got {}", spellings(n)[0]);
        }
    }
    println!("{} users", owners.len());

    assert_clean(&factory).await;
    for record in records(&*new[0].store).await {
        assert!(
            record
                .user
                .identities
                .iter()
                .all(|identity| identity.rules_version == later_rules().version())
        );
    }
    for (n, id) in &owners {
        for spelling in spellings(*n) {
            assert_eq!(new[n % 2].resolve(&spelling).await.unwrap(), *id, "{spelling}");
        }
    }
    let taken = new[0].create(&spellings(0)[1]).await.unwrap_err();
    assert!(matches!(taken, Error::IdentityTaken { .. }), "{taken:?}");
    let [read, written] =
        [old.resolve(&spellings(0)[0]).await, old.create("new@example.com").await];
    for refused in [read.unwrap_err(), written.unwrap_err()] {
        let later = format!("rules version {}", later_rules().version());
        assert!(matches!(&refused, Error::Outdated(why) if why.contains(&later)), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_collisions_is_left_unchanged() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let (old, new) = (Server::older(&factory).await, Server::newer(&factory).await);
    let [first, second] = spellings(1);
    let one = old.create(&first).await.unwrap();
    let other = new.create(&second).await.unwrap();
    let error = renormalize(&factory).await.unwrap_err();
    assert!(matches!(error, OpenError::Unmovable { count: 1, .. }), "{error}");
    assert_eq!(old.resolve(&first).await.unwrap(), one);
    assert_eq!(new.resolve(&second).await.unwrap(), other);
    old.create("another@example.com").await.unwrap();
    old.unlink(other, &second).await.unwrap();
    renormalize(&factory).await.unwrap();
    assert_eq!(new.resolve(&second).await.unwrap(), one);
    assert_clean(&factory).await;
}

/// Identities that are created between the first scan and the announcement.
#[tokio::test(flavor = "multi_thread")]
async fn late_collisions_stop_the_renormalization() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let (old, new) = (Arc::new(Server::older(&factory).await), Server::newer(&factory).await);
    let [first, second] = spellings(1);
    let one = old.create(&first).await.unwrap();
    let is_late = AtomicBool::new(true);
    let register = |line: &str| {
        println!("{line}");
        if line.contains("can be moved") && is_late.swap(false, Relaxed) {
            let created = async { old.create(&second).await.unwrap() };
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(created));
        }
    };
    let error =
        upgrade_to(&factory.uri().await, SCHEMA, later_rules(), &register).await.unwrap_err();
    assert!(matches!(error, OpenError::Unmovable { .. }), "{error}");
    // Both are unchanged, and the older program continues.
    let again = Server::older(&factory).await;
    assert_eq!(again.resolve(&first).await.unwrap(), one);
    let other = again.resolve(&second).await.unwrap();
    again.unlink(other, &second).await.unwrap();
    renormalize(&factory).await.unwrap();
    assert_eq!(new.resolve(&second).await.unwrap(), one);
}

/// Stops a run forever after this message.
async fn interrupted(factory: &InDatabase, at: &'static str) {
    let (uri, (said, heard)) = (factory.uri().await, oneshot::channel());
    std::thread::spawn(move || {
        let sender = Mutex::new(Some(said));
        let hang = |line: &str| {
            while line.contains(at) {
                sender.lock().unwrap().take().map(|said| said.send(()));
                std::thread::park();
            }
        };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let outcome = runtime.block_on(upgrade_to(&uri, SCHEMA, later_rules(), &hang));
        panic!("it has ended: {outcome:?}");
    });
    heard.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_renormalization_is_finished_by_the_next() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let (old, new) = (Server::older(&factory).await, Server::newer(&factory).await);
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(old.create(&spellings(n)[0]).await.unwrap());
    }
    for at in ["being moved", "were moved"] {
        interrupted(&factory, at).await;
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(
                Server::newer(&factory).await.resolve(&spellings(n)[0]).await.unwrap(),
                *id,
                "{at}"
            );
        }
        let refused = Server::newer(&factory).await.create("new@example.com").await.unwrap_err();
        assert!(matches!(refused, Error::RulesChanging), "{refused:?}");
    }
    renormalize(&factory).await.unwrap();
    assert_clean(&factory).await;
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(new.resolve(&spellings(n)[1]).await.unwrap(), *id);
    }
}
