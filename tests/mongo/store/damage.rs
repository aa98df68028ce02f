//! Damaged collections of the store on MongoDB, on a replica set and on a cluster; and the status
//! of an incomplete store.

use std::ops::Range;

use locality_uuid::LocalityId;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc, spec::BinarySubtype};
use mongodb::{Collection, Database};
use polynym_directory::{EncodedUser, Record, Timestamp, User};
use polynym_mongodb::{InitOptions, Mongo, Options, init};

use super::{database, json, stderr, stdout, store};
use crate::servers;
use crate::support::scenarios::damage::{self, Breakable};
use crate::support::users;

/// A database with a store.
struct Broken {
    uri: String,
    database: Database,
    store: Mongo,
}

impl Broken {
    async fn new(uri: String) -> Self {
        init(&uri, &InitOptions { spread: false }, &|_| {}).await.unwrap();
        let database = database(&uri).await;
        let store = Mongo::open(&uri, Options::default()).await.unwrap();
        Self { uri, database, store }
    }

    fn claims(&self) -> Collection<Document> {
        self.database.collection("identities")
    }

    async fn put(&self, collection: &str, document: Document) {
        let collection = self.database.collection::<Document>(collection);
        let id = document.get("_id").cloned();
        collection.delete_one(doc! { "_id": id }).await.unwrap();
        collection.insert_one(document).bypass_document_validation(true).await.unwrap();
    }
}

fn id(id: LocalityId) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() })
}

#[async_trait::async_trait]
impl Breakable for Broken {
    fn name(&self) -> String {
        self.uri.clone()
    }

    async fn create(&self, users: Range<usize>) {
        damage::create(&self.store, users).await;
    }

    async fn delete_claim(&self, key: &str) {
        assert_eq!(self.claims().delete_one(doc! { "_id": key }).await.unwrap().deleted_count, 1);
    }

    async fn put_claim(&self, key: &str, owner: Option<LocalityId>, held: Option<Timestamp>) {
        let mut claim = doc! { "_id": key, "v": 1 };
        claim.extend(owner.map(|owner| ("u".to_owned(), id(owner))));
        claim.extend(
            held.map(|until| ("h".to_owned(), DateTime::from_millis(until.as_millis()).into())),
        );
        self.put("identities", claim).await;
    }

    async fn put_user(&self, under: LocalityId, user: &User) {
        let wire = EncodedUser::from_user(user).into_bytes().to_vec();
        let wire = Binary { subtype: BinarySubtype::Generic, bytes: wire };
        let collection = self.database.collection::<Document>("users");
        let stored = collection.find_one(doc! { "_id": id(under) }).await.unwrap().unwrap();
        let elements = stored.get_array("a").unwrap();
        let user = doc! { "_id": id(under), "r": 0_i64, "t": "default", "w": wire, "a": elements };
        self.put("users", user).await;
    }

    async fn put_record(&self, record: &Record) {
        let (user, private) = record.encode();
        let bytes = |bytes| Binary { subtype: BinarySubtype::Generic, bytes };
        let (wire, private) = (bytes(user.into_bytes().to_vec()), bytes(private));
        let tenant = record.user.tenant.as_str();
        let user =
            doc! { "_id": id(record.id()), "r": 0_i64, "t": tenant, "w": wire, "x": private };
        self.put("users", user).await;
    }

    async fn put_garbage_claim(&self, key: &str) {
        self.put("identities", doc! { "_id": key, "u": "somebody", "v": 1 }).await;
    }

    async fn put_garbage_user(&self, under: LocalityId) {
        self.put("users", doc! { "_id": id(under), "name": "somebody" }).await;
    }

