//! The cost of a call, counted by the profilers of all shards: its statements by collection and
//! shard, and the shards that prepared the commit. The table in docs/mongodb.md must be equal.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use conformance::StoreFactory;
use futures_util::TryStreamExt;
use locality_uuid::{Generator, LocalityId, Mode};
use mongodb::bson::{Document, doc};
use polynym_directory::{
    AccessPath, ConflictPolicy, Consistency, Delivery, Directory, Filter, Histories, Hold,
    IdempotencyKey, InboxChange, InboxLimits, Inboxes, Limits, LookUps, Mutation, MutationKind,
    Mutations, NewIdentity, NewUser, Notice, NoticeContent, Policies, PolicyUpdate, Reads, Search,
    Tenant, TenantChange, Tenants, Timestamp, Update, UserChange, Value, Verification, View,
};
use polynym_identifier::{Identifier, IdentityKey, Kind, RULES_VERSION, RawIdentifier, Rules};
use polynym_mongodb::Mongo;

use super::shards::is_clean_up;
use crate::servers::{Databases, Hashed, InDatabase, Layout, Process, Sharded};
use crate::support::users;

/// A user id on the shard with this number.
fn id(shard: usize, n: usize) -> LocalityId {
    let first = ["10", "70", "c0"][shard];
    format!("{first}{n:06x}-0001-b000-0001-000000000000").parse().unwrap()
}

/// The hashed distribution of the identity keys.
static HASHES: OnceLock<Hashed> = OnceLock::new();

/// Whether a claim is on the shard with this number.
fn is_on(key: &IdentityKey, shard: usize) -> bool {
    HASHES.get().unwrap().owner(key.as_str()) == format!("shard{shard}")
}

/// The nth identifier with its claim on this shard.
fn identifier(shard: usize, n: usize) -> Identifier {
    first(
        |k| {
            let (email, subject) = (format!("user{n}.{k}@example.com"), format!("{n}{k}"));
            let raw = match shard {
                0 => RawIdentifier::Email(&email),
                1 => return handle(&format!("user{n}_{k}")),
                _ => RawIdentifier::Social { provider: "github", subject: &subject },
            };
            Identifier::parse(raw).unwrap()
        },
        |identifier| is_on(&IdentityKey::new("default", identifier), shard),
    )
}

/// The first matching identifier.
fn first(make: impl Fn(usize) -> Identifier, is_right: impl Fn(&Identifier) -> bool) -> Identifier {
    (0..).map(make).find(is_right).unwrap()
}

fn handle(text: &str) -> Identifier {
    Identifier::parse(RawIdentifier::Handle(text)).unwrap()
}

/// A handle with this prefix on this shard, with its guard on the same shard or another.
fn guarded(start: &str, shard: usize, beside: bool) -> Identifier {
    let guard =
        |handle: &Identifier| IdentityKey::of_guard("default", &handle.guard().expect("a guard"));
    first(
        |k| handle(&format!("{start}{k}")),
        |handle| {
            is_on(&IdentityKey::new("default", handle), shard)
                && is_on(&guard(handle), shard) == beside
        },
    )
}

fn key(shard: usize, n: usize) -> IdentityKey {
    IdentityKey::new("default", &identifier(shard, n))
}

/// A mutation without holds.
fn mutation(id: LocalityId, change: UserChange) -> Mutation {
    Mutation { now: Timestamp::now().into(), ..users::mutation(id, change) }
}

/// The mutation with other policies.
fn with_policies(policies: Policies, mutation: Mutation) -> Mutation {
    Mutation { policies: Arc::new(policies), ..mutation }
}

/// The mutation that creates a user with these identities.
fn creation_of(id: LocalityId, identities: Vec<NewIdentity>) -> Mutation {
    mutation(id, UserChange::Create(NewUser { identities, ..NewUser::default() }))
}

/// The mutation that creates user `n` on a shard, with an identity on each of `claims`.
fn creation(shard: usize, n: usize, claims: &[usize]) -> Mutation {
    creation_of(
        id(shard, n),
        claims.iter().map(|claim| users::identity(identifier(*claim, n))).collect(),
    )
}

/// The statements of a call.
struct Cost {
    statements: Vec<Statement>,
    /// The number of shards that prepared before the commit.
    prepared: usize,
}

