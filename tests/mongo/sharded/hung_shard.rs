//! One shard of three hangs: a look-up of many names or ids is answered without those that are on
//! it, and look-ups that share a call with them too.

use std::time::{Duration, Instant};

use locality_uuid::{LocalityId, split_points};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, doc};
use polynym_directory::{
    Consistency, IdempotencyKey, ItemError, ItemResult, LookUps, Mutation, Mutations, NewUser,
    Tenant, UserChange, View,
};
use polynym_identifier::{Identifier, IdentityKey, RawIdentifier};
use polynym_mongodb::{Mongo, Options, status};
use polynym_proto::v1;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

use crate::calls::{Client, handle};
use crate::server::Server;
use crate::servers::{Hashed, Layout, Sharded, Signal, make};
use crate::support::users;

const STORE: &str = "hung";
/// The shard that hangs. The first one has the collections that are not sharded.
const HUNG: usize = 2;
/// Users who do not need the shard, and users who do.
const BESIDE: usize = 60;
const THROUGH: usize = 60;
/// The time in which a batch with two names of the shard is answered.
const IN_TIME: Duration = Duration::from_secs(1);
/// Other work on the machine may spoil some rounds.
const ROUNDS: usize = 8;
/// The time of a call: enough on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
const UNAVAILABLE: i32 = tonic::Code::Unavailable as i32;

/// A user and a name.
#[derive(Clone)]
struct Named {
    id: LocalityId,
    name: String,
}

impl Named {
    fn identifier(&self) -> Identifier {
        Identifier::parse(RawIdentifier::Handle(&self.name)).unwrap()
    }

    fn key(&self) -> IdentityKey {
        IdentityKey::new("default", &self.identifier())
    }

    fn creation(&self) -> Mutation {
        let identities = vec![users::identity(self.identifier())];
        let new = NewUser { identities, ..NewUser::default() };
        let request = Some(IdempotencyKey { key: self.name.clone(), request_hash: 1 });
        Mutation { request, ..users::mutation(self.id, UserChange::Create(new)) }
    }
}

/// A cluster with users.
struct Stage {
    cluster: Sharded,
    /// Those who do not need the shard that hangs.
    beside: Vec<Named>,
    /// One whose claim is on the shard, and those who are on it themselves.
    through: Vec<Named>,
}

impl Stage {
    async fn new() -> Self {
        let cluster = Sharded::start(3, Layout { cache: 0.25, ..Layout::default() }).await;
        let home = &cluster.shards[0].name;
        let database = doc! { "enableSharding": STORE, "primaryShard": home };
        cluster.admin(database).await.unwrap();
        make(cluster.uri(STORE)).await;
        let points = split_points(3);
        let ids: Vec<_> = points.iter().map(|id| uuid(id.as_bytes())).collect();
        for collection in ["users", "requests"] {
            cluster.spread(&format!("{STORE}.{collection}"), &ids).await;
        }
        let claims = Hashed::read(&cluster, &format!("{STORE}.identities")).await;
        let hung = &cluster.shards[HUNG].name;
        let (mut beside, mut through) = (Vec::new(), Vec::new());
        for n in 0.. {
            let needs_claim = claims.owner(named(n, 0).key().as_str()) == hung;
            match (needs_claim, through.is_empty()) {
                (true, true) => through.push(named(n, 1)),
                (false, _) if beside.len() < BESIDE => beside.push(named(n, n % 2)),
                (false, false) if through.len() < THROUGH => through.push(named(n, HUNG)),
                (false, false) => break,
                _ => {}
            }
        }
        let store = Mongo::open(&cluster.uri(STORE), Options::default()).await.unwrap();
        let all: Vec<_> = beside.iter().chain(&through).map(Named::creation).collect();
        for mutations in all.chunks(30) {
            for created in store.mutate_all(mutations.to_vec()).await {
                created.unwrap();
            }
        }
        store.close().await;
        Self { cluster, beside, through }
    }

    async fn signal(&self, signal: Signal) {
        self.cluster.shards[HUNG].members[0].signal(signal).await;
    }

    /// All users beside, with two who need the shard among them: one by its claim, one by itself.
    fn mixed(&self) -> Vec<Named> {
        let mut mixed = self.beside.clone();
        mixed.insert(BESIDE / 2, self.through[1].clone());
        mixed.insert(5, self.through[0].clone());
        mixed
    }

    fn needs_shard(&self, named: &Named) -> bool {
        self.through.iter().any(|other| other.name == named.name)
    }
}

