//! A PostgreSQL of its own, in a temporary folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Fallible;
use crate::machine::output;
use crate::process::free_port;
use crate::suites::on_path;

/// Where Debian and its like install the programs that are not on the PATH.
const INSTALLED: &str = "/usr/lib/postgresql";
/// The settings of the server beside its address. Each commit waits for the disk.
const SETTINGS: &str = "-c shared_buffers=1GB -c max_wal_size=4GB -c max_connections=300";

/// The folder of PostgreSQL's programs.
pub struct Programs(PathBuf);

impl Programs {
    pub fn find(named: Option<&Path>) -> Fallible<Self> {
        let on_path = || Some(on_path("pg_ctl")?.canonicalize().ok()?.parent()?.to_owned());
        let folder = named.map(Path::to_owned).or_else(on_path).or_else(newest);
        let missing = "no PostgreSQL: name the folder of pg_ctl and pgbench with --postgresql";
        folder.filter(|folder| folder.join("pgbench").exists()).map(Self).ok_or(missing.into())
    }
}

/// Returns the programs of the newest version under [`INSTALLED`].
fn newest() -> Option<PathBuf> {
    let versions = fs::read_dir(INSTALLED).ok()?.flatten();
    let numbered = versions.filter_map(|entry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((number, entry.path().join("bin")))
    });
    numbered.max().map(|(_, folder)| folder)
}

/// A server, which ends when it is dropped.
pub struct Postgres<'a> {
    programs: &'a Path,
    data: PathBuf,
    port: String,
}

impl<'a> Postgres<'a> {
    pub fn start(Programs(programs): &'a Programs, folder: &Path) -> Fallible<Self> {
        let data = folder.join("postgresql");
        fs::create_dir(&data)?;
        if is_root()? {
            // PostgreSQL does not run as root.
            fs::set_permissions(folder, fs::Permissions::from_mode(0o711))?;
            output(Command::new("chown").arg("postgres").arg(&data))?;
        }
        let this = Self { programs, data, port: free_port()?.to_string() };
        let initdb = ["-U", "postgres", "-A", "trust", "--locale", "C", "-E", "UTF8"];
        output(this.server_command("initdb")?.args(initdb))?;

        let address = format!("-c listen_addresses=127.0.0.1 -c port={}", this.port);
        let sockets = format!("-c unix_socket_directories={}", this.data.display());
        let log = this.data.join("log");
        let mut start = this.server_command("pg_ctl")?;
        start.args(["-w", "-o", &format!("{address} {sockets} {SETTINGS}"), "-l"]).arg(log);
        // The server keeps its parent's output open.
        let status = start.arg("start").stdout(std::process::Stdio::null()).status()?;
        if status.success() { Ok(this) } else { Err("PostgreSQL did not start".into()) }
    }

    /// Returns a command of a program that owns the data.
    fn server_command(&self, program: &str) -> Fallible<Command> {
        let program = self.programs.join(program);
        let mut command = if is_root()? {
            let mut runuser = Command::new("runuser");
            runuser.args(["-u", "postgres", "--"]).arg(program);
            runuser
        } else {
            Command::new(program)
        };
        command.current_dir("/").arg("-D").arg(&self.data);
        Ok(command)
    }

    /// Returns a command of a program that connects over TCP.
    fn client_command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.env("PGDATABASE", "postgres");
        command.args(["-h", "127.0.0.1", "-p", &self.port, "-U", "postgres"]);
        command
    }

    pub fn execute(&self, statements: &str) -> Fallible<()> {
        let script = self.data.with_extension("sql");
        fs::write(&script, statements)?;
        let quiet = ["-q", "-v", "ON_ERROR_STOP=1", "-f"];
        output(self.client_command("psql").args(quiet).arg(script)).map(drop)
    }

    /// Runs a script with prepared statements, and returns transactions a second.
    pub fn bench(&self, script: &str, clients: usize, seconds: u64) -> Fallible<f64> {
        let file = self.data.with_extension("bench.sql");
        fs::write(&file, script)?;
        let mut command = self.client_command("pgbench");
        command.args(["-n", "-M", "prepared", "-j", "2", "-c", &clients.to_string()]);
        let report = output(command.args(["-T", &seconds.to_string(), "-f"]).arg(file))?;
        let rate = report.lines().find_map(|line| line.strip_prefix("tps = "));
        let rate = rate.and_then(|text| text.split(' ').next()).ok_or("pgbench has no tps")?;
        Ok(rate.parse()?)
    }

    pub fn version(&self) -> Fallible<String> {
        output(Command::new(self.programs.join("postgres")).arg("--version"))
    }
}

impl Drop for Postgres<'_> {
    fn drop(&mut self) {
        // The folder is removed afterwards in any case.
        let stop = self.server_command("pg_ctl");
        let _ = stop.and_then(|mut stop| output(stop.args(["-m", "immediate", "stop"])));
    }
}

fn is_root() -> Fallible<bool> {
    Ok(output(Command::new("id").arg("-u"))? == "0")
}
