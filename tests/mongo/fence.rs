//! The validators refuse every write of an earlier epoch, by any document that it writes; and no
//! mutation writes the document of the versions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use polynym_directory::{
    DeletionStep, Hold, Limits, Mutation, MutationKind, MutationReport, Mutations, NewIdentity,
    NewUser, Policies, PolicyUpdate, Tenant, TenantChange, Timestamp, Update, UserChange,
};
use polynym_identifier::{IdentityKey, Kind, RULES_VERSION};
use polynym_mongodb::Mongo;

use super::golden::dump;
use super::servers::{self, Databases};
use crate::support::users;

/// A tenant that is being deleted. It has a claim without a user.
const CLOSING: &str = "closing";

/// Sets the epoch that the validators require.
async fn require_epoch(database: &Database, epoch: i32) {
    for name in ["users", "tenants", "identities"] {
        let list = doc! { "listCollections": 1, "filter": { "name": name } };
        let listed = database.run_command(list).await.unwrap();
        let listed = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let options = listed[0].as_document().unwrap().get_document("options").unwrap();
        let mut validator = options.get_document("validator").unwrap().clone();
        let schema = validator.get_document_mut("$jsonSchema").unwrap();
        let properties = schema.get_document_mut("properties").unwrap();
        properties.get_document_mut("e").unwrap().insert("minimum", epoch);
        database.run_command(doc! { "collMod": name, "validator": validator }).await.unwrap();
    }
}

fn of_tenant(mutation: Mutation) -> Mutation {
    Mutation { tenant: Tenant::parse(CLOSING).unwrap(), ..mutation }
}

/// A hold for nobody.
fn hold(tenant: &str, n: usize) -> Hold {
    let key = IdentityKey::new(tenant, &users::email(n));
    let until = Timestamp::now().plus(Duration::from_secs(1_000_000));
    Hold { key, until, guard: false, rules_version: RULES_VERSION }
}

async fn prepare(store: &Mongo) {
    for n in 0..3 {
        store.mutate(users::creation(n)).await.unwrap();
    }
    // More events than one step of a purge takes.
    for name in 0..20 {
        let update = Update::from_mask(None, format!("Name {name}"), BTreeMap::new()).unwrap();
        store.mutate(users::mutation(users::id(2), UserChange::Update(update))).await.unwrap();
    }
    let import = |n| users::mutation_of(MutationKind::ImportHold(hold("default", n)));
    store.mutate(import(10)).await.unwrap();
    let policies = PolicyUpdate::default();
    let begin = DeletionStep::Begin { with_users: true };
    let hold = MutationKind::ImportHold(hold(CLOSING, 11));
    for mutation in [
        users::tenant_mutation(TenantChange::Set(policies)),
        users::mutation_of(hold),
        users::tenant_mutation(TenantChange::Delete(begin)),
    ] {
        store.mutate(of_tenant(mutation)).await.unwrap();
    }
}

/// A mutation by each document that can confirm the epoch.
fn mutations() -> Vec<Mutation> {
    let identity = NewIdentity::new(users::email(20), "user20@example.com".to_owned());
    let new = NewUser { identities: vec![identity], ..NewUser::default() };
    let purge = users::mutation(users::id(1), UserChange::Purge);
    let holds = BTreeMap::from([(Kind::Email, Duration::from_secs(1_000_000))]);
    let claims = vec![hold(CLOSING, 11).key];
    let delete = |step| of_tenant(users::tenant_mutation(TenantChange::Delete(step)));
    vec![
        users::mutation(users::id(20), UserChange::Create(new)),
        users::mutation(users::id(0), UserChange::Disable),
        purge.clone(),
        Mutation {
            policies: Arc::new(Policies { holds, ..Policies::default() }),
            ..Mutation { kind: MutationKind::User(users::id(0), UserChange::Purge), ..purge }
        },
        Mutation {
            limits: Limits { purge_events: 3, ..Limits::default() },
            ..users::mutation(users::id(2), UserChange::Purge)
        },
        users::mutation_of(MutationKind::ReleaseHold(users::email(10))),
        users::mutation_of(MutationKind::ImportHold(hold("default", 12))),
        delete(DeletionStep::RemoveClaims(claims)),
        delete(DeletionStep::Finish),
    ]
}

/// Executes a mutation with all of its steps. Returns their number, or the error.
async fn mutate(store: &Mongo, mutation: &Mutation) -> Result<usize, polynym_directory::Error> {
    let (mut purge, mut steps) = (None, 0);
    loop {
        steps += 1;
        let next = Mutation { purge, ..mutation.clone() };
        match store.mutate(next).await?.report {
            MutationReport::PurgeBegun(progress) => purge = Some(progress),
            _ => return Ok(steps),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_validators_stop_every_write_of_an_earlier_epoch() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let store = factory.mongo().await.unwrap();
    let database = servers::one_member().await.client().await.database(factory.name().await);
    prepare(&store).await;
    require_epoch(&database, 2).await;
    let before = dump(&database).await;
    for mutation in mutations() {
        let outcome = mutate(&store, &mutation).await;
        assert!(outcome.is_err(), "{:?} is written: {outcome:?}", mutation.kind);
        assert!(dump(&database).await == before, "{:?} has changed the store", mutation.kind);
    }

    require_epoch(&database, 1).await;
    let versions = database.collection::<Document>("meta").find_one(doc! {}).await.unwrap();
    for mutation in mutations() {
        let steps = mutate(&store, &mutation).await;
        let steps = steps.unwrap_or_else(|error| panic!("{:?}: {error:?}", mutation.kind));
        assert_eq!(steps > 1, mutation.limits.purge_events == 3, "{:?}", mutation.kind);
    }
    assert_eq!(
        database.collection::<Document>("meta").find_one(doc! {}).await.unwrap(),
        versions,
        "mutations wait for each other at the document of the versions"
    );
    let claims = database.collection::<Document>("identities");
    let confirming = claims.find_one(doc! { "e": { "$ne": Bson::Null } }).await.unwrap();
    assert_eq!(confirming, None, "a claim has kept the epoch");
}
