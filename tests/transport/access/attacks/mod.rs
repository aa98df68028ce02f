//! A healthy caller beside one that takes more than its share: the table of docs/security.md. The
//! healthy caller sends look-ups and changes at a fixed rate, whatever the answers take.

mod kinds;

use std::fs;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use polynym_proto::v1;
use tokio::task::JoinSet;

use super::shares::Connection;
use super::{Callers, connect};
use crate::calls::{Client, handle, user};
use crate::server::Server;

/// The time of each measurement, and the number of measurements of each attack.
const TIME: Duration = Duration::from_secs(5);
const ROUNDS: usize = 2;
/// The calls of the healthy caller in a second.
const LOOK_UPS: u32 = 200;
const CHANGES: u32 = 20;
/// A call that takes longer is not counted as good.
const GOOD: Duration = Duration::from_secs(1);
const USERS: i64 = 10_000;

/// A server, and what its callers need.
struct Scene {
    server: Server,
    greedy: [String; 2],
    healthy: String,
    user_id: String,
    folder: std::path::PathBuf,
    is_over: AtomicBool,
}

type Attack = fn(Arc<Scene>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

const ATTACKS: [(&str, Attack); 9] = [
    ("12: 1,032 health watches without a credential", |scene| {
        Box::pin(kinds::health_watches(scene))
    }),
    ("13: 24 connections that read no answers", |scene| Box::pin(kinds::unread(scene))),
    ("14: 16 loops of notices to 1,000 users", |scene| Box::pin(kinds::notices(scene))),
    ("15: 8 loops of copies that are cancelled", |scene| Box::pin(kinds::backups(scene))),
    ("16: 992 idle watches of an empty tenant", |scene| Box::pin(kinds::watches(scene))),
    ("17: idle imports and unread searches", |scene| Box::pin(kinds::idle(scene))),
    ("18: an export that is not read", |scene| Box::pin(kinds::export(scene))),
    ("19: two imports of small lines", |scene| Box::pin(kinds::imports(scene))),
    ("20: 16 loops of searches that read all users", |scene| Box::pin(kinds::searches(scene))),
];

/// The calls of the healthy caller in one measurement.
#[derive(Debug, Default)]
struct Calls {
    /// The times of answers, from the time at which the call was due.
    look_ups: Vec<Duration>,
    changes: Vec<Duration>,
    failed: usize,
    offered: usize,
}

impl Calls {
    fn goodput(&self) -> f64 {
        let all = self.look_ups.iter().chain(&self.changes);
        all.filter(|time| **time < GOOD).count() as f64 / self.offered as f64
    }
}

fn p99(times: &[Duration]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() * 99 / 100).map_or(f64::NAN, |time| time.as_secs_f64() * 1_000.0)
}

#[test]
#[ignore = "takes six minutes, and measures an idle machine"]
fn long_callers_beside_attacks() {
    let only = std::env::var("POLYNYM_ATTACK").unwrap_or_default();
    println!(
        "| attack | look-ups p99, ms | ratio | changes p99, ms | ratio | good | memory, file |"
    );
    let (runtime, callers) = (tokio::runtime::Runtime::new().unwrap(), Callers::new());
    let scene = Arc::new(runtime.block_on(Scene::new(&callers)));
    for (name, attack) in ATTACKS.into_iter().filter(|(name, _)| name.starts_with(&only)) {
        for _ in 0..ROUNDS {
            beside(&scene, name, attack);
            // Whatever the attack has left in flight ends.
            std::thread::sleep(Duration::from_secs(2));
        }
    }
}