    async fn assert_there(&self, users: &[usize]) {
        damage::assert_there(&self.store, users).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repairable_findings_are_repaired() {
    let cluster = servers::three_shards().await;
    damage::repairable(&Broken::new(cluster.uri("verify_repaired")).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_to_users_who_do_not_name_the_user_back_are_removed() {
    let cluster = servers::three_shards().await;
    damage::links(&Broken::new(cluster.uri("verify_links")).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_findings_are_reported_and_left() {
    let cluster = servers::three_shards().await;
    damage::unrepairable(&Broken::new(cluster.uri("verify_left")).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_claims_are_restored() {
    let set = servers::one_member().await;
    let broken = Broken::new(set.uri("verify_lost", "")).await;
    broken.create(0..700).await;
    broken.claims().delete_many(doc! {}).await.unwrap();
    let output = store(&["verify", "--repair"], &broken.uri);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output)
            .ends_with("700 users and 1400 claims read: 1400 findings, 1400 repaired, 0 left\n")
    );
    assert!(stdout(&store(&["verify"], &broken.uri)).contains("no inconsistency"));
    broken.assert_there(&[0, 1, 350, 699]).await;
}

/// Words of another name, a document without elements, and one without the times of its events.
#[tokio::test(flavor = "multi_thread")]
async fn elements_of_searches_are_restored() {
    let set = servers::one_member().await;
    let broken = Broken::new(set.uri("verify_elements", "")).await;
    broken.create(0..4).await;
    let collection = broken.database.collection::<Document>("users");
    let word = doc! { "_id": id(users::id(1)), "a.v": "user" };
    let renamed = collection.update_one(word, doc! { "$set": { "a.$.v": "other" } }).await.unwrap();
    let removed =
        collection.update_one(doc! { "_id": id(users::id(2)) }, doc! { "$unset": { "a": 1 } });
    assert_eq!((renamed.modified_count, removed.await.unwrap().modified_count), (1, 1));
    let untimed = doc! { "$unset": { "s": 1 } };
    collection.update_one(doc! { "_id": id(users::id(3)) }, untimed).await.unwrap();
    for arguments in [&["verify", "--json"][..], &["verify", "--repair", "--json"]] {
        let lines = json(&store(arguments, &broken.uri));
        let found: Vec<_> = lines.iter().filter(|line| line["finding"] == "unindexed").collect();
        let named: Vec<_> = found.iter().filter_map(|line| line["user"].as_str()).collect();
        assert_eq!(named, [1, 2, 3].map(|n| users::id(n).to_string()), "{lines:?}");
    }
    let output = store(&["verify"], &broken.uri);
    assert!(stdout(&output).contains("no inconsistency"), "{}", stdout(&output));
}

/// Documents whose ids are neither UUIDs nor keys.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_documents_are_reported_and_left() {
    let set = servers::one_member().await;
    let broken = Broken::new(set.uri("verify_foreign", "")).await;
    broken.create(0..3).await;
    for name in ["users", "identities"] {
        broken.put(name, doc! { "_id": 7 }).await;
        broken.put(name, doc! { "_id": "joe@example.com" }).await;
    }
    let output = store(&["verify", "--repair", "--json"], &broken.uri);
    let lines = json(&output);
    assert_eq!((output.status.code(), lines.len()), (Some(1), 5), "{}", stdout(&output));
    assert!(!stdout(&output).contains("joe"), "{}", stdout(&output));
    let shown = stdout(&store(&["verify", "--show-keys"], &broken.uri));
    assert!(shown.contains("joe@example.com"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_lists_present_and_missing_parts() {
    let cluster = servers::three_shards().await;
    let uri = cluster.uri("status");
    let output = store(&["status", "--json"], &uri);
    assert_eq!(output.status.code(), Some(1));
    let empty = json(&output).pop().unwrap();
    let missing = empty["missing"].as_array().unwrap();
    assert_eq!(missing.len(), 9, "{empty}");
    let verify = store(&["verify"], &uri);
    assert_eq!(verify.status.code(), Some(1));
    assert!(stderr(&verify).contains("polynym store init"), "{}", stderr(&verify));

    let output = store(&["init"], &uri);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output)
            .contains("identities: there are now chunks on shard0 2, shard1 2, shard2 2"),
        "{}",
        stdout(&output)
    );
    let broken = Broken::new(uri.clone()).await;
    broken.create(0..60).await;
    let output = store(&["status", "--json"], &uri);
    assert!(output.status.success());
    let status = json(&output).pop().unwrap();
    assert_eq!(
        (&status["topology"], &status["schema_version"]),
        (&"sharded cluster".into(), &16.into()),
        "{status}"
    );
    assert_eq!(status["missing"], serde_json::json!([]));
    let counts = status["collections"].as_array().unwrap().iter().map(|collection| {
        let shards = collection["shards"].as_array().unwrap();
        let sum =
            |name: &str| shards.iter().map(|shard| shard[name].as_u64().unwrap()).sum::<u64>();
        let name = collection["name"].as_str().unwrap();
        assert_eq!(
            shards.len(),
            if matches!(name, "tenants" | "names" | "bulk" | "servers") { 1 } else { 3 },
            "{collection}"
        );
        // The heartbeat of the store that this test has open varies.
        let documents = if name == "servers" { 0 } else { sum("documents") };
        (name.to_owned(), sum("chunks"), documents)
    });
    let expected = [
        ("users", 12, 60),
        ("identities", 6, 120),
        ("requests", 12, 0),
        ("tenants", 1, 0),
        ("names", 1, 0),
        ("journal", 12, 0),
        ("ended", 6, 0),
        ("usage", 12, 0),
        ("notices", 12, 0),
        ("bulk", 1, 0),
        ("servers", 1, 0),
    ];
    assert_eq!(
        counts.collect::<Vec<_>>(),
        expected.map(|(name, chunks, count)| (name.to_owned(), chunks, count))
    );
    let keys = status["collections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|collection| collection["shard_key"].as_str());
    let (ordered, hashed) = (Some("{ \"_id\": 1 }"), Some("{ \"_id\": \"hashed\" }"));
    assert_eq!(
        keys.collect::<Vec<_>>(),
        [[ordered, hashed].as_slice(), &[ordered; 4], &[hashed], &[ordered; 4]].concat()
    );
    assert_eq!(status["advice"], serde_json::json!([]));
    let table = stdout(&store(&["status"], &uri));
    assert!(table.contains("shard2") && table.contains("_id_"), "{table}");

    broken.database.run_command(doc! { "collMod": "users", "validator": {} }).await.unwrap();
    broken.database.run_command(doc! { "dropIndexes": "requests", "index": "t_1" }).await.unwrap();
    let table = stdout(&store(&["status"], &uri));
    println!("{table}");
    assert!(
        table.contains("the validator of users") && table.contains("an index of requests"),
        "{table}"
    );
    assert!(table.contains("polynym store init"), "{table}");

    // A person may have written any type of number.
    broken.put("meta", doc! { "_id": "schema", "v": 99_i32 }).await;
    let output = store(&["status"], &uri);
    let table = stdout(&output);
    assert!(
        table.contains("schema version 99 and rules version 1: this program supports schema"),
        "{table}"
    );
    assert!(output.status.code() == Some(1) && !table.contains("polynym store init"), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_of_a_replica_set_names_it() {
    let set = servers::one_member().await;
    let broken = Broken::new(set.uri("status_set", "")).await;
    broken.create(0..5).await;
    let status = json(&store(&["status", "--json"], &broken.uri)).pop().unwrap();
    assert_eq!(status["topology"], "replica set rs0");
    assert_eq!(status["collections"][1]["shards"][0]["documents"], 10, "{status}");
    assert!(status["collections"][1]["shards"][0]["chunks"].is_null());
    assert!(!status["server_versions"][0].as_str().unwrap().is_empty());
}

#[test]
fn an_unreachable_server_is_reported_without_the_password() {
    let uri = "mongodb://joe:secret@127.0.0.1:9/db?serverSelectionTimeoutMS=200";
    for command in ["init", "status", "verify"] {
        let output = store(&[command], uri);
        assert_eq!(output.status.code(), Some(1));
        let text = stderr(&output);
        assert!(
            text.contains("mongodb://127.0.0.1:9/db: ") && text.contains("cannot reach"),
            "{text}"
        );
        assert!(
            !text.contains("secret") && !text.contains("joe") && text.lines().count() == 1,
            "{text}"
        );
    }
}
