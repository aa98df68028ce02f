//! Shard keys of identities: hashes, so that those of a new tenant are on all shards; ranges, in
//! stores of older programs; none, if the store was created on a replica set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use locality_uuid::{Generator, Mode};
use mongodb::bson::{Bson, Document, doc};
use polynym_directory::{
    Consistency, CurrentRules, IdempotencyKey, Mutation, Mutations, NewIdentity, NewUser, Reads,
    Tenant, Timestamp, UserChange,
};
use polynym_identifier::{Identifier, Kind, RawIdentifier};
use polynym_mongodb::{InitOptions, Mongo, Options, init};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{database, json, stderr, stdout, store};
use crate::servers::{self, Hashed, Layout, Sharded};
use crate::users;

/// The time limit, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Identities of each kind of the new tenant.
const IDENTITIES_PER_KIND: usize = 900;
/// The maximum identities of one of three shards.
const PER_SHARD_LIMIT: usize = IDENTITIES_PER_KIND * 40 / 100;

/// The nth identity of a kind. Their canonical forms share a prefix, as in an organisation.
fn identity(kind: Kind, n: usize) -> NewIdentity {
    let text = match kind {
        Kind::Email => format!("employee{n:04}@globex.example"),
        Kind::Handle => format!("globex_{n:04}"),
        Kind::Phone => format!("+4930901{n:05}"),
        Kind::Social => format!("{:08}", 70_000_000 + n),
        Kind::Url => format!("https://people.globex.example/{n:04}"),
    };
    let raw = match kind {
        Kind::Email => RawIdentifier::Email(&text),
        Kind::Handle => RawIdentifier::Handle(&text),
        Kind::Phone => RawIdentifier::Phone { number: &text, region: "" },
        Kind::Social => RawIdentifier::Social { provider: "globex-sso", subject: &text },
        Kind::Url => RawIdentifier::Url(&text),
    };
    users::identity(Identifier::parse(raw).unwrap())
}

/// Creates users of a new tenant with this number of identities of each kind, through servers that
/// have not seen it.
async fn create_all(store: &Arc<Mongo>, each: usize) {
    let ids = Generator::new(Mode::Variable);
    let mut creations = JoinSet::new();
    for user in 0..IDENTITIES_PER_KIND / each {
        let numbers = user * each..(user + 1) * each;
        let identities =
            Kind::ALL.into_iter().flat_map(|kind| numbers.clone().map(move |n| identity(kind, n)));
        let change =
            UserChange::Create(NewUser { identities: identities.collect(), ..NewUser::default() });
        let request = Some(IdempotencyKey { key: format!("globex,{user}"), request_hash: 1 });
        let tenant = Tenant::parse("globex").unwrap();
        let mutation = Mutation {
            tenant,
            request,
            now: Timestamp::now().into(),
            ..users::mutation(ids.next_id(), change)
        };
        let store = store.clone();
        creations.spawn(async move { store.mutate(mutation).await.unwrap() });
        if creations.len() == 8 {
            creations.join_next().await.unwrap().unwrap();
        }
    }
    creations.join_all().await;
}

/// The documents of a collection on each shard whose ids have this prefix.
async fn by_shard(cluster: &Sharded, database: &str, collection: &str, start: &str) -> Vec<u64> {
    let filter = if start.is_empty() {
        doc! {}
    } else {
        doc! { "_id": { "$gte": start, "$lt": format!("{start}~") } }
    };
    let mut counts = Vec::new();
    for shard in &cluster.shards {
        let part = shard.members[0].database(database).await.collection::<Document>(collection);
        counts.push(part.count_documents(filter.clone()).await.unwrap());
    }
    counts
}