/// Measures the healthy caller alone, with a processor that is busy, and then beside an attack.
fn beside(scene: &Arc<Scene>, name: &str, attack: Attack) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    scene.is_over.store(false, Ordering::Relaxed);
    let busy = Arc::new(AtomicBool::new(true));
    let is_busy = busy.clone();
    let thread = std::thread::spawn(move || while is_busy.load(Ordering::Relaxed) {});
    let alone = measure(scene);
    busy.store(false, Ordering::Relaxed);
    thread.join().unwrap();

    let (memory, file) = scene.sizes();
    let running = runtime.spawn(attack(scene.clone()));
    std::thread::sleep(Duration::from_secs(1));
    let beside = measure(scene);
    let (more_memory, more_file) = scene.sizes();
    scene.is_over.store(true, Ordering::Relaxed);
    running.abort();
    runtime.shutdown_background();

    let [look_ups, changes] = [
        [p99(&alone.look_ups), p99(&beside.look_ups)],
        [p99(&alone.changes), p99(&beside.changes)],
    ];
    println!(
        "| {name} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} ({} failed) | {:+} MiB, {:+} MiB |",
        look_ups[1],
        look_ups[1] / look_ups[0],
        changes[1],
        changes[1] / changes[0],
        beside.goodput() / alone.goodput(),
        beside.failed,
        (more_memory as i64 - memory as i64) >> 20,
        (more_file as i64 - file as i64) >> 20,
    );
}

/// Makes the calls of the healthy caller, from a thread of its own.
fn measure(scene: &Arc<Scene>) -> Calls {
    let scene = scene.clone();
    let calling = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let connection = Connection::new(&scene.server, Some(&scene.healthy)).await;
            let (look_ups, changes) = tokio::join!(
                at_rate(LOOK_UPS, |_| look_up(&connection)),
                at_rate(CHANGES, |n| { change(&connection, &scene.user_id, n) })
            );
            let failed = look_ups.1 + changes.1;
            let offered = look_ups.0.len() + changes.0.len() + failed;
            Calls { look_ups: look_ups.0, changes: changes.0, failed, offered }
        })
    });
    calling.join().unwrap()
}

/// Makes calls at a rate for a while. Returns the times of those that succeeded, and the number of
/// those that failed.
async fn at_rate<F: Future<Output = bool>>(
    rate: u32,
    call: impl Fn(u32) -> F,
) -> (Vec<Duration>, usize) {
    let (begin, period) = (tokio::time::Instant::now(), Duration::from_secs(1) / rate);
    let calls = (0..TIME.as_secs() as u32 * rate).map(|n| {
        let answer = call(n);
        async move {
            let due = begin + period * n;
            tokio::time::sleep_until(due).await;
            let is_ok = answer.await;
            is_ok.then(|| due.elapsed())
        }
    });
    let outcomes = join_all(calls).await;
    let failed = outcomes.iter().filter(|time| time.is_none()).count();
    (outcomes.into_iter().flatten().collect(), failed)
}

async fn look_up(connection: &Connection) -> bool {
    let request = v1::ResolveIdentityRequest {
        tenant: "default".to_owned(),
        identifier: Some(handle("u1")),
        ..Default::default()
    };
    let mut directory = connection.client.directory.clone();
    directory.resolve_identity(connection.request(request)).await.is_ok()
}

async fn change(connection: &Connection, user_id: &str, n: u32) -> bool {
    let changed = v1::User { user_id: user_id.to_owned(), ..user(&format!("Joe {n}"), Vec::new()) };
    let request = v1::UpdateUserRequest {
        tenant: "default".to_owned(),
        user: Some(changed),
        update_mask: Some(prost_types::FieldMask { paths: vec!["display_name".to_owned()] }),
        ..Default::default()
    };
    let mut registry = connection.client.registry.clone();
    registry.update_user(connection.request(request)).await.is_ok()
}

