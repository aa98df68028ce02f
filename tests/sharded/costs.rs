//! What a call costs, as the profilers of all shards count it: which statements, on which collection of which shard, and
//! which shards had to prepare before the commit.

use futures_util::TryStreamExt;
use mongodb::bson::{Document, doc};
use polynym::directory::{Change, Consistency, Draft, Mutation, Request, Store};
use polynym::identifier::{Identifier, IdentityKey, RawIdentifier};
use polynym::locality::LocalityId;
use polynym::store::mongo::Mongo;

use super::databases;
use super::servers::{self, InDatabase, Process, Sharded};
use super::support::users;

/// A user's id on the shard with this number.
fn id(shard: usize, n: usize) -> LocalityId {
    let first = ["10", "70", "c0"][shard];
    format!("{first}{n:06x}-0001-b000-0001-000000000000").parse().unwrap()
}

/// The identifier number `n` of those whose claims are on the shard with this number.
fn identifier(shard: usize, n: usize) -> Identifier {
    let (email, handle, subject) = (format!("user{n}@example.com"), format!("user{n}"), n.to_string());
    let social = RawIdentifier::Social { provider: "github", subject: &subject };
    let raw = [RawIdentifier::Email(&email), RawIdentifier::Handle(&handle), social][shard];
    Identifier::parse(raw).unwrap()
}

fn key(shard: usize, n: usize) -> IdentityKey {
    IdentityKey::new("default", &identifier(shard, n))
}

/// The mutation that creates user `n` on a shard, with an identity on each of `claims`.
fn creation(shard: usize, n: usize, claims: &[usize]) -> Mutation {
    let identities = claims.iter().map(|claim| users::identity(identifier(*claim, n))).collect();
    users::mutation(id(shard, n), Change::Create(Draft { identities, ..Draft::default() }))
}

/// The cluster, and the database whose calls are counted.
struct Counted {
    cluster: &'static Sharded,
    place: InDatabase,
    store: Mongo,
}

impl Counted {
    async fn new() -> Self {
        let (cluster, place) = (servers::three_shards().await, databases().await.place());
        let store = place.mongo().await.unwrap();
        Self { cluster, place, store }
    }

    /// What the shards do for a call: statements, such as `shard0: find users`, and commits that are prepared.
    async fn resolve(&self, call: &str, keys: &[IdentityKey]) -> Vec<String> {
        self.cost(call, async {
            let resolved = self.store.resolve(keys, Consistency::Latest).await.unwrap();
            assert_eq!(resolved.found.iter().flatten().count(), keys.len());
        })
        .await
    }

    /// The same for a mutation.
    async fn mutate(&self, call: &str, mutation: Mutation) -> Vec<String> {
        self.cost(call, async { drop(self.store.mutate(mutation).await.unwrap()) }).await
    }

    async fn cost(&self, call: &str, work: impl Future<Output = ()>) -> Vec<String> {
        self.profile(2).await;
        let before = self.prepared().await;
        work.await;
        let prepared = self.prepared().await.into_iter().zip(before).map(|(after, before)| after - before);
        self.profile(0).await;
        let mut cost = Vec::new();
        for (shard, prepared) in self.cluster.shards.iter().zip(prepared) {
            let done = self.done(&shard.members[0]).await;
            let prepared = (0..prepared).map(|_| "prepare".to_owned());
            cost.extend(done.into_iter().chain(prepared).map(|statement| format!("{}: {statement}", shard.name)));
        }
        println!("{call}: {}", cost.join(", "));
        cost
    }

    async fn profile(&self, level: i32) {
        for shard in &self.cluster.shards {
            let database = shard.members[0].database(self.place.name().await).await;
            database.run_command(doc! { "profile": level }).await.unwrap();
        }
    }

    /// The statements in the profile of a shard, which is emptied.
    async fn done(&self, shard: &Process) -> Vec<String> {
        let profile = shard.database(self.place.name().await).await.collection::<Document>("system.profile");
        let done = profile.find(doc! {}).sort(doc! { "$natural": 1 }).await.unwrap();
        let done: Vec<Document> = done.try_collect().await.unwrap();
        profile.drop().await.unwrap();
        done.iter().filter_map(statement).collect()
    }

    /// How many transactions each shard has prepared so far.
    async fn prepared(&self) -> Vec<i64> {
        let mut prepared = Vec::new();
        for shard in &self.cluster.shards {
            let status = shard.members[0].admin(doc! { "serverStatus": 1 }).await.unwrap();
            prepared.push(status.get_document("transactions").unwrap().get_i64("totalPrepared").unwrap());
        }
        prepared
    }
}