/// A statement on a shard, such as `find` on `users`.
struct Statement {
    shard: usize,
    name: String,
    collection: String,
}

/// The cluster and the database of the counted calls.
struct Counted {
    cluster: &'static Sharded,
    factory: InDatabase,
    store: Mongo,
    /// The rows of the table so far.
    rows: Vec<String>,
}

impl Counted {
    async fn new() -> Self {
        // It counts all operations of the servers: no other test may use them.
        let cluster: &Sharded = Box::leak(Box::new(Sharded::start(3, Layout::default()).await));
        let factory = Databases::of_cluster(cluster).factory();
        let store = factory.mongo().await.unwrap();
        let hashes = Hashed::read(cluster, &format!("{}.identities", factory.name().await)).await;
        assert!(HASHES.set(hashes).is_ok(), "one database is counted in");
        Self { cluster, factory, store, rows: Vec::new() }
    }

    /// Runs a mutation without counting it.
    async fn prepare(&self, mutation: Mutation) {
        self.store.mutate(mutation).await.unwrap();
    }

    async fn resolve(&mut self, call: &str, keys: &[IdentityKey]) {
        let lookup = async {
            let resolved = self
                .store
                .resolve(keys, Consistency::Latest, View::Full, Duration::ZERO)
                .await
                .unwrap();
            assert_eq!(resolved.found.iter().flatten().flatten().count(), keys.len());
        };
        let cost = self.cost(lookup).await;
        self.add(call, &cost, "");
    }

    async fn mutate(&mut self, call: &str, mutation: Mutation) {
        let cost = self.cost(async { drop(self.store.mutate(mutation).await.unwrap()) }).await;
        self.add(call, &cost, "by one shard");
    }

    async fn refuse(&mut self, call: &str, mutation: Mutation) {
        let cost = self.cost(async { drop(self.store.mutate(mutation).await.unwrap_err()) }).await;
        self.add(call, &cost, "of reads alone");
    }

    /// Counts a mutation that changes nothing.
    async fn change_nothing(&mut self, call: &str, mutation: Mutation) {
        let cost = self.cost(async { drop(self.store.mutate(mutation).await.unwrap()) }).await;
        self.add(call, &cost, "of reads alone");
    }

    async fn dry_run(&mut self, call: &str, mutation: Mutation) {
        self.change_nothing(call, Mutation { dry_run: true, ..mutation }).await;
    }

    /// Adds a row. `alone` is a commit that needs no preparation.
    fn add(&mut self, call: &str, cost: &Cost, alone: &str) {
        let commit = match cost.prepared {
            0 => alone.to_owned(),
            n => format!("in two phases: {} prepare", ["", "one", "both", "all three"][n]),
        };
        let [claims, users, tenants, ended, journal, inbox] =
            ["identities", "users", "tenants", "ended", "journal", "notices"]
                .map(|name| cost.on(name));
        let is_in_table =
            |statement: &Statement| !matches!(&*statement.collection, "requests" | "meta");
        assert!(cost.statements.iter().all(is_in_table), "{call}");
        let row = format!(
            "| {call} | {claims} | {users} | {tenants} | {ended} | {journal} | {inbox} | {commit} |"
        );
        self.rows.push(row.replace("|  |", "| |").replace("|  |", "| |"));
    }

    /// The statements of all shards for a call.
    async fn cost(&self, work: impl Future<Output = ()>) -> Cost {
        self.profile(2).await;
        let before = self.prepared().await;
        work.await;
        let prepared = self
            .prepared()
            .await
            .into_iter()
            .zip(before)
            .filter(|(after, before)| after > before)
            .count();
        self.profile(0).await;
        let mut statements = Vec::new();
        for (n, shard) in self.cluster.shards.iter().enumerate() {
            statements.extend(self.done(n, &shard.members[0]).await);
        }
        Cost { statements, prepared }
    }

    async fn profile(&self, level: i32) {
        for shard in &self.cluster.shards {
            let database = shard.members[0].database(self.factory.name().await).await;
            database.run_command(doc! { "profile": level }).await.unwrap();
        }
    }

