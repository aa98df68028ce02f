//! Expiry of users where the records of some users are damaged.

use std::sync::Arc;

use redb::TableDefinition;

use super::{database, open};
use crate::support::expiry::{FAILING, LONG_AGO, failing, prepare, user_1_is_purged};

const USERS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("users");
const EXPIRES_AT: TableDefinition<'_, (i64, &[u8; 16]), ()> = TableDefinition::new("due");

#[tokio::test(flavor = "multi_thread")]
async fn damaged_users_do_not_block_the_expiry_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    prepare(&store).await;
    drop(store);
    let transaction = database(folder.path()).begin_write().unwrap();
    for n in 0..FAILING {
        let id = failing(n);
        transaction.open_table(EXPIRES_AT).unwrap().insert((LONG_AGO, id.as_bytes()), ()).unwrap();
        // One of them has no record.
        if n > 0 {
            transaction
                .open_table(USERS)
                .unwrap()
                .insert(id.as_bytes(), &b"not a record"[..])
                .unwrap();
        }
    }

    transaction.commit().unwrap();
    user_1_is_purged(Arc::new(open(folder.path()).unwrap()).backend()).await;
}
