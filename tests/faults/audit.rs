//! Reads a database past the store and checks its consistency: each claim leads to a user that
//! lists it, each listed name has its claim, each merged user leads to an active one and owns
//! nothing, and nothing else is stored.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::Database;
use mongodb::bson::{Document, doc, spec::BinarySubtype};
use mongodb::options::ReadConcern;
use polynym_directory::{EncodedUser, State as Life};
use polynym_mongodb::{IntegritySession, Supported};
use polynym_store_common::integrity::{Finding, Observer, verify};
use tokio::time::sleep;

use crate::caller::{Call, Caller, Names, Reply, listed, name, number};
use crate::servers::Process;

/// The owner of each name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The names that each user lists.
    pub users: BTreeMap<usize, Names>,
    pub owners: BTreeMap<usize, usize>,
    /// The primary of each merged user.
    pub merged: BTreeMap<usize, usize>,
}

impl State {
    /// Reads a database. Panics if it contradicts itself.
    pub async fn read(database: &Database) -> Self {
        let state = Self::read_torn(database).await;
        state.check();
        verified(database).await;
        state
    }

    /// Reads a database that may contradict itself.
    pub async fn read_torn(database: &Database) -> Self {
        let mut state = Self::default();
        for user in all(database, "users").await {
            let wire =
                EncodedUser::from_stored(user.get_binary_generic("w").unwrap().clone().into());
            let decoded = wire.decode().unwrap();
            assert_eq!(id(&user, "_id"), decoded.id, "a user under another's id");
            state.users.insert(number(decoded.id), listed(&decoded));
            if let Life::Merged { into } = decoded.state {
                state.merged.insert(number(decoded.id), number(into));
            }
        }
        state.follow();
        for claim in all(database, "identities").await {
            let handle = claim.get_str("_id").unwrap().strip_prefix("default,handle,").unwrap();
            state.owners.insert(name(handle), number(id(&claim, "u")));
        }
        state
    }

    /// Reads these users and all names through a store.
    pub async fn ask(caller: &dyn Caller, users: impl IntoIterator<Item = usize>) -> Self {
        let mut state = Self::default();
        for user in users {
            match caller.answer(&Call::Get(user)).await {
                Reply::User(names) => state.users.extend(names.map(|names| (user, names))),
                Reply::Part(into, _) => {
                    state.users.insert(user, Names::default());
                    state.merged.insert(user, into);
                }
                other => panic!("user {user}: {other:?}"),
            }
        }
        for name in 0..64 {
            match caller.answer(&Call::Resolve(name)).await {
                Reply::Found(owner, _) => drop(state.owners.insert(name, owner)),
                Reply::Nobody => {}
                other => panic!("name {name}: {other:?}"),
            }
        }
        state.check();
        state
    }

    /// Follows each merged user to its final primary.
    fn follow(&mut self) {
        let into = self.merged.clone();
        for last in self.merged.values_mut() {
            let mut steps = 0;
            while let Some(next) = into.get(last) {
                *last = *next;
                steps += 1;
                assert!(steps <= into.len(), "users are merged in a circle: {into:?}");
            }
        }
    }

    pub fn check(&self) {
        for (user, into) in &self.merged {
            assert_eq!(
                self.users.get(user),
                Some(&Names::default()),
                "user {user}, merged into {into}: {self:?}"
            );
            assert!(
                self.users.contains_key(into) && !self.merged.contains_key(into),
                "user {into} is gone: {self:?}"
            );
        }
        for (name, owner) in &self.owners {
            let names = self
                .users
                .get(owner)
                .unwrap_or_else(|| panic!("name {name} has a claim without an owner: {self:?}"));
            assert!(
                names.has(*name),
                "user {owner} does not list name {name}, whose claim says so: {self:?}"
            );
        }
        for (user, names) in &self.users {
            for name in names.iter() {
                assert_eq!(
                    self.owners.get(&name),
                    Some(user),
                    "user {user} lists name {name}: {self:?}"
                );
            }
        }
    }

    /// Fails unless a store returns exactly this state.
    pub async fn is_found(&self, caller: &dyn Caller) {
        for name in 0..64 {
            let wanted = match self.owners.get(&name) {
                Some(owner) => Reply::Found(*owner, self.users[owner]),
                None => Reply::Nobody,
            };
            assert_eq!(caller.answer(&Call::Resolve(name)).await, wanted, "name {name}");
        }
        for (user, names) in &self.users {
            let wanted = match self.merged.get(user) {
                Some(into) => Reply::Part(*into, self.users[into]),
                None => Reply::User(Some(*names)),
            };
            assert_eq!(caller.answer(&Call::Get(*user)).await, wanted, "user {user}");
        }
    }
}

/// Checks all claims, histories and former owners as `store verify` does.
pub async fn verified(database: &Database) {
    struct Strict;
    impl Observer for Strict {
        fn at(&mut self, _: &'static str, _: u64, _: u64) {}
        fn found(&mut self, finding: &Finding) {
            panic!("{finding:?}");
        }
    }
    let session = IntegritySession::over(database.clone(), Supported::PRESENT).await.unwrap();
    verify(&session, false, &mut Strict).await.unwrap();
}

pub async fn all(database: &Database, collection: &str) -> Vec<Document> {
    let found = database
        .collection(collection)
        .find(doc! {})
        .read_concern(ReadConcern::majority())
        .await
        .unwrap();
    found.try_collect().await.unwrap()
}

fn id(document: &Document, field: &str) -> LocalityId {
    match document.get(field) {
        Some(mongodb::bson::Bson::Binary(binary)) if binary.subtype == BinarySubtype::Uuid => {
            let bytes: [u8; 16] = binary.bytes.clone().try_into().unwrap();
            LocalityId::from(bytes)
        }
        other => panic!("no id: {other:?}"),
    }
}

/// Longer than abandoned calls may take, one after the other on a busy machine.
const OUTLIVED: Duration = Duration::from_secs(300);

/// Waits until no transaction is open on a server. Returns the time that took.
pub async fn no_transaction(servers: &[&Process]) -> Duration {
    let since = Instant::now();
    for server in servers {
        loop {
            let status = server.admin(doc! { "serverStatus": 1 }).await.unwrap();
            let open = status.get_document("transactions").unwrap().get_i64("currentOpen").unwrap();
            if open == 0 {
                break;
            }
            let waited = since.elapsed();
            assert!(waited < OUTLIVED, "{open} transactions are open after {waited:?}");
            sleep(Duration::from_millis(50)).await;
        }
    }
    since.elapsed()
}
