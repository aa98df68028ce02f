//! Sample users in a store.

use std::sync::Arc;

use locality_uuid::LocalityId;
use polynym::sample;
use polynym_directory::{Mutation, NewIdentity, NewUser, Tenant, Timestamp, UserChange};
use polynym_embedded::{Embedded, Options};
use polynym_identifier::{Identifier, RawIdentifier};

/// Returns a mutation that registers the handle of a sample user for another user.
fn squatter() -> Mutation {
    let identifier = Identifier::parse(RawIdentifier::Handle("joe")).unwrap();
    let new_user = NewUser {
        identities: vec![NewIdentity::new(identifier, "joe".to_owned())],
        ..NewUser::default()
    };
    Mutation::of_user(
        Tenant::DEFAULT,
        LocalityId::from([7; 16]),
        Timestamp::now(),
        UserChange::Create(new_user),
    )
}

#[tokio::test]
async fn only_missing_sample_users_are_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Embedded::open(folder.path(), Options::default()).unwrap()).backend();
    let (loaded, refused) = sample::load(&store).await.unwrap();
    assert!(loaded >= 24 && refused == 0, "{loaded} {refused}");
    assert_eq!(sample::load(&store).await.unwrap(), (0, 0));
    assert!(store.tenants.tenant(&Tenant::DEFAULT).await.unwrap().is_some());
}

#[tokio::test]
async fn loading_takes_no_identifier_from_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Embedded::open(folder.path(), Options::default()).unwrap()).backend();
    store.mutations.mutate(squatter()).await.unwrap();
    let (loaded, refused) = sample::load(&store).await.unwrap();
    assert!(loaded >= 24 && refused == 1, "{loaded} {refused}");
}
