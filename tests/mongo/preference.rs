//! The read preference of the URI affects only EVENTUAL reads: all others need the latest
//! majority-committed data.

use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, Mode};
use mongodb::bson::{Document, doc};
use polynym_directory::{
    Backend, Directory, Error, Limits, Mutations, PolicyUpdate, Tenant, Timestamp, UserChange,
};
use polynym_identifier::RawIdentifier;
use polynym_mongodb::{InitOptions, IntegritySession, Mongo, OpenError, Options, init, status};
use polynym_store_common::integrity::{Finding, Observer, verify};

use crate::servers::{Layout, ReplicaSet};
use crate::users;

/// Repetitions of a read that goes to one of two secondaries at random.
const REPETITIONS: usize = 12;

struct Silent;

impl Observer for Silent {
    fn found(&mut self, _: &Finding) {}

    fn at(&mut self, _: &'static str, _: u64, _: u64) {}
}

/// Writes without a member are slow on a busy machine.
const PATIENT: Options =
    Options { timeout: Duration::from_secs(60), hint_bytes: 1 << 20, cache_bytes: 0 };

/// Three members, of which one secondary stops replicating.
async fn lagging() -> (ReplicaSet, String) {
    let set = ReplicaSet::start(Layout { members: 3, ..Layout::default() }).await;
    let uri = set.uri("preference", "readPreference=secondary");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let store = Mongo::open(&uri, PATIENT).await.unwrap();
    store.mutate(users::creation(0)).await.unwrap();
    store.close().await;
    let primary = set.primary().await.address();
    let behind = set.members.iter().find(|member| member.address() != primary).unwrap();
    let stop = doc! { "configureFailPoint": "rsSyncApplyStop", "mode": "alwaysOn" };
    behind.admin(stop).await.unwrap();
    (set, uri)
}

async fn write(directory: &Directory, store: &Backend) {
    for n in 1..4 {
        store.mutations.mutate(users::creation(n)).await.unwrap();
    }
    store.mutations.mutate(users::mutation(users::id(1), UserChange::Delete)).await.unwrap();
    let call = users::call(Tenant::DEFAULT, "UpdateTenant");
    let update =
        PolicyUpdate { undo_window: Some(Duration::from_secs(77)), ..PolicyUpdate::default() };
    directory.set_tenant(call, update).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lagging_secondary_answers_eventual_reads_only() {
    let (set, uri) = lagging().await;
    let mongo = Arc::new(Mongo::open(&uri, PATIENT).await.unwrap());
    let store = mongo.backend();
    let directory =
        Arc::new(Directory::new(store.clone(), Generator::new(Mode::Variable), Limits::default()));
    write(&directory, &store).await;
    for _ in 0..REPETITIONS {
        let handle = Some(RawIdentifier::Handle("user2"));
        let (_, refusal) = directory
            .check_identity(&users::context(Tenant::DEFAULT, "CheckIdentity"), "", handle)
            .await
            .unwrap();
        assert!(matches!(refusal, Some(Error::IdentityTaken { .. })), "CheckIdentity: {refusal:?}");
        let tenant = directory.tenant(&Tenant::DEFAULT).await.unwrap();
        assert_eq!(tenant.policies.undo_window, Duration::from_secs(77), "GetTenant");
        let tenants = directory.tenants("", "", 10).await.unwrap();
        assert_eq!(tenants, [tenant], "ListTenants");
        let mut walk = directory.renormalize(Tenant::DEFAULT, "", true).await.unwrap();
        assert_eq!(walk.step().await.unwrap().users, 4, "Renormalize");
        let due = store.histories.expired_users(Timestamp::MAX, None, 10).await.unwrap();
        assert_eq!(due.len(), 1, "expired users");
        assert!(users::look_up(&*store.lookups, 3).await.unwrap());
    }
    for _ in 0..REPETITIONS / 2 {
        let audit = IntegritySession::open(&uri).await.unwrap();
        let summary = verify(&audit, false, &mut Silent).await.unwrap();
        assert_eq!((summary.users, summary.claims, summary.findings), (4, 8, 0), "verify");
        audit.close().await;
    }
    let meta = set.client().await.database("preference").collection::<Document>("meta");
    meta.update_one(doc! { "_id": "schema" }, doc! { "$inc": { "v": 100 } }).await.unwrap();
    for _ in 0..REPETITIONS / 2 {
        let error = Mongo::open(&uri, PATIENT).await.err();
        assert!(
            matches!(error, Some(OpenError::Version { .. })),
            "the check of the version: {error:?}"
        );
        assert!(status(&uri).await.unwrap().schema_version > Some(100), "status");
    }
    mongo.close().await;
}
