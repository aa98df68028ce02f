//! `polynym watch` from outside.

mod relay;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use relay::Relay;

use crate::server::{Server, polynym, signal};

/// A watch and its output.
struct Watch {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Watch {
    fn start(server: &str, arguments: &[&str]) -> Self {
        let mut command = polynym(&["watch"]);
        command.args(arguments).env("POLYNYM_SERVER", server).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Kills it. Returns the lines that it has printed by then.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        // The last one may be cut off.
        rest.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(str::to_owned).collect()
    }

    /// Ends it as Ctrl-C does.
    fn interrupt(mut self) {
        signal(self.child.id(), "INT");
        assert_eq!(self.child.wait().unwrap().code(), Some(130));
    }
}

fn create(server: &Server, handle: &str) {
    let identity = format!("handle:{handle}");
    assert!(server.run(&["user", "create", "--identity", &identity]).status.success());
}

fn event(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The file has a token once the watch has begun.
fn wait_for(file: &std::path::Path) {
    let since = Instant::now();
    while !file.exists() {
        assert!(since.elapsed().as_secs() < 60, "there is no token");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_watch_shows_every_event() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = Server::start(&["--store", &store]);
    let file = folder.path().join("token");
    let arguments = ["--json", "--resume-file", file.to_str().unwrap()];
    // The first user makes the tenant.
    create(&server, "ann");

    let mut watch = Watch::start(&server.url, &arguments);
    wait_for(&file);
    create(&server, "joe");
    let joe = event(&watch.line());
    assert_eq!((&joe["sequence"], &joe["method"]), (&"1".into(), &"CreateUser".into()), "{joe}");
    watch.interrupt();

    // Events without a watcher are shown later.
    create(&server, "eve");
    let mut watch = Watch::start(&server.url, &arguments);
    let eve = event(&watch.line());
    assert_ne!(eve["userId"], joe["userId"]);
    assert!(eve.to_string().contains("eve"), "{eve}");
    watch.interrupt();
}

#[test]
fn a_watch_goes_on_beside_a_frozen_connection() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = Server::start(&["--store", &store]);
    create(&server, "ann");
    let relay = Relay::start(server.url.strip_prefix("http://").unwrap());
    let file = folder.path().join("token");
    let arguments = ["--json", "--resume-file", file.to_str().unwrap()];
    let mut watch = Watch::start(&format!("http://{}", relay.address), &arguments);
    wait_for(&file);
    create(&server, "joe");
    assert!(watch.line().contains("joe"));

    relay.freeze();
    let since = Instant::now();
    create(&server, "eve");
    create(&server, "kim");
    let (eve, kim) = (watch.line(), watch.line());
    assert!(eve.contains("eve") && kim.contains("kim"), "{eve}{kim}");
    // By its ping, after 15 s. The sockets themselves are silent for a quarter of an hour.
    assert!(since.elapsed() < Duration::from_secs(60), "after {:?}", since.elapsed());
    watch.interrupt();
}

#[test]
fn a_repeatedly_killed_watch_shows_each_event() {
    const USERS: usize = 60;
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = Server::start(&["--store", &store]);
    let file = folder.path().join("token");
    let arguments = ["--json", "--resume-file", file.to_str().unwrap()];
    create(&server, "first");
    let watch = Watch::start(&server.url, &arguments);
    wait_for(&file);
    watch.kill();

    let mut seen = BTreeSet::new();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..USERS).for_each(|n| create(&server, &format!("user{n}"))));
        for new in (1..6).cycle() {
            let mut watch = Watch::start(&server.url, &arguments);
            // A watch that is killed before it has stored its token begins with the same events.
            let enough = USERS.min(seen.len() + new);
            while seen.len() < enough {
                seen.insert(event(&watch.line())["userId"].to_string());
            }
            seen.extend(watch.kill().iter().map(|line| event(line)["userId"].to_string()));
            if seen.len() == USERS {
                return;
            }
        }
    });
}