/// User `n`, on a shard of the users.
fn named(n: usize, shard: usize) -> Named {
    let first = ["10", "70", "c0"][shard];
    let id = format!("{first}{n:06x}-0001-b000-0001-000000000000").parse().unwrap();
    Named { id, name: format!("name{n}") }
}

fn uuid(bytes: &[u8]) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: bytes.to_vec() })
}

/// Calls until a call answers in time. Panics if it never does.
async fn in_time(what: &str, mut call: impl AsyncFnMut()) {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let since = Instant::now();
        call().await;
        times.push(since.elapsed());
        if since.elapsed() < IN_TIME {
            break;
        }
    }
    println!("{what}: {times:.0?}");
    assert!(times.iter().any(|took| *took < IN_TIME), "{what}: {times:?}");
}

/// Batches by names, in which only those that need the shard fail.
async fn batch_resolve(stage: &Stage, client: &Client) {
    let mixed = stage.mixed();
    let request = v1::BatchResolveIdentitiesRequest {
        identifiers: mixed.iter().map(|named| handle(&named.name)).collect(),
        ..Default::default()
    };
    let mut directory = client.directory.clone();
    let response = directory.batch_resolve_identities(request).await.unwrap().into_inner();
    assert_eq!(response.results.len(), mixed.len());
    for (named, result) in mixed.iter().zip(response.results) {
        use v1::batch_resolve_identities_response::result::Outcome;
        match result.outcome.unwrap() {
            Outcome::Found(found) => {
                assert!(!stage.needs_shard(named), "{}", named.name);
                assert_eq!(found.user.unwrap().user_id, named.id.to_string());
            }
            Outcome::Error(error) => {
                assert!(stage.needs_shard(named), "{}: {error:?}", named.name);
                assert_eq!(error.code, UNAVAILABLE, "{error:?}");
            }
        }
    }
}

/// Batches by ids, in which only those that are on the shard fail.
async fn batch_get(stage: &Stage, client: &Client) {
    let mixed = stage.mixed();
    let user_ids = mixed.iter().map(|named| named.id.to_string()).collect();
    let request = v1::BatchGetUsersRequest { user_ids, ..Default::default() };
    let mut directory = client.directory.clone();
    let response = directory.batch_get_users(request).await.unwrap().into_inner();
    assert_eq!(response.results.len(), mixed.len());
    for (named, result) in mixed.iter().zip(response.results) {
        use v1::batch_get_users_response::result::Outcome;
        // The first of those that need the shard does so by its claim only.
        let is_away = named.name == stage.through[1].name;
        match result.outcome.unwrap() {
            Outcome::Found(found) => {
                assert!(!is_away, "{}", named.name);
                assert_eq!(found.user.unwrap().user_id, named.id.to_string());
            }
            Outcome::Error(error) => {
                assert!(is_away && error.code == UNAVAILABLE, "{}: {error:?}", named.name);
            }
        }
    }
}

/// Finds a user who does not need the shard by a name. The next page has what the shard has.
async fn find(stage: &Stage, client: &Client) {
    let named = &stage.beside[0];
    let request = v1::FindUsersRequest { text: named.name.clone(), ..Default::default() };
    let page = client.directory.clone().find_users(request).await.unwrap().into_inner();
    let found: Vec<_> = page.matches.into_iter().map(|found| found.user.unwrap().user_id).collect();
    assert_eq!(found, [named.id.to_string()]);
    assert!(!page.next_page_token.is_empty());
}

