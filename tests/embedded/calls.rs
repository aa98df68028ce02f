//! The directory over a store: validation and idempotency of calls before they reach the store.

use std::time::Duration;

use conformance::StoreFactory;
use locality_uuid::{Generator, Mode};
use polynym_directory::{
    Directory, Error, Invalid, Limits, RawIdentity, RequestContext, Tenant, User,
};
use polynym_embedded::Options;
use polynym_identifier::RawIdentifier;

use super::Folder;
use super::support::users;

const REQUEST: &str = "20be0ffc-314a-bd53-7a50-013a65ca76d2";

async fn directory(folder: &Folder) -> Directory {
    Directory::new(folder.open().await.unwrap(), Generator::new(Mode::Variable), Limits::default())
}

fn call(request_id: &str) -> RequestContext<'_> {
    RequestContext { request_id, ..users::context(Tenant::DEFAULT, "CreateUser") }
}

/// Creates a user who owns a handle.
async fn create(
    directory: &Directory,
    call: RequestContext<'_>,
    handle: &str,
) -> Result<User, Error> {
    let identity = RawIdentity {
        identifier: Some(RawIdentifier::Handle(handle)),
        display: "",
        verification: None,
        primary: false,
    };
    directory.create(call.into(), "Joe".to_owned(), &[identity], Default::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn idempotency_keys_are_scoped_to_tenant_method_and_caller() {
    let folder = Folder::new(Options::default());
    let directory = std::sync::Arc::new(directory(&folder).await);
    let first = create(&directory, call(REQUEST), "joe").await.unwrap();
    for spelling in [REQUEST, &REQUEST.to_uppercase()] {
        let again = create(&directory, call(spelling), "joe").await.unwrap();
        assert_eq!(again, first, "{spelling}");
    }

    let reused = create(&directory, call(REQUEST), "eve").await;
    assert!(matches!(reused, Err(Error::RequestIdReused)), "{reused:?}");
    let tenant = Tenant::parse("other").unwrap();
    let others = [
        RequestContext { tenant, ..call(REQUEST) },
        RequestContext { method: "ImportUser", ..call(REQUEST) },
        RequestContext { caller: "eve", ..call(REQUEST) },
        call("20be0ffc-314a-bd53-7a50-013a65ca76d3"),
        call(""),
    ];

    for (n, other) in others.into_iter().enumerate() {
        let user = create(&directory, other, &format!("user{n}")).await.unwrap();
        assert_ne!(user.id, first.id, "call {n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_input_is_named_and_writes_nothing() {
    let folder = Folder::new(Options::default());
    let directory = directory(&folder).await;
    let malformed = create(&directory, call("1"), "joe").await;
    assert!(matches!(
        &malformed,
        Err(Error::Invalid { what: Invalid::RequestId, field, .. }) if field == "request_id"
    ));

    for name in ["x".repeat(257), "a\nb".to_owned(), "\0".to_owned()] {
        let refused = directory.create(call("").into(), name, &[], Default::default()).await;
        let is_field = |field: &String| field == "user.display_name";
        assert!(matches!(
            &refused,
            Err(Error::Invalid { what: Invalid::Field, field, .. }) if is_field(field)
        ));
    }

    let missing = RawIdentity { identifier: None, display: "", verification: None, primary: false };
    let refused =
        directory.create(call("").into(), String::new(), &[missing], Default::default()).await;
    let is_first = |field: &String| field == "user.identities[0].identifier";
    assert!(matches!(
        &refused,
        Err(Error::Invalid { what: Invalid::Identifier, field, .. }) if is_first(field)
    ));

    create(&directory, call(""), "joe").await.unwrap();
}

/// A copy that nobody waits for ends, and the next one begins.
#[tokio::test(flavor = "multi_thread")]
async fn copies_of_the_store_are_made_one_at_a_time() {
    let folder = Folder::new(Options::default());
    let directory = directory(&folder).await;
    for _ in 0..20 {
        let _left = tokio::time::timeout(Duration::ZERO, directory.backup()).await;
    }
    let (first, second) = tokio::join!(directory.backup(), directory.backup());
    assert!(first.unwrap().metadata().unwrap().len() > 0 && second.is_ok());
}