impl Scene {
    async fn new(callers: &Callers) -> Self {
        let greedy = ["one", "two"].map(|name| callers.create(name, "admin", "*"));
        let healthy = callers.create("healthy", "registrar", "*");
        let folder = callers.path().with_file_name("store");
        let (path, store) = (callers.path(), format!("embedded:{}", folder.display()));
        let arguments = ["--credentials", path.to_str().unwrap(), "--store", &store];
        let server = Server::start_logged(&arguments, &callers.log());
        let connection = Connection::new(&server, Some(&greedy[0])).await;
        kinds::import(&connection, 1..USERS + 1).await;
        let request = v1::CreateUserRequest {
            tenant: "default".to_owned(),
            user: Some(user("Joe", vec![handle("joe")])),
            ..Default::default()
        };
        let mut registry = connection.client.registry.clone();
        let created = registry.create_user(connection.request(request)).await.unwrap();
        let user_id = created.into_inner().user.unwrap().user_id;
        // A tenant in which nothing happens.
        let empty = v1::UpdateTenantRequest {
            tenant: "empty".to_owned(),
            policies: Some(v1::Policies { verified_wins: true, ..Default::default() }),
            ..Default::default()
        };
        let mut admin = connection.client.admin.clone();
        admin.update_tenant(connection.request(empty)).await.unwrap();
        Self { server, greedy, healthy, user_id, folder, is_over: AtomicBool::new(false) }
    }

    async fn connection(&self, greedy: usize) -> Connection {
        Connection::new(&self.server, Some(&self.greedy[greedy])).await
    }

    /// Bytes of memory, and of the folder of the store with files that have no name.
    fn sizes(&self) -> (usize, u64) {
        let descriptors = format!("/proc/{}/fd", self.server.id());
        let is_of_store = |path: &Path| path.starts_with(&self.folder);
        let files = fs::read_dir(descriptors).unwrap().filter_map(|file| {
            let path = file.unwrap().path();
            fs::read_link(&path).ok().filter(|target| is_of_store(target))?;
            Some(fs::metadata(path).ok()?.len())
        });
        // A file is open several times.
        let mut sizes: Vec<_> = files.collect();
        sizes.sort_unstable();
        sizes.dedup();
        (self.server.memory(), sizes.iter().sum())
    }

    /// The processor time of the server.
    fn processor_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.server.id())).unwrap();
        let fields = stat.rsplit(") ").next().unwrap().split(' ').skip(11).take(2);
        // In hundredths of a second.
        Duration::from_millis(fields.map(|ticks| ticks.parse::<u64>().unwrap() * 10).sum())
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// The changes of one caller in a second, without and beside idle watches of another tenant.
#[test]
#[ignore = "takes half a minute, and measures an idle machine"]
fn long_changes_beside_idle_watches() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let callers = Callers::new();
    let scene = Arc::new(runtime.block_on(Scene::new(&callers)));
    let alone = runtime.block_on(changes_a_second(scene.clone()));
    let running = runtime.spawn(kinds::watches(scene.clone()));
    std::thread::sleep(Duration::from_secs(3));
    let beside = runtime.block_on(changes_a_second(scene.clone()));
    running.abort();
    runtime.shutdown_background();
    println!("changes a second, and ms of the server for each: {alone:.2?}");
    println!("beside 992 watches of an empty tenant: {beside:.2?}");
}

/// Changes a second, and the milliseconds of processor time that the server takes for each.
async fn changes_a_second(scene: Arc<Scene>) -> [f64; 2] {
    let before = scene.processor_time();
    let channel = Client::over(connect(&scene.server).await);
    let token = Some(scene.healthy.clone());
    let connection = Arc::new(Connection { client: channel, token });
    let (since, mut running) = (Instant::now(), JoinSet::new());
    for _ in 0..64 {
        let (scene, connection) = (scene.clone(), connection.clone());
        running.spawn(async move {
            let mut count = 0;
            while since.elapsed() < TIME {
                count += u32::from(change(&connection, &scene.user_id, count).await);
            }
            count
        });
    }
    let count: u32 = running.join_all().await.into_iter().sum();
    let used = scene.processor_time() - before;
    [f64::from(count) / TIME.as_secs_f64(), used.as_secs_f64() * 1_000.0 / f64::from(count)]
}
