//! A server on a full disk, simulated by a limit on file sizes, which needs no root privileges.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use polynym_proto::v1::{self, attribute_value::Kind};
use tempfile::{NamedTempFile, TempDir};
use tokio::task::JoinSet;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::support::calls::{Client, handle, identity};
use crate::support::server::Server;

/// The largest file size, in blocks of 512 bytes.
const BLOCKS: u32 = 4_096;
const CALLERS: u64 = 8;
/// The numbers of health checks, reads and refused creates while the disk is full.
const CHECKS: u64 = 100;
const READS: u64 = 200;
const REFUSALS: u64 = 1_000;
/// The time limit for each wait.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A server that writes no file larger than [`BLOCKS`].
struct Limited {
    server: Server,
    log: NamedTempFile,
    _folder: TempDir,
}

impl Limited {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = NamedTempFile::new().unwrap();
        let store = format!("embedded:{}", folder.path().join("store").display());
        let script = format!("trap '' XFSZ; ulimit -S -f {BLOCKS}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_polynym")]).env_clear();
        let arguments =
            ["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--store", &store];
        let server = Server::start_with(command.stderr(log.reopen().unwrap()), &arguments);
        Self { server, log, _folder: folder }
    }

    fn make_room(&self) {
        let pid = self.server.id().to_string();
        assert!(
            Command::new("prlimit")
                .args(["--pid", &pid, "--fsize=unlimited"])
                .status()
                .unwrap()
                .success()
        );
    }

    /// The lines of the log but those of mutations that were made.
    fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.log.path()).unwrap();
        text.lines().filter(|line| !line.contains("\"done\"")).map(str::to_owned).collect()
    }

    async fn health(&self) -> HealthClient<Channel> {
        HealthClient::new(
            Channel::from_shared(self.server.url.clone()).unwrap().connect().await.unwrap(),
        )
    }
}

async fn is_serving(health: &mut HealthClient<Channel>) -> bool {
    let answer = health.check(HealthCheckRequest::default()).await.unwrap().into_inner();
    answer.status() == ServingStatus::Serving
}

async fn until_serving(health: &mut HealthClient<Channel>, wanted: bool) {
    let start = Instant::now();
    while is_serving(health).await != wanted {
        assert!(start.elapsed() < TIMEOUT, "health does not become {wanted}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn person(n: u64) -> v1::User {
    let text = v1::AttributeValue { kind: Some(Kind::StringValue("x".repeat(4_000))) };
    let attributes = [("text".to_owned(), text)].into();
    let identities = vec![identity(handle(&format!("user{n}")))];
    v1::User { display_name: format!("User {n}"), identities, attributes, ..Default::default() }
}

/// The outcomes of the creates of one caller.
#[derive(Default)]
struct Outcomes {
    done: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    unknown: usize,
}

impl Outcomes {
    fn record(&mut self, n: u64, outcome: Result<v1::User, Status>) {
        match outcome {
            Ok(_) => drop(self.done.insert(n)),
            Err(status) => match status.get_details_error_info().unwrap().reason.as_str() {
                "STORE_UNAVAILABLE" => drop(self.refused.insert(n)),
                "OUTCOME_UNKNOWN" => self.unknown += 1,
                reason => panic!("{reason}"),
            },
        }
    }
}

/// Creates users until `stop` is set, and counts refusals.
async fn create(
    url: String,
    caller: u64,
    stop: Arc<AtomicBool>,
    refusals: Arc<AtomicU64>,
) -> Outcomes {
    let mut client = Client::connect(&url).await;
    let mut outcomes = Outcomes::default();
    for n in (caller..).step_by(CALLERS as usize) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        outcomes.record(n, client.create(person(n)).await);
        refusals.fetch_add(u64::from(outcomes.refused.contains(&n)), Ordering::Relaxed);
    }
    outcomes
}

/// Reads the first user until `stop` is set, and counts the reads.
async fn read(url: String, id: String, stop: Arc<AtomicBool>, reads: Arc<AtomicU64>) {
    let mut client = Client::connect(&url).await;
    while !stop.load(Ordering::Relaxed) {
        client.get(&id).await.unwrap();
        client.resolve(handle("first")).await.unwrap();
        reads.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_mutations_and_serves_reads() {
    let limited = Limited::start();
    let url = limited.server.url.clone();
    let (mut health, mut client) = (limited.health().await, Client::connect(&url).await);
    until_serving(&mut health, true).await;
    let draft = v1::User { identities: vec![identity(handle("first"))], ..Default::default() };
    let first = client.create(draft).await.unwrap();
    let (stop, reads, refusals) =
        (Arc::new(AtomicBool::new(false)), Arc::default(), Arc::default());
    let reader = tokio::spawn(read(url.clone(), first.user_id, stop.clone(), Arc::clone(&reads)));
    let mut callers = JoinSet::new();
    (0..CALLERS).for_each(|caller| {
        drop(callers.spawn(create(url.clone(), caller, stop.clone(), Arc::clone(&refusals))))
    });

    until_serving(&mut health, false).await;
    let (start, reads_before) = (Instant::now(), reads.load(Ordering::Relaxed));
    let is_done = |checks| {
        let (reads, refusals) =
            (reads.load(Ordering::Relaxed) - reads_before, refusals.load(Ordering::Relaxed));
        assert!(
            start.elapsed() < TIMEOUT,
            "the server makes no progress: {reads} reads, {refusals} refusals"
        );
        checks >= CHECKS && reads >= READS && refusals >= REFUSALS
    };
    let mut checks = 0;

    while !is_done(checks) {
        assert!(!is_serving(&mut health).await, "health reports SERVING on a full disk");
        checks += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    stop.store(true, Ordering::Relaxed);
    let outcomes = callers.join_all().await;
    reader.await.unwrap();
    let outage = start.elapsed();
    let log = limited.log();
    limited.make_room();
    until_serving(&mut health, true).await;

    let count = |of: fn(&Outcomes) -> usize| outcomes.iter().map(of).sum::<usize>();
    let (done, refused, unknown) =
        (count(|t| t.done.len()), count(|t| t.refused.len()), count(|t| t.unknown));
    println!("{done} done, {refused} refused, {unknown} unknown, {} lines", log.len());
    assert!(done > 20 && unknown == 0, "{done} done, {refused} refused, {unknown} unknown");

    // A few lines a second at most, however many calls were refused.
    let lines = 30 + 4 * outage.as_secs() as usize;
    assert!(
        log.len() < lines,
        "{} lines in the log, such as {:?}",
        log.len(),
        &log[..20.min(log.len())]
    );

    for caller in &outcomes {
        for n in &caller.done {
            client.resolve(handle(&format!("user{n}"))).await.unwrap();
        }
        for n in caller.refused.iter().take(50) {
            let found = client.resolve(handle(&format!("user{n}"))).await;
            assert_eq!(
                found.unwrap_err().code(),
                Code::NotFound,
                "user {n} was refused and exists"
            );
        }
    }

    client.create(person(u64::from(u32::MAX))).await.unwrap();
    let mut log = limited.log();
    // Lines of refused calls, and of counters that cannot be stored, name the same cause.
    log.retain(|line| !line.contains("suppressed") && !line.contains("usage"));
    for part in ["cannot be written", "accepts mutations again"] {
        assert_eq!(log.iter().filter(|line| line.contains(part)).count(), 1, "{log:?}");
    }
}
