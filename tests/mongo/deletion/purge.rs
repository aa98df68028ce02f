//! After a purge, no collection contains the names of the user, and the tenant has an event.

use futures_util::TryStreamExt;
use mongodb::bson::{RawDocumentBuf, doc};
use polynym_mongodb::{InitOptions, init};

use crate::calls::{Client, handle, identity};
use crate::server::Server;
use crate::servers;
use crate::support::scenarios::histories::create_and_purge;
use crate::support::scenarios::tenant_history::tenant_changes_are_events;

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_leaves_no_trace() {
    const NAME: &str = "quetzalcoatl";
    let set = servers::one_member().await;
    let uri = set.uri("purging", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let server = tokio::task::block_in_place(|| Server::start(&["--store", &uri]));
    let mut client = Client::connect(&server.url).await;
    let joe = polynym_proto::v1::User {
        display_name: "Joe".to_owned(),
        identities: vec![identity(handle("joe"))],
        ..Default::default()
    };
    client.create(joe).await.unwrap();
    create_and_purge(&mut client, NAME).await;

    let database = set.client().await.database("purging");
    let mut documents = 0;
    for name in database.list_collection_names().await.unwrap() {
        let found = database.collection::<RawDocumentBuf>(&name).find(doc! {}).await.unwrap();
        for document in found.try_collect::<Vec<_>>().await.unwrap() {
            let bytes = document.as_bytes();
            let has = bytes.windows(NAME.len()).any(|part| part == NAME.as_bytes());
            assert!(!has, "{name}: {document:?}");
            documents += 1;
        }
    }
    assert!(documents > 3, "{documents}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_its_own_history() {
    let set = servers::one_member().await;
    let uri = set.uri("tenant_history", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let server = tokio::task::block_in_place(|| Server::start(&["--store", &uri]));
    let mut client = Client::connect(&server.url).await;
    tenant_changes_are_events(&mut client).await;
}
