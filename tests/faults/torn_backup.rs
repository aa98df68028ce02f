//! A server on a backup that is no snapshot, with users of one time and identities of another. It
//! resolves no name whose claim and user disagree, and `store verify --repair` repairs the store
//! while it is served.

use std::sync::Arc;
use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Document, doc};
use polynym_directory::{Backend, Consistency, Error, ItemError, View};
use polynym_mongodb::Options;
use tokio::task::spawn_blocking;

use crate::audit::{State, all};
use crate::caller::{Call, Caller, Direct, Names, key, listed, number};
use crate::load::{Load, Plan};
use crate::server::polynym;
use crate::stores::{OwnSet, fresh, open, prepare, print_line};

const PLAN: Plan = Plan { names: NAMES, users: 16, creates: false, ..Plan::DEFAULT };
const NAMES: usize = 64;
/// The calls before the first time, and between the two.
const CALLS: usize = 600;
/// A user in neither part of the backup.
const NEW_USER: usize = 99;

/// Two states of a busy store, and the differences.
struct Backup {
    set: OwnSet,
    name: String,
    database: Database,
    store: Backend,
    /// The users and identities at each time.
    times: [[Vec<Document>; 2]; 2],
}

const COLLECTIONS: [&str; 2] = ["users", "identities"];

impl Backup {
    async fn new() -> Self {
        let set = OwnSet::new().await;
        let name = fresh();
        let database = set.members[0].database(&name).await;
        prepare(&set, &name).await;
        // Without hints, each answer rests on the claim.
        let options = Options { hint_bytes: 0, ..Options::default() };
        let store = open(&set.uri(&name, ""), options, true).await;
        let caller: Arc<dyn Caller> =
            Arc::new(Direct { store: store.clone(), consistency: Consistency::Latest });
        let load = Load::start(PLAN, std::slice::from_ref(&caller)).await;
        load.until_answered(CALLS / 2, std::time::Instant::now()).await;
        load.stop().await;
        let first = documents(&database).await;
        let before = State::read(&database).await;
        let load = Load::resume(PLAN, &[caller], before);
        load.until_answered(CALLS / 2, std::time::Instant::now()).await;
        load.stop().await;
        let times = [first, documents(&database).await];
        Self { set, name, database, store, times }
    }

    /// Combines the users of one time with the identities of another.
    async fn restore(&self, times: [usize; 2]) -> State {
        for ((n, name), moment) in COLLECTIONS.iter().enumerate().zip(times) {
            let collection = self.database.collection::<Document>(name);
            collection.delete_many(doc! {}).await.unwrap();
            collection.insert_many(&self.times[moment][n]).await.unwrap();
        }
        State::read_torn(&self.database).await
    }

    /// The user found by each name: the user if claim and user agree, else none.
    async fn look_up(&self, torn: &State) -> usize {
        let mut damaged = 0;
        for name in 0..NAMES {
            let resolved = self
                .store
                .lookups
                .resolve(&[key(name)], Consistency::Latest, View::Full, Duration::ZERO)
                .await
                .unwrap();
            let found = resolved.found.into_iter().next().unwrap();
            let owner = torn.owners.get(&name);
            let names = owner.and_then(|owner| torn.users.get(owner)).copied().unwrap_or_default();
            match (found, owner) {
                (Ok(None), None) => {}
                (Ok(Some(found)), Some(owner)) => {
                    let user = found.user.decode().unwrap();
                    assert_eq!((number(user.id), listed(&user)), (*owner, names), "name {name}");
                    assert!(
                        names.has(name),
                        "user {owner}, who does not list name {name}, is found by it"
                    );
                }
                (Err(ItemError::Internal(_)), Some(_)) if !names.has(name) => damaged += 1,
                (found, owner) => panic!("name {name}, whose claim is of {owner:?}: {found:?}"),
            }
        }
        damaged
    }

    /// A new user links each name that has a claim or that no user lists, and gets only the latter.
    async fn link(&self, torn: &State) -> Names {
        let mut linked = Names::default();
        self.store
            .mutations
            .mutate(Direct::mutation(&Call::Create(NEW_USER, Vec::new()), None))
            .await
            .unwrap();
        for name in 0..NAMES {
            let is_claimed = torn.owners.contains_key(&name);
            if !is_claimed && torn.users.values().any(|names| names.has(name)) {
                continue;
            }
            match self
                .store
                .mutations
                .mutate(Direct::mutation(&Call::Link(NEW_USER, name), None))
                .await
            {
                Ok(_) if !is_claimed => linked = linked.with(name),
                Err(Error::IdentityTaken { .. } | Error::Internal(_)) if is_claimed => {}
                Ok(_) => panic!("name {name} has two owners"),
                Err(error) => panic!("name {name}: {error}"),
            }
        }
        linked
    }

    /// Repairs claims by `store verify --repair`. Findings about histories may remain: they cannot
    /// be repaired.
    async fn repair(&self) {
        let uri = self.set.uri(&self.name, "");
        let mut findings = String::new();
        for arguments in [&["verify", "--repair"][..], &["verify", "--json"]] {
            let mut command = polynym(&["store"]);
            command.args(arguments).args(["--store", &uri]);
            let output = spawn_blocking(move || command.output().unwrap()).await.unwrap();
            findings = String::from_utf8(output.stdout).unwrap();
            assert!(findings.contains("findings"), "{arguments:?}: {findings}");
        }
        let is_of_past =
            |line: &&str| line.contains("\"history\"") || line.contains("\"ownership\"");
        let left: Vec<_> = findings.lines().filter(|line| !is_of_past(line)).collect();
        assert_eq!(left.len(), 1, "but for the totals: {left:?}");
    }

    async fn survive(&self, times: [usize; 2]) {
        let torn = self.restore(times).await;
        let damaged = self.look_up(&torn).await;
        assert!(damaged > 0, "the two states agree on all names: {torn:?}");
        let linked = self.link(&torn).await;
        self.repair().await;
        let whole = State::read_torn(&self.database).await;
        whole.check();
        whole
            .is_found(&Direct { store: self.store.clone(), consistency: Consistency::Latest })
            .await;
        assert_eq!(whole.users.get(&NEW_USER), Some(&linked), "an acknowledged link is lost");
        for (user, names) in &torn.users {
            assert_eq!(whole.users.get(user), Some(names), "user {user} has changed");
        }
        print_line(&format!(
            "a torn backup: {damaged} of {NAMES} names did not resolve until the repair"
        ));
    }
}

async fn documents(database: &Database) -> [Vec<Document>; 2] {
    [all(database, COLLECTIONS[0]).await, all(database, COLLECTIONS[1]).await]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inconsistent_backup_corrupts_nothing() {
    let backup = Backup::new().await;
    for times in [[0, 1], [1, 0]] {
        backup.survive(times).await;
    }
    backup.database.drop().await.unwrap();
}
