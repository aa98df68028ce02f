//! Creating a store in a database of MongoDB: once, twice at the same time, after an interruption,
//! beside existing data; and refusals.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, doc};

use polynym_directory::Mutations;
use polynym_mongodb::{InitOptions, Mongo, OpenError, Options, init};
use tokio::sync::Notify;

use super::database;
use crate::servers::{self, Sharded};
use crate::users;

const COLLECTIONS: [&str; 4] = ["users", "identities", "requests", "tenants"];
/// A chunk of a collection on each shard.
const TWO_EACH: [(&str, usize); 3] = [("shard0", 2), ("shard1", 2), ("shard2", 2)];
const FOUR_EACH: [(&str, usize); 3] = [("shard0", 4), ("shard1", 4), ("shard2", 4)];

/// Runs `init`. Returns its messages.
async fn run(uri: &str) -> Result<Vec<String>, OpenError> {
    let said = Mutex::new(Vec::new());
    init(uri, &InitOptions::default(), &|line| said.lock().unwrap().push(line.to_owned())).await?;
    Ok(said.into_inner().unwrap())
}

async fn opens(uri: &str) -> Result<Mongo, OpenError> {
    Mongo::open(uri, Options::default()).await
}

fn id(n: usize) -> Bson {
    let bytes = users::id(n).as_bytes().to_vec();
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes })
}

/// The shard of each chunk of a collection, by the text of its first key.
async fn chunks(client: &mongodb::Client, space: &str) -> BTreeMap<String, String> {
    let config = client.database("config");
    let found =
        config.collection::<Document>("collections").find_one(doc! { "_id": space }).await.unwrap();
    let entry = found.unwrap_or_else(|| panic!("{space} is not sharded"));
    let key = if space.ends_with(".identities") {
        doc! { "_id": "hashed" }
    } else {
        doc! { "_id": 1 }
    };
    assert_eq!(entry.get_document("key").unwrap(), &key);
    let own = doc! { "uuid": entry.get("uuid").cloned() };
    let chunks: Vec<Document> = config
        .collection::<Document>("chunks")
        .find(own)
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    let chunk = |chunk: &Document| {
        let value = chunk.get_document("min").unwrap().get("_id").unwrap();
        let min = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (min, chunk.get_str("shard").unwrap().to_owned())
    };
    chunks.iter().map(chunk).collect()
}

/// The number of chunks on each shard.
fn by_shard<'c>(chunks: impl Iterator<Item = &'c String>) -> BTreeMap<&'c str, usize> {
    let mut count = BTreeMap::new();
    chunks.for_each(|shard| *count.entry(shard.as_str()).or_default() += 1);
    count
}

async fn all_chunks(cluster: &Sharded, database: &str) -> Vec<BTreeMap<String, String>> {
    let client = cluster.client().await;
    let mut all = Vec::new();
    // Tenants have one chunk, on the primary shard of the database.
    for name in &COLLECTIONS[..3] {
        all.push(chunks(client, &format!("{database}.{name}")).await);
    }
    all
}

