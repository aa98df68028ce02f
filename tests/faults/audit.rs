//! Everything that a database holds, read past the store and held against itself: each claim leads to a user who lists
//! it, each listed name has its claim, and nothing else is there.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Document, doc, spec::BinarySubtype};
use mongodb::options::ReadConcern;
use polynym::directory::WireUser;
use polynym::locality::LocalityId;
use tokio::time::sleep;

use super::caller::{Call, Caller, Names, Told, listed, name, number};
use crate::servers::Process;

/// Who owns what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// What each user lists.
    pub users: BTreeMap<usize, Names>,
    pub owners: BTreeMap<usize, usize>,
}

impl State {
    /// What a database holds. Panics where it contradicts itself.
    pub async fn read(database: &Database) -> Self {
        let mut state = Self::default();
        for user in all(database, "users").await {
            let wire = WireUser::from_stored(user.get_binary_generic("w").unwrap().clone().into());
            let decoded = wire.decode().unwrap();
            assert_eq!(id(&user, "_id"), decoded.id, "a user under another's id");
            state.users.insert(number(decoded.id), listed(&decoded));
        }
        for claim in all(database, "identities").await {
            let handle = claim.get_str("_id").unwrap().strip_prefix("default,handle,").unwrap();
            state.owners.insert(name(handle), number(id(&claim, "u")));
        }
        state.check();
        state
    }

    /// What a store says that it holds, of these users and of all names.
    pub async fn ask(caller: &dyn Caller, users: impl IntoIterator<Item = usize>) -> Self {
        let mut state = Self::default();
        for user in users {
            match caller.call(&Call::Get(user), None).await {
                Told::User(names) => state.users.extend(names.map(|names| (user, names))),
                other => panic!("user {user}: {other:?}"),
            }
        }
        for name in 0..64 {
            match caller.call(&Call::Resolve(name), None).await {
                Told::Found(owner, _) => drop(state.owners.insert(name, owner)),
                Told::Nobody => {}
                other => panic!("name {name}: {other:?}"),
            }
        }
        state.check();
        state
    }

    fn check(&self) {
        for (name, owner) in &self.owners {
            let names = self.users.get(owner).unwrap_or_else(|| panic!("name {name} is a claim of nobody: {self:?}"));
            assert!(names.has(*name), "user {owner} does not list name {name}, whose claim says so: {self:?}");
        }
        for (user, names) in &self.users {
            for name in names.iter() {
                assert_eq!(self.owners.get(&name), Some(user), "user {user} lists name {name}: {self:?}");
            }
        }
    }

    /// Fails unless a store finds just this.
    pub async fn is_found(&self, caller: &dyn Caller) {
        for name in 0..64 {
            let wanted = match self.owners.get(&name) {
                Some(owner) => Told::Found(*owner, self.users[owner]),
                None => Told::Nobody,
            };
            assert_eq!(caller.call(&Call::Resolve(name), None).await, wanted, "name {name}");
        }
        for (user, names) in &self.users {
            assert_eq!(caller.call(&Call::Get(*user), None).await, Told::User(Some(*names)), "user {user}");
        }
    }
}

async fn all(database: &Database, collection: &str) -> Vec<Document> {
    let found = database.collection(collection).find(doc! {}).read_concern(ReadConcern::majority()).await.unwrap();
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

/// Waits until no transaction is open on a server; answers how long that took.
pub async fn no_transaction(servers: &[&Process], most: Duration) -> Duration {
    let since = Instant::now();
    for server in servers {
        loop {
            let status = server.admin(doc! { "serverStatus": 1 }).await.unwrap();
            let open = status.get_document("transactions").unwrap().get_i64("currentOpen").unwrap();
            if open == 0 {
                break;
            }
            let about = doc! { "currentOp": 1, "transaction": { "$exists": true } };
            let waited = since.elapsed();
            assert!(waited < most, "{open} transactions are open after {waited:?}: {:?}", server.admin(about).await);
            sleep(Duration::from_millis(50)).await;
        }
    }
    since.elapsed()
}
