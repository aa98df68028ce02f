//! Deliveries in the embedded store: damaged rows, and copies of the store.

use std::fs;
use std::io::Seek;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use polynym_directory::{
    Deliveries, DeliveryStep, DeliveryTarget, Error, EventDelivery, MutationKind, Mutations,
    PolicyUpdate, StoreFile, Tenant, TenantChange, Timestamp,
};
use polynym_embedded::{self as embedded, Embedded};
use redb::TableDefinition;

use crate::support::calls::Client;
use crate::support::receiver::Receiver;
use crate::support::scenarios::delivering::{ID, TO_THIS_MACHINE, create, create_user, creation};
use crate::support::scenarios::store_command::findings;
use crate::support::server::Server;
use crate::{database, open, users};

const DELIVERIES: TableDefinition<'_, (&str, &str), &[u8]> = TableDefinition::new("deliveries");

/// A store in this folder with two deliveries.
async fn store_in(folder: &Path) -> Embedded {
    let store = open(folder).unwrap();
    let set = users::tenant_mutation(TenantChange::Set(PolicyUpdate::default()));
    store.mutate(set).await.unwrap();
    for id in ["one", "two"] {
        let target = DeliveryTarget {
            url: "https://example.com/".to_owned(),
            kinds: Vec::new(),
            with_values: true,
            secrets: Vec::new(),
            description: String::new(),
        };
        let now = Timestamp::now();
        let new = EventDelivery::new(Tenant::DEFAULT, id, target, Vec::new(), now);
        let step = DeliveryStep::Create(Box::new(new));
        let create = MutationKind::Delivery(id.to_owned(), step);
        store.mutate(users::mutation_of(create)).await.unwrap();
    }
    store
}

async fn ids(store: &Embedded) -> Vec<String> {
    let found = store.deliveries(&Tenant::DEFAULT).await.unwrap();
    found.into_iter().map(|delivery| delivery.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_delivery_is_found_and_hides_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("embedded:{}", folder.path().display());
    drop(store_in(folder.path()).await);
    assert_eq!(findings(&[], &name), []);
    let transaction = database(folder.path()).begin_write().unwrap();
    let garbage = b"garbage".as_slice();
    transaction.open_table(DELIVERIES).unwrap().insert(("default", "one"), garbage).unwrap();
    transaction.commit().unwrap();

    let found = findings(&[], &name);
    assert!(found.len() == 1 && found[0].0 == "unreadable_bulk", "{found:?}");
    let store = open(folder.path()).unwrap();
    assert_eq!(ids(&store).await, ["two"]);
    let read = store.delivery(&Tenant::DEFAULT, "one").await;
    assert!(matches!(read, Err(Error::Internal(_))), "{read:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_stopped_records_what_it_has_sent_and_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("embedded:{}", folder.path().display());
    let server = Server::start(&["--store", &name, TO_THIS_MACHINE]);
    let receiver = Receiver::start().await;
    let mut client = Client::connect(&server.url).await;
    create(&mut client, creation(&receiver)).await.unwrap();
    for n in 0..20 {
        create_user(&mut client, &format!("user{n}")).await;
    }
    receiver.until("some of the events", |got| got.len() > 2).await;
    server.signal("TERM");
    server.wait();

    let store = open(folder.path()).unwrap();
    let stored = store.delivery(&Tenant::DEFAULT, ID).await.unwrap().unwrap();
    assert!(stored.lease.is_some_and(|lease| lease.until <= Timestamp::now()), "{stored:?}");
    assert_eq!(stored.progress.log.delivered, receiver.got().len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_has_its_deliveries_paused() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_in(&folder.path().join("store")).await;
    let mut copy = store.copy(&AtomicBool::new(false)).unwrap();
    copy.rewind().unwrap();
    let backup = folder.path().join("backup");
    std::io::copy(&mut copy, &mut fs::File::create(&backup).unwrap()).unwrap();
    let restored = folder.path().join("restored");
    embedded::restore(&backup, &restored).unwrap();

    let copied = open(&restored).unwrap();
    let pause = |delivery: EventDelivery| delivery.pause.map(|pause| pause.reason);
    let reason = async |store: &Embedded| {
        pause(store.delivery(&Tenant::DEFAULT, "one").await.unwrap().unwrap())
    };
    assert_eq!(reason(&copied).await.as_deref(), Some("RESTORED"));
    assert_eq!(reason(&store).await, None);
    let now = Timestamp::now();
    assert_eq!(copied.due_deliveries(now, 10).await.unwrap(), []);
    assert_eq!(store.due_deliveries(now, 10).await.unwrap().len(), 2);
    drop(copied);
    assert_eq!(findings(&[], &format!("embedded:{}", restored.display())), []);
}