/// Checks that no shard exceeds its part of any collection, and prints the parts.
async fn check_distribution(database: &str, each: usize) {
    let cluster = servers::three_shards().await;
    let uri = cluster.uri(database);
    let output = store(&["init"], &uri);
    assert!(output.status.success(), "{}", stderr(&output));
    let opened = Arc::new(Mongo::open(&uri, Options::default()).await.unwrap());
    create_all(&opened, each).await;
    for kind in Kind::ALL {
        let counts = by_shard(cluster, database, "identities", &format!("globex,{kind},")).await;
        let percent: Vec<_> =
            counts.iter().map(|count| format!("{:.1} %", *count as f64 * 100.0 / 900.0)).collect();
        println!("{kind}: {}", percent.join(", "));
        assert_eq!(counts.iter().sum::<u64>(), IDENTITIES_PER_KIND as u64);
        assert!(
            counts.iter().all(|count| *count as usize <= PER_SHARD_LIMIT),
            "{kind}: {counts:?}"
        );
    }
    for collection in ["users", "requests"] {
        let counts = by_shard(cluster, database, collection, "").await;
        println!("{collection}: {counts:?}");
        assert_eq!(counts.iter().sum::<u64>(), (IDENTITIES_PER_KIND / each) as u64, "{collection}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn identities_of_a_new_tenant_are_on_all_shards() {
    check_distribution("keys_tenant", 5).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute"]
async fn long_identities_of_900_users_are_on_all_shards() {
    check_distribution("keys_tenant_long", 1).await;
}

/// A store of older programs: identities in ranges, on all shards.
async fn in_ranges(cluster: &Sharded, database: &str) -> String {
    let (uri, space) = (cluster.uri(database), format!("{database}.identities"));
    cluster.admin(doc! { "enableSharding": database }).await.unwrap();
    cluster.admin(doc! { "shardCollection": &space, "key": { "_id": 1 } }).await.unwrap();
    init(&uri, &InitOptions { spread: false }, &|_| ()).await.unwrap();
    cluster.spread(&space, &["default,email,user3", "default,handle,"].map(Bson::from)).await;
    uri
}

/// Creates and looks up users until stopped, and counts them.
async fn work(store: Arc<Mongo>, done: Arc<AtomicBool>, count: Arc<AtomicUsize>) {
    while !done.load(Relaxed) {
        let n = count.load(Relaxed);
        store.mutate(users::creation(n)).await.unwrap();
        count.fetch_add(1, Relaxed);
        assert!(
            users::look_up(&*store, n).await.unwrap()
                && users::look_up(&*store, n / 2).await.unwrap()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn identities_in_ranges_stay_until_they_are_resharded() {
    let cluster = servers::three_shards().await;
    let uri = in_ranges(cluster, "keys_ranges").await;
    let opened = Arc::new(
        Mongo::open(&uri, Options { timeout: TIMEOUT, ..Options::default() }).await.unwrap(),
    );
    for n in 0..70 {
        opened.mutate(users::creation(n)).await.unwrap();
    }
    let before = by_shard(cluster, "keys_ranges", "identities", "").await;
    assert!(before.iter().all(|count| *count > 0), "{before:?}");
    let output = store(&["init"], &uri);
    assert!(
        stdout(&output).contains("identities: was sharded on { \"_id\": 1 }"),
        "{}",
        stdout(&output)
    );
    assert_eq!(by_shard(cluster, "keys_ranges", "identities", "").await, before);

    let status = json(&store(&["status", "--json"], &uri)).pop().unwrap();
    let command = status["advice"][0]["command"].as_str().unwrap().to_owned();
    let expected = concat!(
        "db.adminCommand({ reshardCollection: \"keys_ranges.identities\", ",
        "key: { _id: \"hashed\" }, numInitialChunks: 12 })"
    );
    assert_eq!(command, expected, "{status}");
    let table = stdout(&store(&["status"], &uri));
    assert!(
        table.contains(&command) && table.contains("identities is sharded on { \"_id\": 1 }"),
        "{table}"
    );

    let (done, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(70)));
    let load = tokio::spawn(work(opened.clone(), done.clone(), count.clone()));
    // The command as `mongosh` sends it. By default MongoDB takes at least five minutes.
    let least = doc! { "setParameter": 1, "reshardingMinimumOperationDurationMillis": 0_i64 };
    cluster.config.members[0].admin(least).await.unwrap();
    let reshard = doc! {
        "reshardCollection": "keys_ranges.identities",
        "key": { "_id": "hashed" },
        "numInitialChunks": 12,
    };
    cluster.admin(reshard).await.unwrap();
    let (since, there) = (Instant::now(), count.load(Relaxed));
    while count.load(Relaxed) < there + 5 {
        assert!(since.elapsed() < TIMEOUT && !load.is_finished(), "calls fail after resharding");
        sleep(Duration::from_millis(20)).await;
    }
    done.store(true, Relaxed);
    load.await.unwrap();
    let after = by_shard(cluster, "keys_ranges", "identities", "").await;
    println!(
        "{} users were created meanwhile; claims by shard: before {before:?}, after {after:?}",
        there - 70
    );
    assert!(after.iter().all(|count| *count > 0), "{after:?}");
    for n in 0..count.load(Relaxed) {
        assert!(users::look_up(&*opened, n).await.unwrap(), "user {n}");
    }
    let status = json(&store(&["status", "--json"], &uri)).pop().unwrap();
    assert_eq!(status["collections"][1]["shard_key"], "{ \"_id\": \"hashed\" }", "{status}");
    assert_eq!(
        (&status["advice"], &status["missing"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
    assert!(
        stdout(&store(&["init"], &uri))
            .contains("identities: was sharded on { \"_id\": \"hashed\" }")
    );
    assert!(store(&["verify"], &uri).status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_set_can_become_a_cluster() {
    let set = Sharded::first_shard(Layout::default()).await;
    let uri = set.uri("keys_grown", "");
    init(&uri, &InitOptions::default(), &|_| ()).await.unwrap();
    let opened = Mongo::open(&uri, Options::default()).await.unwrap();
    for n in 0..40 {
        opened.mutate(users::creation(n)).await.unwrap();
    }
    let indexes = async |uri: &str| {
        database(uri).await.collection::<Document>("identities").list_index_names().await
    };
    assert_eq!(indexes(&uri).await.unwrap(), ["_id_", "h_1"], "a replica set needs no other");

    let cluster = Sharded::around(set).await;
    let uri = cluster.uri("keys_grown");
    // A server that goes on without a router would not see the other shards.
    let since = Instant::now();
    while opened.rules(Consistency::Latest).await.is_ok() {
        assert!(since.elapsed() < TIMEOUT, "the server goes on");
        sleep(Duration::from_millis(100)).await;
    }
    assert!(opened.mutate(users::creation(40)).await.is_err(), "the server goes on to write");
    assert!(users::look_up(&opened, 0).await.is_err(), "the server goes on to read");
    assert!(opened.check().await.is_err(), "health is good");
    let refused = store(&["init"], &uri);
    assert!(stderr(&refused).contains("not connected through the routers"), "{}", stderr(&refused));
    opened.close().await;
    let status = json(&store(&["status", "--json"], &uri)).pop().unwrap();
    assert!(status["missing"].to_string().contains("the sharding of users"), "{status}");
    let mut output = store(&["init"], &uri);
    while stderr(&output).contains("not connected through the routers") {
        assert!(since.elapsed() < 2 * TIMEOUT, "the server is listed after its end");
        output = store(&["init"], &uri);
    }
    println!("{}", stdout(&output));
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(indexes(&uri).await.unwrap(), ["_id_", "h_1", "_id_hashed"]);
    let opened =
        Mongo::open(&uri, Options { timeout: TIMEOUT, ..Options::default() }).await.unwrap();
    for n in 0..40 {
        assert!(users::look_up(&opened, n).await.unwrap());
    }
    // Existing documents stay on one shard until the balancer moves them.
    let space = "keys_grown.identities";
    assert_eq!(Hashed::read(&cluster, space).await.by_shard(&cluster), [1, 0]);
    cluster.admin(doc! { "split": space, "middle": { "_id": 0_i64 } }).await.unwrap();
    let bounds = [doc! { "_id": 0_i64 }, doc! { "_id": Bson::MaxKey }];
    let command = doc! { "moveChunk": space, "bounds": bounds.to_vec(), "to": "shard1" };
    cluster.carry_out_move(command).await.unwrap();
    for n in 40..60 {
        opened.mutate(users::creation(n)).await.unwrap();
    }
    for n in 0..60 {
        assert!(users::look_up(&opened, n).await.unwrap());
    }
    assert!(store(&["verify"], &uri).status.success());
    let status = json(&store(&["status", "--json"], &uri)).pop().unwrap();
    assert_eq!(
        (&status["advice"], &status["missing"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
}
