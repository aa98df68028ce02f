//! One server process with a folder and a port of its own. A shell process supervises it: when the
//! test process ends, by whatever cause, the pipe between them closes, and the shell kills the
//! server and removes the folder.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mongodb::bson::Document;
use mongodb::options::ClientOptions;
use mongodb::{Client, Database};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{binary, in_background};

/// Prints the path of the folder, then reads orders and prints each one once it is executed.
const WATCHDOG: &str = r#"
trap '' HUP INT TERM
folder=$(mktemp -d -t polynym-mongo-XXXXXX) && cd "$folder" || exit 1
echo "$folder"
while read -r order; do
  case $order in
    START) "$@" >log 2>&1 </dev/null & server=$! ;;
    KILL) kill -KILL "$server"; wait "$server" ;;
    *) kill "-$order" "$server" ;;
  esac
  echo "$order"
done
kill -KILL "$server"
wait "$server"
rm -rf "$folder"
"#;

/// Below the ephemeral ports, so that no outgoing connection takes the port of a server that is
/// down for a moment.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// The time limit for the start of a server.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Signals to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Kills the server; the folder stays, for [`Process::restart`].
    Kill,
    /// Freezes the server.
    Stop,
    /// Resumes the server.
    Continue,
}

/// A `mongod` or a `mongos`.
pub struct Process {
    watchdog: Arc<Mutex<Watchdog>>,
    port: u16,
    client: OnceCell<Client>,
}

struct Watchdog {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Process {
    /// Starts a server with `arguments` and waits until it accepts connections.
    pub async fn start(binary: &Path, arguments: &[String]) -> Self {
        let mut last_log = String::new();
        for _ in 0..5 {
            let port = free_port();
            let watchdog = Watchdog::new(binary, arguments, port);
            let process =
                Self { watchdog: Arc::new(Mutex::new(watchdog)), port, client: OnceCell::new() };
            match process.launch().await {
                Ok(()) => return process,
                Err(log) => last_log = log,
            }
        }

        panic!("{} does not start:\n{last_log}", binary.display());
    }

    /// Starts a `mongod` that belongs to no replica set.
    pub async fn start_alone() -> Self {
        Self::start_mongod(&[]).await
    }

    /// Starts a `mongod` with these options.
    pub async fn start_mongod(options: &[String]) -> Self {
        let binary = spawn_blocking(binary::mongod)
            .await
            .unwrap_or_else(|error| resume_unwind(error.into_panic()));
        let fixed = ["--dbpath", "."].map(str::to_owned);
        Self::start(binary, &[&fixed, options].concat()).await
    }

    /// Starts the server again after it was killed.
    pub async fn restart(&self) {
        self.launch().await.unwrap_or_else(|log| panic!("a server does not start again:\n{log}"));
    }

    /// Sends a signal. After a kill, the process has ended.
    pub async fn signal(&self, signal: Signal) {
        self.order(match signal {
            Signal::Kill => "KILL",
            Signal::Stop => "STOP",
            Signal::Continue => "CONT",
        })
        .await;
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Returns the folder of the server.
    pub fn folder(&self) -> PathBuf {
        self.watchdog.lock().unwrap().folder.clone()
    }

    /// Returns a client that connects to this server alone. It lives on the shared runtime.
    pub async fn client(&self) -> &Client {
        let uri = format!("mongodb://{}/?directConnection=true", self.address());
        self.client.get_or_init(|| in_background(async move { client(&uri).await })).await
    }

    /// Returns a database of this server alone.
    pub async fn database(&self, name: &str) -> Database {
        self.client().await.database(name)
    }

    /// Runs a command of the `admin` database.
    pub async fn admin(&self, command: Document) -> mongodb::error::Result<Document> {
        self.database("admin").await.run_command(command).await
    }

    async fn launch(&self) -> Result<(), String> {
        self.order("START").await;
        let log = self.folder().join("log");
        let since = Instant::now();

        loop {
            let text = fs::read_to_string(&log).unwrap_or_default();
            if text.contains("Waiting for connections") {
                return Ok(());
            }
            if text.contains("Now exiting") || since.elapsed() > START_TIMEOUT {
                let last: Vec<_> = text.lines().rev().take(20).collect();
                return Err(last.into_iter().rev().collect::<Vec<_>>().join("\n"));
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn order(&self, order: &'static str) {
        let watchdog = self.watchdog.clone();
        spawn_blocking(move || watchdog.lock().unwrap().order(order)).await.unwrap();
    }
}

impl Watchdog {
    fn new(binary: &Path, arguments: &[String], port: u16) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", WATCHDOG, "watchdog"])
            .arg(binary)
            .args(arguments)
            .args(["--bind_ip", "127.0.0.1", "--nounixsocket", "--port", &port.to_string()])
            // A proxy parses the messages between servers, so they are not compressed.
            .args(["--networkMessageCompressors", "disabled"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A process group of its own: signals of the terminal do not reach the shell, which has
            // to clean up.
            .process_group(0)
            .spawn()
            .expect("a shell");
        let orders = child.stdin.take();

        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut watchdog = Self { child, orders, answers, folder: PathBuf::new() };
        watchdog.folder = PathBuf::from(watchdog.answer());
        watchdog
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders.as_ref().unwrap(), "{order}").unwrap();
        assert_eq!(self.answer(), order);
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "no folder for a server, or its shell is gone");
        line.trim_end().to_owned()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}

/// Returns a client with a short server selection timeout.
pub async fn client(uri: &str) -> Client {
    let mut options = ClientOptions::parse(uri).await.unwrap();
    options.server_selection_timeout = Some(START_TIMEOUT);
    Client::with_options(options).unwrap()
}

fn free_port() -> u16 {
    let random = || PORTS.start + (RandomState::new().hash_one(0) % PORTS.len() as u64) as u16;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(random).find(is_free).unwrap()
}