/// A statement of a profile, as `find users`; not what the test itself does.
fn statement(done: &Document) -> Option<String> {
    let (_, collection) = done.get_str("ns").unwrap().split_once('.').unwrap();
    let name = match done.get_str("op").unwrap() {
        "query" => "find",
        "remove" => "delete",
        "command" if done.get_document("command").unwrap().contains_key("profile") => return None,
        other => other,
    };
    (collection != "system.profile").then(|| format!("{name} {collection}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_to_the_shards_that_own_its_keys_and_to_no_other() {
    let _alone = super::ALONE.write().await;
    let counted = Counted::new().await;
    for n in 0..100 {
        counted.store.mutate(creation(n % 3, n, &[0, 1, 2])).await.unwrap();
    }
    // The tables of chunks are read when they are needed first.
    let everything: Vec<_> = (0..100).flat_map(|n| [key(0, n), key(1, n), key(2, n)]).collect();
    counted.store.resolve(&everything, Consistency::Latest).await.unwrap();
    look_ups(&counted).await;
    mutations(&counted).await;
}

async fn look_ups(counted: &Counted) {
    for (n, claim, user) in [(0, 2, 0), (1, 2, 1), (2, 1, 2), (3, 0, 0)] {
        let cost = counted.resolve("one identifier", &[key(claim, n)]).await;
        let mut wanted = [format!("shard{claim}: find identities"), format!("shard{user}: find users")];
        wanted.sort();
        assert_eq!(cost, wanted);
    }
    let nobody = [key(1, 1_000)];
    let free = counted.cost("one identifier that nobody owns", async {
        let resolved = counted.store.resolve(&nobody, Consistency::Latest).await.unwrap();
        assert_eq!((resolved.found, resolved.reads), (vec![None], 1));
    });
    assert_eq!(free.await, ["shard1: find identities"]);

    let emails_of_one_shard: Vec<_> = (0..100).step_by(3).map(|n| key(0, n)).collect();
    let cost = counted.resolve("a batch of 34, claims and users on one shard", &emails_of_one_shard).await;
    assert_eq!(cost, ["shard0: find identities", "shard0: find users"]);
    let emails: Vec<_> = (0..100).map(|n| key(0, n)).collect();
    let cost = counted.resolve("a batch of 100, claims on one shard, users on three", &emails).await;
    assert_eq!(cost, ["shard0: find identities", "shard0: find users", "shard1: find users", "shard2: find users"]);
    let mixed: Vec<_> = (0..100).map(|n| key(n / 3 % 3, n)).collect();
    let cost = counted.resolve("a batch of 100, claims and users on three shards", &mixed).await;
    let all =
        ["shard0", "shard1", "shard2"].map(|shard| ["identities", "users"].map(|to| format!("{shard}: find {to}")));
    assert_eq!(cost, all.concat());
}

async fn mutations(counted: &Counted) {
    let cost = counted.mutate("a create with one identity, both on one shard", creation(0, 200, &[0])).await;
    assert_eq!(cost, ["shard0: insert users", "shard0: insert identities"]);
    let request = Some(Request { key: "request".to_owned(), fingerprint: 1 });
    let named = Mutation { request, ..creation(0, 203, &[0]) };
    let cost = counted.mutate("the same with a request_id", named).await;
    let of_requests: Vec<_> = cost.iter().filter_map(|statement| statement.strip_suffix(" requests")).collect();
    let [find, update] = of_requests[..] else { panic!("{cost:?}") };
    assert!(find.ends_with(": find") && find.replace("find", "update") == update, "{cost:?}");

    let cost = counted.mutate("a create with one identity, on two shards", creation(1, 201, &[0])).await;
    let two = ["shard0: insert identities", "shard0: prepare", "shard1: insert users", "shard1: prepare"];
    assert_eq!(cost, two);
    let cost = counted.mutate("a create with three identities, on three shards", creation(0, 202, &[0, 1, 2])).await;
    let first = ["shard0: insert users", "shard0: insert identities", "shard0: prepare"];
    let others =
        ["shard1", "shard2"].map(|shard| ["insert identities", "prepare"].map(|what| format!("{shard}: {what}")));
    assert_eq!(cost, [first.map(str::to_owned).to_vec(), others.concat()].concat());

    let link = |shard, n, claim| users::mutation(id(shard, n), Change::Link(users::identity(identifier(claim, n))));
    let cost = counted.mutate("a link, both on one shard", link(1, 201, 1)).await;
    assert_eq!(cost, ["shard1: find users", "shard1: update users", "shard1: insert identities"]);
    let cost = counted.mutate("a link, on two shards", link(1, 201, 2)).await;
    let user = ["shard1: find users", "shard1: update users", "shard1: prepare"];
    assert_eq!(cost, [&user[..], &["shard2: insert identities", "shard2: prepare"]].concat());
    let unlink = users::mutation(id(1, 201), Change::Unlink(identifier(2, 201)));
    let cost = counted.mutate("an unlink, on two shards", unlink).await;
    assert_eq!(cost, [&user[..], &["shard2: delete identities", "shard2: prepare"]].concat());
}