/// No zone of a database is left, which would keep the balancer from moving chunks.
async fn assert_no_zones(cluster: &Sharded, database: &str) {
    let config = cluster.client().await.database("config");
    let name = doc! { "$regex": format!("^polynym init {database} ") };
    for (collection, filter) in [("tags", doc! { "tag": &name }), ("shards", doc! { "tags": name })]
    {
        let found = config.collection::<Document>(collection).find_one(filter).await.unwrap();
        assert_eq!(found, None, "a zone is left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shard_has_chunks_of_every_collection() {
    let cluster = servers::three_shards().await;
    let uri = cluster.uri("init_spread");
    assert!(matches!(opens(&uri).await, Err(OpenError::NotInitialised { .. })));
    let said = run(&uri).await.unwrap();
    println!("{}", said.join("\n"));
    let [users, identities, requests] =
        all_chunks(cluster, "init_spread").await.try_into().unwrap();
    for chunks in [&users, &requests] {
        assert_eq!(by_shard(chunks.values()), BTreeMap::from(FOUR_EACH));
    }
    assert_eq!(by_shard(identities.values()), BTreeMap::from(TWO_EACH));
    assert!(said.iter().any(|line| line.contains("users: 0 empty chunks moved")), "{said:?}");
    assert_no_zones(cluster, "init_spread").await;
    let store = opens(&uri).await.unwrap();
    for n in 0..100 {
        store.mutate(users::creation(n)).await.unwrap();
        assert!(users::look_up(&store, n).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_init_moves_nothing() {
    let cluster = servers::three_shards().await;
    let uri = cluster.uri("init_again");
    run(&uri).await.unwrap();
    let store = opens(&uri).await.unwrap();
    for n in 0..20 {
        store.mutate(users::creation(n)).await.unwrap();
    }
    // All these users are in one chunk. It moves to a shard that `init` would not choose, and so
    // does an empty one.
    let email = Bson::from("default,email,user0@example.com");
    let claim_on = cluster.owner("init_again.identities", email.clone()).await;
    let elsewhere = if claim_on == "shard2" { "shard0" } else { "shard2" };
    let moves = [
        ("init_again.users", Bson::MinKey, "shard2"),
        ("init_again.users", id(0xc000_0000), "shard2"),
        ("init_again.identities", email.clone(), elsewhere),
    ];
    for (space, find, to) in moves {
        cluster.move_chunk(space, find, to).await.unwrap();
    }
    let before = all_chunks(cluster, "init_again").await;
    let said = run(&uri).await.unwrap();
    println!("{}", said.join("\n"));
    let after = all_chunks(cluster, "init_again").await;
    assert_eq!(cluster.owner("init_again.users", id(0)).await, "shard2", "data in use was moved");
    assert_eq!(
        cluster.owner("init_again.identities", email).await,
        elsewhere,
        "data in use was moved"
    );
    assert_eq!((&after[1], &after[2]), (&before[1], &before[2]));
    assert_eq!(before[0].len(), after[0].len());
    assert!(said.iter().any(|line| line.contains("users: split at 0 of 11")), "{said:?}");
    for n in 0..20 {
        assert!(users::look_up(&store, n).await.unwrap());
    }
    let again = run(&uri).await.unwrap();
    assert_eq!(
        again.iter().filter(|line| line.contains(": 0 empty chunks moved")).count(),
        5,
        "{again:?}"
    );
    assert_eq!(all_chunks(cluster, "init_again").await, after);
}

/// The shard was added to an empty store.
#[tokio::test(flavor = "multi_thread")]
async fn a_shard_without_hashes_gets_chunks() {
    let cluster = servers::three_shards().await;
    let (uri, space) = (cluster.uri("init_added"), "init_added.identities");
    run(&uri).await.unwrap();
    let hashes = chunks(cluster.client().await, space).await;
    for (hash, _) in hashes.iter().filter(|(_, shard)| *shard != "shard0") {
        let bound = |hash: i64| doc! { "_id": hash };
        let start = hash.parse().unwrap();
        let next = hashes
            .keys()
            .filter_map(|other| other.parse().ok())
            .filter(|other| *other > start)
            .min();
        let end = next.map_or(doc! { "_id": Bson::MaxKey }, bound);
        cluster
            .carry_out_move(
                doc! { "moveChunk": space, "bounds": [bound(start), end], "to": "shard0" },
            )
            .await
            .unwrap();
    }
    let all = chunks(cluster.client().await, space).await;
    assert_eq!(by_shard(all.values()), BTreeMap::from([("shard0", 6)]));
    println!("{}", run(&uri).await.unwrap().join("\n"));
    let spread = chunks(cluster.client().await, space).await;
    assert_eq!(
        by_shard(spread.values()),
        BTreeMap::from([("shard0", 4), ("shard1", 1), ("shard2", 1)])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_inits_create_one_store() {
    let cluster = servers::three_shards().await;
    let uri = cluster.uri("init_twice");
    let (first, second) = tokio::join!(run(&uri), run(&uri));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_ne!(first.last(), second.last(), "both created the store");
    let [users, identities, requests] = all_chunks(cluster, "init_twice").await.try_into().unwrap();
    for chunks in [&users, &requests] {
        assert_eq!(by_shard(chunks.values()), BTreeMap::from(FOUR_EACH));
    }
    assert_eq!(by_shard(identities.values()), BTreeMap::from(TWO_EACH));
    opens(&uri).await.unwrap();
}

/// Stops `init` after `lines` messages. Returns false if it had finished.
async fn interrupted(uri: &str, lines: usize) -> bool {
    let (said, enough) = (AtomicUsize::new(0), Notify::new());
    let count = |_: &str| {
        if said.fetch_add(1, Ordering::Relaxed) + 1 == lines {
            enough.notify_one();
        }
    };
    let options = InitOptions::default();
    tokio::select! {
        biased;
        () = enough.notified() => true,
        outcome = init(uri, &options, &count) => {
            outcome.unwrap();
            false
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_is_finished_by_the_next() {
    runs_are_interrupted_every(26).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes many minutes"]
async fn long_an_interrupted_run_is_finished_by_the_next() {
    runs_are_interrupted_every(1).await;
}

/// Interrupts runs after each such number of lines.
async fn runs_are_interrupted_every(step: usize) {
    let cluster = servers::three_shards().await;
    let mut lines = 1;
    loop {
        let uri = cluster.uri(&format!("init_stopped{lines}"));
        if !interrupted(&uri, lines).await {
            break;
        }
        let opened = opens(&uri).await;
        // Its last statement may have been sent with the last message.
        assert!(
            matches!(opened, Ok(_) | Err(OpenError::NotInitialised { .. })),
            "part of a store after {lines} steps"
        );
        run(&uri).await.unwrap();
        let [users, identities, requests] =
            all_chunks(cluster, &format!("init_stopped{lines}")).await.try_into().unwrap();
        assert_eq!(
            (users.len(), identities.len(), requests.len()),
            (12, 6, 12),
            "after {lines} steps"
        );
        assert_no_zones(cluster, &format!("init_stopped{lines}")).await;
        opens(&uri).await.unwrap().mutate(users::creation(1)).await.unwrap();
        lines += step;
    }
    assert!(lines > 12, "{lines}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_set_gets_validators_and_an_index() {
    let set = servers::one_member().await;
    let uri = set.uri("init_set", "");
    println!("{}", run(&uri).await.unwrap().join("\n"));
    let database = database(&uri).await;
    for wrong in [doc! { "_id": 1 }, doc! { "_id": "default,email,a@b" }] {
        for name in COLLECTIONS {
            assert!(
                database.collection(name).insert_one(wrong.clone()).await.is_err(),
                "{name}: {wrong}"
            );
        }
    }
    // A foreign change is repaired.
    database.run_command(doc! { "collMod": "users", "validator": {} }).await.unwrap();
    database.run_command(doc! { "dropIndexes": "requests", "index": "t_1" }).await.unwrap();
    let other = doc! { "key": { "t": 1 }, "name": "t_1", "expireAfterSeconds": 5 };
    database.run_command(doc! { "createIndexes": "requests", "indexes": [other] }).await.unwrap();
    println!("{}", run(&uri).await.unwrap().join("\n"));
    assert!(database.collection("users").insert_one(doc! { "_id": 1 }).await.is_err());
    let indexes =
        database.run_command(doc! { "listIndexes": "requests" }).await.unwrap().to_string();
    assert!(indexes.contains("90000"), "{indexes}");
    opens(&uri).await.unwrap().mutate(users::creation(1)).await.unwrap();
}

/// Lets `prepare` change a database, and checks that `init` refuses it with these words and changes
/// nothing.
async fn assert_refused(uri: &str, words: &[&str], prepare: impl AsyncFnOnce(&Database)) {
    let database = database(uri).await;
    prepare(&database).await;
    let listed = async || database.run_command(doc! { "listCollections": 1 }).await.unwrap();
    let names = |listed: &Document| {
        listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone()
    };
    let before = names(&listed().await);
    let error = run(uri).await.expect_err("it is refused").to_string();
    println!("{error}");
    words.iter().for_each(|word| assert!(error.contains(word), "no {word:?} in: {error}"));
    assert_eq!(error.lines().count(), 1);
    assert_eq!(names(&listed().await), before, "the database was changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_collections_are_refused() {
    let set = servers::one_member().await;
    let uri = |name: &str| set.uri(name, "");
    let document = doc! { "_id": "joe@example.com" };
    assert_refused(&uri("init_used"), &["identities holds documents", "meta"], async |database| {
        database.collection("identities").insert_one(document.clone()).await.unwrap();
    })
    .await;
    assert_refused(&uri("init_meta"), &["meta with something else"], async |database| {
        database.collection("meta").insert_one(document.clone()).await.unwrap();
    })
    .await;
    assert_refused(&uri("init_view"), &["users is not an ordinary collection"], async |database| {
        database
            .run_command(doc! { "create": "users", "viewOn": "people", "pipeline": [] })
            .await
            .unwrap();
    })
    .await;
    assert_refused(&uri("init_collated"), &["identities is not an ordinary"], async |database| {
        let collation = doc! { "locale": "en", "strength": 2 };
        database
            .run_command(doc! { "create": "identities", "collation": collation })
            .await
            .unwrap();
    })
    .await;
    assert_refused(&uri("init_unclustered"), &["notices is not clustered"], async |database| {
        database.create_collection("notices").await.unwrap();
    })
    .await;
    assert_refused(
        &uri("init_newer"),
        &["schema version 17", "supports schema version 16", "use a newer program"],
        async |database| {
            database
                .collection("meta")
                .insert_one(doc! { "_id": "schema", "v": 17_i32 })
                .await
                .unwrap();
        },
    )
    .await;
    let advice = "export it with the program that wrote it";
    assert_refused(&uri("init_older"), &["schema version 15", advice], async |database| {
        let versions = doc! { "_id": "schema", "v": 15_i64, "n": 4_i64, "e": 1_i32 };
        database.collection("meta").insert_one(versions).await.unwrap();
    })
    .await;
    assert_refused(&uri("init_unversioned"), &["meta without a version"], async |database| {
        database.collection("meta").insert_one(doc! { "_id": "schema" }).await.unwrap();
    })
    .await;
    // The server refuses the newer store too.
    assert!(matches!(opens(&uri("init_newer")).await, Err(OpenError::Version { found: 17, .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_shard_keys_are_refused() {
    let cluster = servers::three_shards().await;
    assert_refused(
        &cluster.uri("init_hashed"),
        &["users is sharded on", "hashed"],
        async |database| {
            let space = format!("{}.users", database.name());
            cluster.admin(doc! { "enableSharding": database.name() }).await.unwrap();
            cluster
                .admin(doc! { "shardCollection": space, "key": { "_id": "hashed" } })
                .await
                .unwrap();
        },
    )
    .await;
    assert_refused(
        &cluster.uri("init_otherwise"),
        &["identities is sharded on", "in place of"],
        async |database| {
            let space = format!("{}.identities", database.name());
            cluster.admin(doc! { "enableSharding": database.name() }).await.unwrap();
            cluster.admin(doc! { "shardCollection": space, "key": { "u": 1 } }).await.unwrap();
        },
    )
    .await;
}

/// A router would not find documents written past it.
#[tokio::test(flavor = "multi_thread")]
async fn servers_behind_a_router_are_refused() {
    let cluster = servers::three_shards().await;
    for server in [&cluster.config, &cluster.shards[0]].map(|set| set.members[0].address()) {
        let uri = format!("mongodb://{server}/init_past");
        let [made, opened] = [run(&uri).await.map(drop), opens(&uri).await.map(drop)];
        assert!(
            matches!(made, Err(OpenError::Shard)) && matches!(opened, Err(OpenError::Shard)),
            "{made:?} {opened:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standalone_server_is_refused() {
    let process = servers::stand_alone().await;
    let error = run(&format!("mongodb://{}/init", process.address())).await.unwrap_err();
    assert!(
        matches!(error, OpenError::Standalone) && error.to_string().contains("--replSet"),
        "{error}"
    );
}
