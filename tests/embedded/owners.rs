//! The owners of an identifier, if records of former owners are large or damaged.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Directory, Limits, Mutation, Mutations, NewUser, Tenant, Timestamp, UserChange,
};
use polynym_identifier::{Identifier, RawIdentifier};
use redb::TableDefinition;

use super::{database, open, users};

const RECORDS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("users");

fn joe() -> Identifier {
    Identifier::parse(RawIdentifier::Handle("joe")).unwrap()
}

/// Lets users, each with this number of long addresses, own a handle one after the other.
async fn own_in_turn(folder: &Path, owners: usize, addresses: usize) {
    let store = open(folder).unwrap();
    let began = Timestamp::now().minus(Duration::from_secs(60 * 60));
    for n in 0..owners {
        let address = |k| {
            let address = format!("https://example.com/{n}/{k}/{}", "x".repeat(1_900));
            users::identity(Identifier::parse(RawIdentifier::Url(&address)).unwrap())
        };
        let identities = (0..addresses).map(address).collect();
        let create = UserChange::Create(NewUser { identities, ..NewUser::default() });
        let link = UserChange::Link(users::identity(joe()));
        let time = began.plus(Duration::from_secs(10 * n as u64));
        for change in [create, link, UserChange::Unlink(joe())] {
            let mutation = users::mutation(users::id(n), change);
            store.mutate(Mutation { now: time.into(), ..mutation }).await.unwrap();
        }
    }
}

/// The owners, the latest first, and whether the identity of each is known.
async fn owners(folder: &Path) -> Vec<(Option<LocalityId>, bool)> {
    let store = Arc::new(open(folder).unwrap()).backend();
    let directory = Directory::new(store, Generator::new(Mode::Variable), Limits::default());
    let context = users::context(Tenant::DEFAULT, "ListOwners");
    let owners = directory.list_owners(&context, Some(RawIdentifier::Handle("joe"))).await.unwrap();
    let owners = owners.periods.iter().map(|period| (period.user, period.identity.is_some()));
    owners.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn former_owners_that_do_not_fit_into_one_answer_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    own_in_turn(folder.path(), 32, 80).await;
    let expected: Vec<_> = (0..32).rev().map(|n| (Some(users::id(n)), true)).collect();
    assert_eq!(owners(folder.path()).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_former_owner_is_listed_without_its_identity() {
    let folder = tempfile::tempdir().unwrap();
    own_in_turn(folder.path(), 2, 1).await;
    let transaction = database(folder.path()).begin_write().unwrap();
    let mut records = transaction.open_table(RECORDS).unwrap();
    records.insert(users::id(0).as_bytes(), &b"not a record"[..]).unwrap();
    drop(records);
    transaction.commit().unwrap();
    let expected = [(Some(users::id(1)), true), (Some(users::id(0)), false)];
    assert_eq!(owners(folder.path()).await, expected);
}
