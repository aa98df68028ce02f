//! A replica set of one member that accepts only encrypted connections with credentials, and the
//! documented roles.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::{Client, Database};
use rcgen::{CertificateParams, DnType};
use regex::Regex;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use crate::server::polynym;
use crate::servers::{Process, in_background};
use crate::support::tls::Authority;

/// The password of every user; its special characters have a meaning in URIs.
const PASSWORD: &str = "s3cret/p@ss:w?rd%";
/// The password, escaped for a URI.
const ENCODED: &str = "s3cret%2Fp%40ss%3Aw%3Frd%25";
/// The administrator.
const ROOT: &str = "root";
/// The database in the documentation.
pub const DATABASE: &str = "polynym";
/// The time limit for an election.
const ELECTION: Duration = Duration::from_secs(60);

/// The server.
pub struct Secured {
    process: Process,
    root: Client,
}

impl Secured {
    /// Returns the server, which the tests of this module share.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Secured> = OnceCell::const_new();
        SHARED.get_or_init(|| in_background(Self::start())).await
    }

    async fn start() -> Self {
        let authority = Authority::new();
        let [server, _] = ["server", "client"].map(|name| certificate(&authority, name));
        let key_file = private_file(&authority, "members", "cG9seW55bQ==");
        let line = format!(
            "--replSet rs0 --auth --keyFile {key_file} --wiredTigerCacheSizeGB 0.25 \
             --tlsMode requireTLS --tlsCertificateKeyFile {server} --tlsCAFile {} \
             --tlsAllowConnectionsWithoutCertificates",
            authority.path("ca.pem")
        );
        let options: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let process = Process::start_mongod(&options).await;

        // The folder lives as long as the server.
        for name in ["ca.pem", "client.both"] {
            fs::copy(authority.path(name), process.folder().join(name)).unwrap();
        }
        let root = initiate(&process).await;
        Self { process, root }
    }

    /// The connection string of a database for a user.
    pub fn uri(&self, user: &str, database: &str) -> String {
        let address = format!("{user}:{ENCODED}@{}/{database}", self.process.address());
        format!("mongodb://{address}?replicaSet=rs0&authSource=admin&{}", self.tls())
    }

    /// The options of an encrypted connection.
    pub fn tls(&self) -> String {
        tls(&self.process)
    }

    /// The path of a file: `ca.pem`, or `client.both` with a certificate and its key.
    pub fn path(&self, name: &str) -> String {
        path(&self.process, name)
    }

    /// Runs a command as an administrator.
    pub async fn admin(&self, command: Document) -> Document {
        self.root.database("admin").run_command(command).await.unwrap()
    }

    /// Returns a database, for an administrator.
    pub fn database(&self, name: &str) -> Database {
        self.root.database(name)
    }

    /// Creates a user with these roles.
    pub async fn create_user(&self, name: &str, roles: &[&str]) {
        self.admin(doc! { "createUser": name, "pwd": PASSWORD, "roles": roles }).await;
    }
}

/// Runs a command of the program with this store.
pub fn run(uri: &str, arguments: &[&str]) -> Output {
    let output = polynym(arguments).env("POLYNYM_STORE", uri).output().unwrap();
    let text = [&output.stdout[..], &output.stderr].concat();
    assert_no_password(&String::from_utf8(text).unwrap());
    output
}

/// Panics if a text contains a part of the password.
pub fn assert_no_password(text: &str) {
    assert!(
        !text.contains("s3cre") && !text.contains("w?rd") && !text.contains("w%3Frd"),
        "{text}"
    );
}

/// Initiates the replica set and creates an administrator. Returns its client.
async fn initiate(process: &Process) -> Client {
    let (address, tls) = (process.address(), tls(process));
    // A local client may create the first user.
    let local_uri = format!("mongodb://{address}/?directConnection=true&{tls}");
    let nobody = Client::with_uri_str(&local_uri).await.unwrap().database("admin");
    let member = doc! { "_id": 0, "host": address.to_string() };
    let set = doc! { "_id": "rs0", "members": [member] };
    nobody.run_command(doc! { "replSetInitiate": set }).await.unwrap();
    let since = Instant::now();
    while !is_primary(&nobody).await {
        assert!(since.elapsed() < ELECTION, "there is no primary");
        sleep(Duration::from_millis(20)).await;
    }

    let root = doc! { "createUser": ROOT, "pwd": PASSWORD, "roles": ["root"] };
    nobody.run_command(root).await.unwrap();
    let uri = format!("mongodb://{ROOT}:{ENCODED}@{address}/?replicaSet=rs0&{tls}");
    Client::with_uri_str(&uri).await.unwrap()
}

fn path(process: &Process, name: &str) -> String {
    process.folder().join(name).to_str().unwrap().to_owned()
}

fn tls(process: &Process) -> String {
    format!("tls=true&tlsCAFile={}", path(process, "ca.pem"))
}

/// Issues a certificate for this machine and this name. Returns a file with it and its key.
fn certificate(authority: &Authority, name: &str) -> String {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    authority.issue(name, params);
    let parts = ["pem", "key"].map(|end| authority.path(&format!("{name}.{end}")));
    let both = parts.map(|part| fs::read_to_string(part).unwrap()).concat();
    private_file(authority, &format!("{name}.both"), &both)
}

async fn is_primary(database: &Database) -> bool {
    let hello = database.run_command(doc! { "hello": 1 }).await;
    hello.is_ok_and(|hello| hello.get_bool("isWritablePrimary").unwrap_or_default())
}

/// Writes a file that only its owner can read.
fn private_file(authority: &Authority, name: &str, text: &str) -> String {
    let path = authority.path(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// The commands of docs/mongodb.md that create roles and users, with another database and another
/// suffix of names.
pub fn documented(database: &str, suffix: &str) -> Vec<Document> {
    let page = include_str!("../../../docs/mongodb.md");
    let script: String = page
        .split("```")
        .filter_map(|block| block.strip_prefix("js\n"))
        .filter(|block| block.contains("db.create"))
        .flat_map(str::lines)
        .filter(|line| !line.starts_with("use ") && !line.starts_with("var "))
        .collect();
    // The two functions in the documentation.
    let config = Regex::new(r#"config\("([a-z]*)"\)"#).unwrap();
    let resource = r#"{ resource: { db: "config", collection: "$1" }, actions: ["find"] }"#;
    let with_config = config.replace_all(&script, resource);
    let on = Regex::new(r#"on\(("[a-z]*"), (\[[^\]]*\])\)"#).unwrap();
    let resource =
        format!(r#"{{ resource: {{ db: "{DATABASE}", collection: $1 }}, actions: $2 }}"#);
    let expanded = on.replace_all(&with_config, resource);
    let name = Regex::new(r#""(polynym[A-Z-][a-zA-Z]*)""#).unwrap();
    let suffixed = name.replace_all(&expanded, format!("\"${{1}}{suffix}\""));
    let text = suffixed.replace(&format!("\"{DATABASE}\""), &format!("\"{database}\""));
    let key = Regex::new("([a-zA-Z]+):").unwrap();
    let json =
        key.replace_all(&text, "\"$1\":").replace("passwordPrompt()", &format!("\"{PASSWORD}\""));

    let calls = json.split("db.").skip(1).map(|call| {
        let (name, rest) = call.trim().split_once('(').unwrap();
        let text = rest.strip_suffix(')').unwrap();
        let mut argument: Document =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let named = argument.remove(if name == "createRole" { "role" } else { "user" });
        let mut command = doc! { name: named.unwrap() };
        command.extend(argument);
        command
    });
    calls.collect()
}