    /// The statements in the profile of a shard, which this empties.
    async fn done(&self, n: usize, shard: &Process) -> Vec<Statement> {
        let profile = shard
            .database(self.factory.name().await)
            .await
            .collection::<Document>("system.profile");
        let cursor = profile.find(doc! {}).sort(doc! { "$natural": 1 }).await.unwrap();
        let done: Vec<Document> = cursor.try_collect().await.unwrap();
        profile.drop().await.unwrap();
        done.iter().filter_map(|done| statement(n, done)).collect()
    }

    /// The transactions that each shard has prepared so far.
    async fn prepared(&self) -> Vec<i64> {
        let mut prepared = Vec::new();
        for shard in &self.cluster.shards {
            let status = shard.members[0].admin(doc! { "serverStatus": 1 }).await.unwrap();
            prepared.push(
                status.get_document("transactions").unwrap().get_i64("totalPrepared").unwrap(),
            );
        }
        prepared
    }
}

impl Cost {
    /// The statements on a collection in the form of the table: `1 find, 2 updates on each of two`.
    fn on(&self, collection: &str) -> String {
        let of = |name: &str| {
            let mut counts = BTreeMap::new();
            let statements = self
                .statements
                .iter()
                .filter(|other| (&*other.collection, &*other.name) == (collection, name));
            statements.for_each(|statement| *counts.entry(statement.shard).or_insert(0) += 1);
            let (total, shards) = (counts.values().sum::<usize>(), counts.len());
            let text =
                |count: usize| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
            let even = counts.values().all(|count| count * shards == total);
            match shards {
                0 => None,
                1 => Some(text(total)),
                n if even => {
                    Some(format!("{} on each of {}", text(total / n), ["", "", "two", "three"][n]))
                }
                n => Some(format!("{} on {}", text(total), ["", "", "two", "three"][n])),
            }
        };
        ["find", "insert", "insert of 2", "insert of 3", "update", "delete"]
            .into_iter()
            .filter_map(of)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// A statement of a profile, unless it is of the test itself or of a heartbeat. An insert has the
/// number of its documents.
fn statement(shard: usize, done: &Document) -> Option<Statement> {
    let (_, collection) = done.get_str("ns").unwrap().split_once('.').unwrap();
    let operation = match done.get_str("op").unwrap() {
        "query" => "find",
        "remove" => "delete",
        "command" if done.get_document("command").unwrap().contains_key("profile") => return None,
        other => other,
    };
    let name = match done.get_i32("ninserted") {
        Ok(2..) => format!("{operation} of {}", done.get_i32("ninserted").unwrap()),
        _ => operation.to_owned(),
    };
    // The heartbeat belongs to no call.
    let is_of_none =
        matches!((collection, &*name), ("system.profile" | "servers", _) | ("meta", "find"))
            || collection == "notices" && done.get_document("command").is_ok_and(is_clean_up);
    (!is_of_none).then_some(Statement { shard, name, collection: collection.to_owned() })
}

/// The table of the document.
fn table() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/mongodb.md");
    let text = std::fs::read_to_string(path).unwrap();
    let part =
        text.split("\n## What a call costs\n").nth(1).unwrap().split("\n## ").next().unwrap();
    part.lines().filter(|line| line.starts_with('|')).skip(2).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_reaches_only_the_shards_of_its_keys() {
    let mut counted = Counted::new().await;
    for n in 0..100 {
        counted.prepare(creation(n % 3, n, &[0, 1, 2])).await;
    }
    // Routing tables are loaded on first use.
    let everything: Vec<_> = (0..100).flat_map(|n| [key(0, n), key(1, n), key(2, n)]).collect();
    counted
        .store
        .resolve(&everything, Consistency::Latest, View::Full, Duration::ZERO)
        .await
        .unwrap();
    // The router in the first shard, which sorts over several shards, learns where users are.
    counted.store.expired_users(Timestamp::now(), None, 100).await.unwrap();
    counted.prepare(users::tenant_mutation(TenantChange::Set(PolicyUpdate::default()))).await;
    look_up_shards(&counted).await;
    request_costs(&counted).await;
    look_ups(&mut counted).await;
    creations(&mut counted).await;
    links(&mut counted).await;
    fields_and_states(&mut counted).await;
    merges(&mut counted).await;
    ends(&mut counted).await;
    tenants(&mut counted).await;
    renormalizing(&mut counted).await;
    searches(&mut counted).await;
    inboxes(&mut counted).await;
    let rows = counted.rows.join("\n");
    assert_eq!(counted.rows, table(), "the counted rows:\n{rows}");
}

/// Look-ups go to the shards of their keys.
async fn look_up_shards(counted: &Counted) {
    for (n, claim, user) in [(0, 2, 0), (1, 2, 1), (2, 1, 2), (3, 0, 0)] {
        let lookup = async {
            let resolved = counted
                .store
                .resolve(&[key(claim, n)], Consistency::Latest, View::Full, Duration::ZERO)
                .await
                .unwrap();
            assert_eq!(resolved.reads, 2);
        };
        let cost = counted.cost(lookup).await.statements;
        let mut went: Vec<_> =
            cost.iter().map(|done| (&*done.name, &*done.collection, done.shard)).collect();
        went.sort_unstable();
        assert_eq!(went, [("find", "identities", claim), ("find", "users", user)]);

        // The server has an owner hint now.
        let linearizable = Consistency::Linearizable;
        let hinted_lookup = async {
            let resolved = counted
                .store
                .resolve(&[key(claim, n)], linearizable, View::Full, Duration::ZERO)
                .await
                .unwrap();
            assert_eq!(resolved.reads, 1);
        };
        let hinted = counted.cost(hinted_lookup).await.statements;
        let went: Vec<_> =
            hinted.iter().map(|done| (&*done.name, &*done.collection, done.shard)).collect();
        assert_eq!(went, [("find", "users", user)]);
    }
}

/// A request adds a find before and an update after, on the shard of its hash.
async fn request_costs(counted: &Counted) {
    let request = Some(IdempotencyKey { key: "request".to_owned(), request_hash: 1 });
    let named = Mutation { request, ..creation(0, 203, &[0]) };
    let cost = counted.cost(async { drop(counted.store.mutate(named).await.unwrap()) }).await;
    assert_eq!(cost.on("requests"), "1 find, 1 update");
    assert_eq!(
        (cost.on("users"), cost.on("identities")),
        ("1 insert".to_owned(), "1 insert".to_owned())
    );
}

async fn look_ups(counted: &mut Counted) {
    counted.resolve("resolve one identifier", &[key(2, 0)]).await;
    let lookup = async {
        let resolved = counted
            .store
            .resolve(&[key(1, 1_000)], Consistency::Latest, View::Full, Duration::ZERO)
            .await
            .unwrap();
        assert_eq!((users::all(resolved.found), resolved.reads), (vec![None], 1));
    };
    let cost = counted.cost(lookup).await;
    counted.add("resolve one that nobody owns", &cost, "");
    let emails: Vec<_> = (0..100).map(|n| key(0, n)).collect();
    let hinted_lookup = async {
        counted
            .store
            .resolve(&[key(2, 0)], Consistency::Linearizable, View::Full, Duration::ZERO)
            .await
            .unwrap();
    };
    let hinted = counted.cost(hinted_lookup).await;
    counted.add("resolve one whose owner is remembered, LINEARIZABLE", &hinted, "");
    counted.resolve("resolve 100, claims on one shard, users on three", &emails).await;
    let mixed: Vec<_> = (0..100).map(|n| key(n / 3 % 3, n)).collect();
    counted.resolve("resolve 100, claims and users on three shards", &mixed).await;
    for (call, count) in [("get one user", 1), ("get 100 users on three shards", 100)] {
        let ids: Vec<_> = (0..count).map(|n| id(n % 3, n)).collect();
        let get = async {
            let found = counted.store.get(&Tenant::DEFAULT, &ids, View::Full).await.unwrap();
            assert_eq!(found.into_iter().flatten().flatten().count(), count);
        };
        let cost = counted.cost(get).await;
        counted.add(call, &cost, "");
    }
    let plain = first(|k| handle(&format!("free{k}")), |_| true);
    let other = guarded("ëxo", 1, false);
    for (call, handle) in [("check an identifier", plain), ("check a handle with a guard", other)] {
        let guard = handle.guard().map(|guard| IdentityKey::of_guard("default", &guard));
        let keys: Vec<_> =
            [IdentityKey::new("default", &handle)].into_iter().chain(guard).collect();
        let cost = counted.cost(async { drop(counted.store.claims(&keys).await.unwrap()) }).await;
        counted.add(call, &cost, "");
    }
}

async fn creations(counted: &mut Counted) {
    counted.mutate("create with one identity, both on one shard", creation(0, 200, &[0])).await;
    counted.mutate("create with one identity, on two shards", creation(1, 201, &[0])).await;
    counted
        .mutate("create with three identities, on three shards", creation(0, 202, &[0, 1, 2]))
        .await;
    let with = |n, handle| creation_of(id(1, n), vec![users::identity(handle)]);
    counted
        .mutate("create with an ASCII handle, both on one shard", with(210, identifier(1, 210)))
        .await;
    let [beside, elsewhere] = [guarded("ѕсоре", 1, true), guarded("ëxo", 1, false)];
    counted
        .mutate(
            "create with another handle (as `ѕсоре`), its guard on the same shard",
            with(211, beside),
        )
        .await;
    counted
        .mutate(
            "create with another handle (as `ëxo`), its guard on another shard",
            with(212, elsewhere),
        )
        .await;
    let verified = |n, claim: usize| NewIdentity {
        verification: Some(Verification { time: Timestamp::now(), by: String::new() }),
        ..users::identity(identifier(claim, n))
    };
    let wins = Policies { verified_wins: true, ..Policies::default() };
    let create = with_policies(wins, creation_of(id(1, 213), vec![verified(201, 0)]));
    counted
        .mutate(
            "create with a verified identity that another user loses, all on two shards",
            create,
        )
        .await;
}

async fn links(counted: &mut Counted) {
    let link = |shard, n, claim| {
        mutation(id(shard, n), UserChange::Link(users::identity(identifier(claim, n))))
    };
    let unlink = |shard, n, claim| mutation(id(shard, n), UserChange::Unlink(identifier(claim, n)));
    let holding = |mutation| with_policies(Policies::default(), mutation);
    counted.prepare(creation(1, 220, &[])).await;
    counted.mutate("link, both on one shard", link(1, 220, 1)).await;
    counted.mutate("link, on two shards", link(1, 220, 2)).await;
    counted.mutate("unlink without a hold, on two shards", unlink(1, 220, 2)).await;
    counted.mutate("unlink with a hold, both on one shard", holding(unlink(1, 220, 1))).await;
    let other = mutation(id(1, 210), UserChange::Link(users::identity(identifier(1, 220))));
    counted.refuse("link what is taken or held: refused", other).await;
    counted
        .mutate("link what is held for the user itself, both on one shard", link(1, 220, 1))
        .await;
    let replace = |old, new| {
        mutation(
            id(1, 220),
            UserChange::Replace(identifier(1, old), users::identity(identifier(1, new))),
        )
    };
    counted.mutate("replace without a hold, all on one shard", replace(220, 221)).await;
    counted.mutate("replace with a hold, all on one shard", holding(replace(221, 222))).await;
    let hold = Hold {
        key: key(0, 223),
        until: Timestamp::now().plus(Duration::from_secs(1_000_000)),
        guard: false,
        rules_version: RULES_VERSION,
    };
    counted
        .mutate("import a hold of nobody", users::mutation_of(MutationKind::ImportHold(hold)))
        .await;
    let release = users::mutation_of(MutationKind::ReleaseHold(identifier(0, 223)));
    counted.mutate("release a hold of nobody", release).await;
    counted
        .mutate(
            "release a hold, both on one shard",
            users::mutation_of(MutationKind::ReleaseHold(identifier(1, 221))),
        )
        .await;
    let verification = Some(Verification { time: Timestamp::now(), by: String::new() });
    counted
        .mutate(
            "verify",
            mutation(id(1, 220), UserChange::Verify(identifier(1, 222), verification)),
        )
        .await;
}

async fn fields_and_states(counted: &mut Counted) {
    let update = Update::from_mask(None, "User".to_owned(), BTreeMap::new()).unwrap();
    for (call, change) in [
        ("update", UserChange::Update(update)),
        ("disable", UserChange::Disable),
        ("enable", UserChange::Enable),
        ("delete", UserChange::Delete),
        ("undelete", UserChange::Undelete),
    ] {
        counted.mutate(call, mutation(id(2, 2), change)).await;
    }
    counted
        .change_nothing("enable a user who is enabled", mutation(id(2, 2), UserChange::Enable))
        .await;
    counted
        .refuse(
            "enable a user who is not there: refused",
            mutation(id(2, 9_999), UserChange::Enable),
        )
        .await;
}

/// Users on two shards, the claims of the secondary on three.
async fn merges(counted: &mut Counted) {
    counted.prepare(creation(0, 230, &[0, 1, 2])).await;
    counted.prepare(creation(1, 231, &[0, 1, 2])).await;
    let merge = mutation(id(0, 230), UserChange::Merge(id(1, 231), ConflictPolicy::PrimaryWins));
    counted.dry_run("preview of the merge below", merge.clone()).await;
    counted
        .mutate("merge of users on two shards, the secondary with three identities on three", merge)
        .await;
    let unmerge = mutation(id(0, 230), UserChange::Unmerge(id(1, 231)));
    let directory = Directory::new(
        counted.factory.open().await.unwrap(),
        Generator::new(Mode::Variable),
        Limits::default(),
    );
    let secondary = id(1, 231).to_string();
    // The policies of the tenant are loaded on first use.
    directory.get(&users::context(Tenant::DEFAULT, "Get"), &secondary, View::Full).await.unwrap();
    let get = async {
        let got = directory
            .get(&users::context(Tenant::DEFAULT, "Get"), &secondary, View::Full)
            .await
            .unwrap();
        assert_eq!(got.merged_from, Some(id(1, 231)));
    };
    let cost = counted.cost(get).await;
    counted.add("get the secondary, which leads to the primary", &cost, "of reads alone");
    counted.mutate("unmerge of the same", unmerge).await;
}

async fn ends(counted: &mut Counted) {
    let purge = |shard, n| mutation(id(shard, n), UserChange::Purge);
    counted
        .mutate(
            "purge of a user with three identities on three shards, without holds",
            purge(0, 230),
        )
        .await;
    let holds =
        [Kind::Email, Kind::Handle, Kind::Social].map(|kind| (kind, Duration::from_secs(3_600)));
    let holding = Policies { holds: BTreeMap::from(holds), ..Policies::default() };
    counted.mutate("the same with holds", with_policies(holding, purge(1, 231))).await;
    let cost = counted
        .cost(async {
            drop(counted.store.expired_users(Timestamp::now(), None, 100).await.unwrap())
        })
        .await;
    counted.add("look for users whose time is over, one server once a second", &cost, "");
}

async fn tenants(counted: &mut Counted) {
    let cost = counted
        .cost(async { assert!(counted.store.tenant(&Tenant::DEFAULT).await.unwrap().is_some()) })
        .await;
    counted.add("get a tenant", &cost, "");
    let cost = counted
        .cost(async { assert!(!counted.store.tenants("", "", 100).await.unwrap().is_empty()) })
        .await;
    counted.add("list tenants", &cost, "");
    let update = PolicyUpdate { hide_unverified: Some(true), ..PolicyUpdate::default() };
    let set = users::tenant_mutation(TenantChange::Set(update));
    let cost = counted.cost(async { drop(counted.store.mutate(set).await.unwrap()) }).await;
    // The shards of the tenant and its history vary.
    assert!([0, 2].contains(&cost.prepared));
    let cost = Cost { prepared: 0, ..cost };
    counted.add("set policies of a tenant", &cost, "by one shard, or in two phases");
}

/// Searches ask all shards.
async fn searches(counted: &mut Counted) {
    for n in 300..330 {
        let attributes = [("level".to_owned(), Value::Int(n as i64 % 10))].into();
        let new = NewUser { attributes, ..NewUser::default() };
        counted.prepare(mutation(id(n % 3, n), UserChange::Create(new))).await;
    }
    for (call, filter, count) in [
        ("search by an equality, a page of 3", "attributes.level = 3", 3),
        ("search by a range, a page of 12", "attributes.level < 4", 12),
        ("list users, a page of 20", "", 20),
    ] {
        let path = Filter::parse(filter, &[Rules::PRESENT])
            .unwrap()
            .access_paths()
            .pop()
            .unwrap_or(AccessPath::All);
        let search = counted.store.search(&Tenant::DEFAULT, &path, None, count, View::Full);
        let cost =
            counted.cost(async { assert_eq!(search.await.unwrap().users.len(), count) }).await;
        counted.add(call, &cost, "");
    }
    let path =
        Filter::parse("attributes.level = 3", &[Rules::PRESENT]).unwrap().access_paths().remove(0);
    let probe = counted.store.probe(&Tenant::DEFAULT, &path, 101);
    let cost = counted.cost(async { assert_eq!(probe.await.unwrap(), 3) }).await;
    counted.add("count what a condition of a search has in the index", &cost, "");
    let words: Vec<_> = (0..400).map(|n| format!("word{n}")).collect();
    let known = counted.store.known_words(&Tenant::DEFAULT, &words);
    let cost = counted.cost(async { assert!(known.await.unwrap().is_empty()) }).await;
    counted.add("look for 400 words in names", &cost, "");
}

/// Notices to users on the three shards.
async fn inboxes(counted: &mut Counted) {
    let one = [id(0, 0)];
    let nine: Vec<_> = (0..9).map(|n| id(n % 3, n)).collect();
    deliver(counted, "deliver a notice to a user", &one).await;
    counted.store.deliver(notice(&nine)).await.unwrap();
    deliver(counted, "deliver to nine users on three shards", &nine).await;
    for _ in 3..50 {
        counted.store.deliver(notice(&one)).await.unwrap();
    }
    let list = async {
        assert_eq!(counted.store.inbox(one[0], None, 50, true).await.unwrap().len(), 50);
    };
    let cost = counted.cost(list).await;
    counted.add("list the 50 latest notices", &cost, "");
    let change = InboxChange::ReadUpTo(Timestamp::now());
    let cost =
        counted.cost(async { counted.store.change_inbox(one[0], change).await.unwrap() }).await;
    counted.add("mark 50 notices as read", &cost, "");
}

async fn deliver(counted: &mut Counted, call: &str, users: &[LocalityId]) {
    let delivery = async {
        let delivered = counted.store.deliver(notice(users)).await.unwrap();
        assert!(delivered.into_iter().all(|is_there| is_there));
    };
    let cost = counted.cost(delivery).await;
    counted.add(call, &cost, "");
}

/// A new notice to users.
fn notice(users: &[LocalityId]) -> Arc<Delivery> {
    let content = NoticeContent {
        sender: "web".to_owned(),
        subject: String::new(),
        body: "Hello".to_owned(),
        attributes: BTreeMap::new(),
    };
    let (id, send_time) = (Generator::new(Mode::Variable).next_id(), Timestamp::now());
    let notice = Notice { id, send_time, expire_time: None, content };
    let limits = InboxLimits::from_policies(&Policies::default());
    Arc::new(Delivery { notice, users: users.to_vec(), limits, clock_uncertain: false })
}

async fn renormalizing(counted: &mut Counted) {
    let scan = async {
        assert_eq!(counted.store.scan(&Tenant::DEFAULT, None, 100).await.unwrap().users.len(), 100);
    };
    let cost = counted.cost(scan).await;
    counted.add("read 100 users to renormalize", &cost, "");
    let is_on_one = |old: &Identifier| {
        let new = Identifier::parse(RawIdentifier::Email(old.canonical())).unwrap();
        [old, &new].into_iter().all(|identifier| is_on(&IdentityKey::new("default", identifier), 0))
    };
    for (n, start, call) in [
        (240, "OLD", "renormalize an identity whose form changes, both on one shard"),
        (241, "old", "renormalize one whose form stays, both on one shard"),
    ] {
        let typed = |k| Identifier::from_canonical(Kind::Email, format!("{start}{k}@example.org"));
        let old = first(typed, is_on_one);
        let display = old.canonical().to_owned();
        let draft = NewIdentity::new(old.clone(), display);
        let user = id(0, n);
        counted.prepare(creation_of(user, vec![draft])).await;
        let rules = Rules::new(RULES_VERSION + 1, Identifier::parse, Identifier::normalize);
        counted
            .mutate(call, Mutation { rules, ..mutation(user, UserChange::Renormalize(old)) })
            .await;
    }
}
