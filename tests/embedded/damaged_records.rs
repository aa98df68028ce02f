//! Single unreadable records.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Directory, Limits, Mutation, Mutations, Tenant, Timestamp, UserChange,
};
use polynym_identifier::{Identifier, RawIdentifier};
use redb::TableDefinition;

use super::{database, open};
use crate::support::damaged::{CLAIM, TORN, USER, USERS, fails_alone};
use crate::users;

const RECORDS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("users");
const CLAIMS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("identities");

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_affects_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for n in 0..USERS {
        store.mutate(users::creation(n)).await.unwrap();
    }

    drop(store);
    let transaction = database(folder.path()).begin_write().unwrap();
    {
        let mut claims = transaction.open_table(CLAIMS).unwrap();
        let ([email, _], [_, handle]) = (users::keys(CLAIM), users::keys(TORN));
        claims.insert(email.as_str().as_bytes(), &b"short"[..]).unwrap();
        let other = [&users::id(TORN + 1).as_bytes()[..], &[0, 1]].concat();
        claims.insert(handle.as_str().as_bytes(), &other[..]).unwrap();
        let mut records = transaction.open_table(RECORDS).unwrap();
        records.insert(users::id(USER).as_bytes(), &b"not a record"[..]).unwrap();
    }
    transaction.commit().unwrap();
    fails_alone(Arc::new(open(folder.path()).unwrap()).backend()).await;
}

/// Stores a record that is none under the id of a user.
fn damage_user(folder: &Path, id: LocalityId) {
    let transaction = database(folder).begin_write().unwrap();
    let mut records = transaction.open_table(RECORDS).unwrap();
    records.insert(id.as_bytes(), &b"not a record"[..]).unwrap();
    drop(records);
    transaction.commit().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_former_owner_is_listed_without_its_identity() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let began = Timestamp::now().minus(Duration::from_secs(60));
    for (n, seconds) in [(0, 10), (1, 20)] {
        let time = began.plus(Duration::from_secs(seconds));
        let link = UserChange::Link(users::identity(shared_handle()));
        let unlink = UserChange::Unlink(shared_handle());
        let changes = [link, unlink].map(|change| users::mutation(users::id(n), change));
        for mutation in [vec![users::creation(n)], changes.into()].concat() {
            store.mutate(Mutation { time, ..mutation }).await.unwrap();
        }
    }
    drop(store);
    damage_user(folder.path(), users::id(0));

    let store = Arc::new(open(folder.path()).unwrap()).backend();
    let directory = Directory::new(store, Generator::new(Mode::Variable), Limits::default());
    let context = users::context(Tenant::DEFAULT, "ListOwners");
    let raw = Some(RawIdentifier::Handle("shared"));
    let owners = directory.list_owners(&context, raw).await.unwrap();
    let owners = owners.periods.iter().map(|period| (period.user, period.identity.is_some()));
    let expected = [(Some(users::id(1)), true), (Some(users::id(0)), false)];
    assert_eq!(owners.collect::<Vec<_>>(), expected);
}

fn shared_handle() -> Identifier {
    Identifier::parse(RawIdentifier::Handle("shared")).unwrap()
}