/// Callers of one name each, who share calls. Returns when those who do not need the shard have
/// their answers; the others have theirs in the end.
async fn resolve_each(stage: &Stage, client: &Client, others: &mut JoinSet<()>) {
    let mut callers = JoinSet::new();
    for named in stage.mixed() {
        let mut directory = client.directory.clone();
        let identifier = Some(handle(&named.name));
        let request = v1::ResolveIdentityRequest { identifier, ..Default::default() };
        if stage.needs_shard(&named) {
            others.spawn(async move {
                let refused = directory.resolve_identity(request).await.unwrap_err();
                assert_eq!(refused.code(), tonic::Code::Unavailable, "{refused:?}");
            });
        } else {
            callers.spawn(async move {
                let found = directory.resolve_identity(request).await.unwrap().into_inner();
                assert_eq!(found.user.unwrap().user_id, named.id.to_string());
            });
        }
    }
    callers.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_on_a_shard_that_hangs_are_unavailable() {
    let stage = Stage::new().await;
    let uri = stage.cluster.uri(STORE);
    let mut servers = Vec::new();
    for coalesce in ["on", "off"] {
        let uri = uri.clone();
        let start = move || {
            let arguments = ["--store", &uri, "--coalesce", coalesce, "--call-timeout", "60s"];
            Server::start(&arguments)
        };
        servers.push(spawn_blocking(start).await.unwrap());
    }
    let [together, alone] = &servers[..] else { panic!() };
    let (together, alone) =
        (Client::connect(&together.url).await, Client::connect(&alone.url).await);
    // By then the servers know how long finds take.
    for client in [&together, &alone] {
        for named in &stage.beside {
            client.clone().resolve(handle(&named.name)).await.unwrap();
        }
    }

    let options = Options { timeout: TIMEOUT, ..Options::default() };
    let store = Mongo::open(&uri, options).await.unwrap();
    stage.signal(Signal::Stop).await;
    for (mode, client) in [("shared", &together), ("alone", &alone)] {
        in_time(&format!("BatchResolve, {mode}"), async || batch_resolve(&stage, client).await)
            .await;
        in_time(&format!("BatchGet, {mode}"), async || batch_get(&stage, client).await).await;
    }
    let began = Instant::now();
    find(&stage, &alone).await;
    assert!(began.elapsed() < TIMEOUT / 3, "FindUsers: {:.0?}", began.elapsed());
    let mut others = JoinSet::new();
    in_time("ResolveIdentity", async || resolve_each(&stage, &together, &mut others).await).await;
    others.join_all().await;
    half_hung(&stage, &store).await;
    is_known(&stage, &store).await;
    let seen = status(&uri).await.unwrap();
    assert_eq!(seen.silent_shards, [stage.cluster.shards[HUNG].name.clone()]);
    assert!(!seen.is_whole() && seen.collections.iter().any(|users| users.shards.len() == 3));
    stage.signal(Signal::Continue).await;
    is_back(&stage, &store).await;
    store.close().await;
}

/// Half of the users of a batch need the shard.
async fn half_hung(stage: &Stage, store: &Mongo) {
    let all: Vec<_> = stage.beside.iter().chain(&stage.through).cloned().collect();
    let keys: Vec<_> = all.iter().map(Named::key).collect();
    for consistency in [Consistency::Latest, Consistency::Eventual, Consistency::Linearizable] {
        let since = Instant::now();
        let found = store.resolve(&keys, consistency, View::Full, Duration::ZERO).await;
        println!("half of them hang, {consistency:?}: {:.0?}", since.elapsed());
        check(stage, &all, found.unwrap().found);
    }
    let ids: Vec<_> = all.iter().map(|named| named.id).collect();
    let found = store.get(&Tenant::DEFAULT, &ids[..BESIDE], View::Full).await.unwrap();
    assert!(found.iter().all(|user| matches!(user, Ok(Some(_)))));
}

/// Once ids are known to be away, batches with them are answered in the usual time.
async fn is_known(stage: &Stage, store: &Mongo) {
    let keys: Vec<_> = stage.mixed().iter().map(Named::key).collect();
    let mut times = Vec::new();
    for _ in 0..50 * ROUNDS {
        let since = Instant::now();
        let found = store.resolve(&keys, Consistency::Latest, View::Full, Duration::ZERO).await;
        times.push(since.elapsed());
        check(stage, &stage.mixed(), found.unwrap().found);
    }
    times.sort_unstable();
    let median = times[times.len() / 2];
    println!("known to be away: {median:.1?}, at most {:.0?}", times[times.len() - 1]);
    // A find is late after 50 ms at least.
    assert!(median < Duration::from_millis(50), "{times:?}");
}

/// All names are found soon after the shard has come back.
async fn is_back(stage: &Stage, store: &Mongo) {
    let all: Vec<_> = stage.beside.iter().chain(&stage.through).map(Named::key).collect();
    let end = Instant::now() + TIMEOUT;
    loop {
        let found = store.resolve(&all, Consistency::Latest, View::Full, Duration::ZERO).await;
        if found.unwrap().found.iter().all(|owner| matches!(owner, Ok(Some(_)))) {
            return;
        }
        assert!(Instant::now() < end, "some names are still away");
        sleep(Duration::from_millis(20)).await;
    }
}

fn check<T>(stage: &Stage, all: &[Named], found: Vec<ItemResult<T>>) {
    assert_eq!(found.len(), all.len());
    for (named, found) in all.iter().zip(found) {
        match found {
            Ok(owner) => assert!(owner.is_some() && !stage.needs_shard(named), "{}", named.name),
            Err(error) => {
                assert!(matches!(error, ItemError::Unavailable(_)), "{error:?}");
                assert!(stage.needs_shard(named), "{}: {error:?}", named.name);
            }
        }
    }
}
