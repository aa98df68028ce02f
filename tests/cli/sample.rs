//! The made-up users in a store.

use locality_uuid::LocalityId;
use polynym::directory::{Mutation, NewIdentity, NewUser, Store, Tenant, Timestamp, UserChange};
use polynym::identifier::{Identifier, RawIdentifier};
use polynym::sample;
use polynym::store::embedded::{Embedded, Options};

/// Registers somebody else under the handle of a made-up user.
fn squatter() -> Mutation {
    let identifier = Identifier::parse(RawIdentifier::Handle("joe")).unwrap();
    let draft = NewUser {
        identities: vec![NewIdentity::new(identifier, "joe".to_owned())],
        ..NewUser::default()
    };
    Mutation::of_user(
        Tenant::DEFAULT,
        LocalityId::from([7; 16]),
        Timestamp::now(),
        UserChange::Create(draft),
    )
}

#[tokio::test]
async fn only_what_is_missing_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), Options::default()).unwrap();
    let (loaded, refused) = sample::load(&store).await.unwrap();
    assert!(loaded >= 24 && refused == 0, "{loaded} {refused}");
    assert_eq!(sample::load(&store).await.unwrap(), (0, 0));
    assert!(store.tenant(&Tenant::DEFAULT).await.unwrap().is_some());
}

#[tokio::test]
async fn an_identifier_that_somebody_has_stays_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), Options::default()).unwrap();
    store.mutate(squatter()).await.unwrap();
    let (loaded, refused) = sample::load(&store).await.unwrap();
    assert!(loaded >= 24 && refused == 1, "{loaded} {refused}");
}
