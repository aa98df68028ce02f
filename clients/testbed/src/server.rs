//! The server under the clients: a process that is killed and started again on the same store.

use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::{Outcome, context};

/// The maximum time until the server listens.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The callers with their roles. A caller has the name of its role, except for `limited`, who may
/// make one call a second.
const CALLERS: [(&str, &str); 5] = [
    ("admin", "admin"),
    ("registrar", "registrar"),
    ("viewer", "viewer"),
    ("resolver", "resolver"),
    ("limited", "registrar"),
];

/// The server's limit for batches, which is below that of the clients: they must learn it.
const MAX_BATCH: &str = "400";

/// Ports that no system gives to connections by itself.
const PORTS: std::ops::Range<u16> = 10_000..30_000;

/// A server on a store in a temporary folder.
pub struct Server {
    program: PathBuf,
    folder: TempDir,
    listen: String,
    process: Option<(Child, BufReader<ChildStdout>)>,
    tokens: Vec<(&'static str, String)>,
    /// Where it listens.
    pub address: String,
}

impl Server {
    /// Creates the callers, and starts the server.
    pub async fn start(program: PathBuf) -> Outcome<Self> {
        let mut server = Self::new(program, "127.0.0.1:0".to_owned())?;
        server.create_callers().await?;
        server.serve().await?;
        Ok(server)
    }

    /// Starts another server with the same callers and a store of its own. It keeps its port.
    pub async fn beside(&self) -> Outcome<Self> {
        let mut server = Self::new(self.program.clone(), free_address())?;
        let callers = server.path("callers.toml");
        std::fs::copy(self.path("callers.toml"), callers).map_err(context("the credentials"))?;
        server.serve().await?;
        Ok(server)
    }

    fn new(program: PathBuf, listen: String) -> Outcome<Self> {
        let folder = tempfile::tempdir().map_err(context("a temporary folder"))?;
        let (tokens, address) = (Vec::new(), String::new());
        Ok(Self { program, folder, listen, process: None, tokens, address })
    }

    /// The token of a caller.
    pub fn token(&self, caller: &str) -> Outcome<&str> {
        let found = self.tokens.iter().find(|(name, _)| *name == caller);
        found.map(|(_, token)| token.as_str()).ok_or_else(|| format!("no caller {caller}"))
    }

    /// Kills the server, and starts it again on the same store.
    pub async fn restart(&mut self) -> Outcome<()> {
        if let Some((mut child, _)) = self.process.take() {
            child.kill().await.map_err(context("killing the server"))?;
        }
        self.serve().await
    }

    /// Stops the server as a service manager does, and starts it again on the same store.
    pub async fn restart_gently(&mut self) -> Outcome<()> {
        if let Some((mut child, _)) = self.process.take() {
            let id = child.id().ok_or("the server has ended")?.to_string();
            let sent = Command::new("kill").args(["-TERM", &id]).status().await;
            sent.map_err(context("stopping the server"))?;
            child.wait().await.map_err(context("stopping the server"))?;
        }
        self.serve().await
    }

    async fn serve(&mut self) -> Outcome<()> {
        let store = format!("embedded:{}", self.path("store").display());
        let mut command = self.command(&["serve", "--create", "--store", &store]);
        command.args(["--listen", &self.listen, "--tenants", "open", "--log", "error"]);
        command.args(["--max-batch", MAX_BATCH]);
        command.arg("--credentials").arg(self.path("callers.toml"));
        let mut child = command
            .env("TMPDIR", self.folder.path())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(context("starting the server"))?;

        let output = child.stdout.take().ok_or("the server has no standard output")?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        let read = timeout(START_TIMEOUT, output.read_line(&mut line)).await;
        read.map_err(|_| "the server does not start")?.map_err(context("the server"))?;
        let address = line.trim_end().strip_prefix("listening on http://");
        self.address = address.ok_or_else(|| format!("the server does not listen: {line}"))?.into();
        self.process = Some((child, output));
        Ok(())
    }

    async fn create_callers(&mut self) -> Outcome<()> {
        let file = self.path("callers.toml");
        for (name, role) in CALLERS {
            let mut command = self.command(&["token", "create", name, "--role", role]);
            command.args(["--tenants", "*", "--credentials"]).arg(&file);
            let output = command.output().await.map_err(context("token create"))?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned());
            }
            let token = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            self.tokens.push((name, token));
        }
        limit(&file)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env_clear().stdin(Stdio::null());
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Gives the caller `limited` its rate.
fn limit(file: &Path) -> Outcome<()> {
    let text = std::fs::read_to_string(file).map_err(context("the credentials"))?;
    let name = "name = \"limited\"";
    if !text.contains(name) {
        return Err(format!("the credentials have another form:\n{text}"));
    }
    let limited = text.replace(name, &format!("{name}\nrate = {{ calls = 1 }}"));
    std::fs::write(file, limited).map_err(context("the credentials"))
}

/// An address on this machine at which nothing listens.
pub fn free_address() -> String {
    let random = || PORTS.start + (RandomState::new().hash_one(0) % PORTS.len() as u64) as u16;
    let addresses = std::iter::repeat_with(|| format!("127.0.0.1:{}", random()));
    let mut free = addresses.filter(|address| TcpListener::bind(address).is_ok());
    free.next().unwrap_or_default()
}

/// The program `polynym`: the one that is named, or that in the folder of this build.
pub fn program() -> Outcome<PathBuf> {
    if let Some(path) = std::env::var_os("POLYNYM_BIN") {
        return Ok(path.into());
    }
    let own = std::env::current_exe().map_err(context("this program"))?;
    let paths = own.ancestors().skip(1).take(2).map(|folder| folder.join("polynym"));
    paths.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        "there is no program polynym: build it (cargo build), or name it by POLYNYM_BIN".to_owned()
    })
}
