//! Single unreadable records.

use std::sync::Arc;

use locality_uuid::LocalityId;
use polynym_directory::Mutations;
use redb::TableDefinition;

use super::{database, open};
use crate::support::damaged::{CLAIM, TORN, USER, USERS, fails_alone};
use crate::support::scenarios::unreadable::is_passed;
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

#[tokio::test(flavor = "multi_thread")]
async fn users_that_cannot_be_read_are_passed() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let damage = async |id: &str| {
        let id: LocalityId = id.parse().unwrap();
        let transaction = database(&store).begin_write().unwrap();
        let mut records = transaction.open_table(RECORDS).unwrap();
        records.insert(id.as_bytes(), &b"not a record"[..]).unwrap();
        drop(records);
        transaction.commit().unwrap();
    };
    is_passed(&format!("embedded:{}", store.display()), folder.path(), damage).await;
}
