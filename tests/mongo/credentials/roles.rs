//! The roles of docs/mongodb.md: they suffice, each privilege is needed, and an error names a
//! missing one.

use std::fs::{self, File};
use std::path::Path;
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, Uuid, doc};
use mongodb::{Client, Database};
use polynym_directory::{BulkChange, Tenant};
use polynym_mongodb::{Supported, upgrade_to};
use tempfile::tempdir;
use tokio::time::sleep;

use super::secured::{DATABASE, Secured, assert_no_password, documented, run};
use crate::server::{Server, polynym};
use crate::store::bulk::bulk_document;
use crate::support::golden::later_rules;
use crate::support::scenarios::walkthrough::walk_and_verify;
use crate::support::users;

/// The maximum time until a server ends the sessions of a dead one.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Concurrent attempts with variants of roles.
const CONCURRENT_ATTEMPTS: usize = 6;
/// The time limit of the deletion of a tenant.
const GONE: Duration = Duration::from_secs(60);
const REQUEST: &str = "--request-id=0c9d2c80-6b0a-4b7e-9d53-3f3d0f6b9a01";
/// Commands that need every privilege of the role for `serve`.
const COMMANDS: [&[&str]; 18] = [
    &["user", "create", "--identity=email:ann@example.com", REQUEST],
    &["usage"],
    &["identity", "link", "email:ann@example.com", "handle:ann"],
    &["identity", "unlink", "email:ann@example.com", "handle:ann"],
    &["resolve", "email:ann@example.com"],
    &["inbox", "send", "email:ann@example.com", "--subject=Hello"],
    &["inbox", "list", "email:ann@example.com"],
    &["inbox", "read", "email:ann@example.com", "--all"],
    &["user", "purge", "--yes", "email:ann@example.com"],
    &["bulk", "start", "disable", "--filter=state = DISABLED", "--operation-id=b", "--yes"],
    &["bulk", "get", "b"],
    &["tenant", "set", "--hide-unverified=off"],
    &["user", "create", "--identity=handle:missing", "--identity=handle:stolen"],
    &["user", "create", "--identity=handle:other"],
    &["tenant", "set", "--tenant=acme", "--create", "--hide-unverified=on"],
    &["tenant", "set", "--tenant=acme", "--hide-unverified=off"],
    &["user", "create", "--tenant=acme", "--identity=handle:joe", "--attribute=team=a"],
    &["tenant", "delete", "--tenant=acme", "--force", "--yes", "--no-wait"],
];

/// Commands that give two users common events.
const SHARED: [&[&str]; 5] = [
    &["user", "create", "--identity=handle:bob"],
    &["user", "create", "--identity=handle:carl", "--identity=phone:+14155552671"],
    &["user", "update", "handle:carl", "--attribute=team=a"],
    &["identity", "move", "phone:+14155552671", "handle:bob", "handle:carl"],
    &["identity", "move", "handle:bob", "phone:+14155552671", "handle:carl"],
];
/// Commands that are two events of one user.
const EVENTS: [&[&str]; 2] = [
    &["identity", "link", "handle:bob", "url:https://example.com/bob"],
    &["identity", "unlink", "handle:bob", "url:https://example.com/bob"],
];
/// Commands that remove one of the users from the history of the other.
const PURGE: [&[&str]; 2] = [
    &["user", "update", "handle:bob", "--attribute=room=b"],
    &["user", "purge", "--yes", "handle:carl"],
];

type Outcome = Result<(), String>;

fn outcome_of(output: &Output) -> Outcome {
    if output.status.success() { Ok(()) } else { Err(errors(output)) }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Starts a server, uses it, and stops it. A warning in its log is a failure.
fn serve(uri: &str) -> Outcome {
    let folder = tempdir().unwrap();
    let log_file = folder.path().join("log");
    let mut command = polynym(&[
        "serve",
        "--listen=127.0.0.1:0",
        "--log=error,polynym=warn,polynym::commands::serve::listen=error",
    ]);
    command.env("POLYNYM_STORE", uri).stderr(File::create(&log_file).unwrap());
    let outcome = Server::try_start_with(&mut command, &[]).map(|server| {
        let outcome = use_server(&server, &log_file);
        server.signal("TERM");
        assert!(server.wait().success());
        outcome
    });
    let log = fs::read_to_string(&log_file).unwrap();
    assert_no_password(&log);
    match (log, outcome) {
        (log, Some(outcome)) if log.is_empty() => outcome,
        (log, _) => Err(log),
    }
}

fn use_server(server: &Server, log: &Path) -> Outcome {
    let events = [EVENTS; 4].concat();
    let (deletion, commands) = COMMANDS.split_last().unwrap();
    for arguments in [&SHARED[..], &events, &PURGE, commands].concat() {
        outcome_of(&server.run(arguments))?;
    }
    // More names than one document holds.
    for handle in ["ann", "bob"] {
        let identity = format!("--identity=handle:{handle}");
        let attributes: Vec<_> = (0..60).map(|n| format!("--attribute={handle}{n}=1")).collect();
        let create = ["user", "create", "--tenant=acme", &identity];
        let texts = attributes.iter().map(String::as_str);
        outcome_of(&server.run(&create.into_iter().chain(texts).collect::<Vec<_>>()))?;
    }
    outcome_of(&server.run(deletion))?;
    let since = Instant::now();
    while String::from_utf8_lossy(&server.run(&["tenant", "list"]).stdout).contains("acme") {
        let has_warned = fs::metadata(log).unwrap().len() > 0;
        if has_warned || since.elapsed() > GONE {
            return Err("the tenant is not gone".to_owned());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A user for each documented role, and the database of the roles. All names share a suffix.
struct Store {
    server: &'static Secured,
    database: String,
    suffix: String,
}

impl Store {
    /// Creates the documented roles and users, after `change`.
    async fn new(name: &str, change: impl Fn(&mut Document)) -> Self {
        let server = Secured::shared().await;
        let (database, suffix) = match name {
            "" => (DATABASE.to_owned(), String::new()),
            name => (format!("{DATABASE}-{name}"), format!("-{name}")),
        };
        for mut command in documented(&database, &suffix) {
            change(&mut command);
            server.admin(command).await;
        }
        Self { server, database, suffix }
    }

    fn uri(&self, user: &str) -> String {
        self.server.uri(&format!("polynym-{user}{}", self.suffix), &self.database)
    }

    fn run(&self, user: &str, arguments: &[&str]) -> Outcome {
        outcome_of(&run(&self.uri(user), arguments))
    }

    /// Runs every command with its role.
    async fn use_all(&self) -> Outcome {
        self.run("init", &["store", "init"])?;
        self.damage_validator().await;
        self.run("init", &["store", "init"])?;
        serve(&self.uri("serve"))?;
        let servers = self.database().collection::<Document>("servers");
        if servers.count_documents(doc! {}).await.unwrap() > 0 {
            return Err("the server has left its document".to_owned());
        }
        self.run("verify", &["store", "status"])?;
        self.run("verify", &["store", "verify"])?;
        self.damage_claims().await;
        self.damage_bulk_changes().await;
        self.damage_notices().await;
        self.run("repair", &["store", "verify", "--repair"])
    }

    fn database(&self) -> Database {
        self.server.database(&self.database)
    }

    /// Adds a bulk change of a tenant that does not exist, and one under a wrong state.
    async fn damage_bulk_changes(&self) {
        let bulk = self.database().collection::<Document>("bulk");
        let gone = Tenant::parse("gone").unwrap();
        let orphan = BulkChange { tenant: gone, ..users::bulk_change("orphan") };
        let ended = bulk_document(&users::bulk_change("ended"), false);
        bulk.insert_many([bulk_document(&orphan, true), ended]).await.unwrap();
    }

    /// Adds a deleted notice to the inbox of a user who does not exist.
    async fn damage_notices(&self) {
        let notices = self.database().collection::<Document>("notices");
        let (user, notice) = (Uuid::new(), Uuid::new());
        let bytes = [user.bytes(), notice.bytes()].concat();
        let id = Binary { subtype: BinarySubtype::Generic, bytes };
        notices.insert_one(doc! { "_id": id, "i": notice, "d": DateTime::MAX }).await.unwrap();
    }

    /// Removes a validator, which `store init` restores.
    async fn damage_validator(&self) {
        let change = doc! { "collMod": "users", "validator": {} };
        self.database().run_command(change).await.unwrap();
    }

    /// Deletes a claim, adds one without an owner and one that its user does not list, and gives
    /// one to another user.
    async fn damage_claims(&self) {
        let claims = self.database().collection::<Document>("identities");
        let claim = |name: &str| doc! { "_id": format!("default,handle,{name}") };
        claims.delete_one(claim("missing")).await.unwrap();
        let stolen = claims.find_one(claim("other")).await.unwrap().unwrap();
        for (name, owner) in
            [("orphan", Some(Uuid::new().into())), ("free", stolen.get("u").cloned())]
        {
            let mut added = stolen.clone();
            added.extend(claim(name));
            added.insert("u", owner);
            claims.insert_one(added).await.unwrap();
        }
        let change = doc! { "$set": { "u": stolen.get("u") } };
        claims.update_one(claim("stolen"), change).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_roles_suffice() {
    let store = Store::new("", |_| ()).await;
    store.use_all().await.unwrap();

    // The server's user cannot drop anything.
    let client = Client::with_uri_str(store.uri("serve")).await.unwrap();
    let database = client.database(DATABASE);
    let collections = ["users", "identities", "requests", "tenants", "servers", "meta"];
    for name in collections.into_iter().chain(["journal", "ended", "usage", "notices", "bulk"]) {
        let error = database.collection::<Document>(name).drop().await.unwrap_err();
        assert!(error.to_string().contains("not authorized"), "{error}");
    }
    assert!(database.drop().await.unwrap_err().to_string().contains("not authorized"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_walkthrough_works_with_the_documented_roles() {
    let store = Store::new("walk", |_| ()).await;
    store.run("init", &["store", "init"]).unwrap();
    let server = Server::start(&["--store", &store.uri("serve")]);
    walk_and_verify(server, &store.uri("verify"));
}

/// To the next version of the schema and of the rules.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_upgraded_with_two_roles() {
    let store = Store::new("old", |_| ()).await;
    store.run("init", &["store", "init"]).unwrap();
    let roles = ["polynymServe-old", "polynymInit-old"];
    store.server.create_user("polynym-upgrade-old", &roles).await;
    let (schema, rules) = (Supported::PRESENT.schema + 1, later_rules());
    upgrade_to(&store.uri("upgrade"), schema, rules, &|line| println!("{line}")).await.unwrap();
    let meta = store.database().collection::<Document>("meta");
    let versions = meta.find_one(doc! { "_id": "schema" }).await.unwrap().unwrap();
    assert_eq!(versions.get_i64("v").unwrap(), schema, "{versions}");
    assert_eq!(versions.get_i64("n").unwrap(), i64::from(rules.version()), "{versions}");
}

/// A server needs no privilege to end the transactions of another one with the same user.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_dead_servers_are_ended() {
    let store = Store::new("dead", |_| ()).await;
    store.run("init", &["store", "init"]).unwrap();
    let folder = tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = polynym(&["serve", "--listen=127.0.0.1:0"]);
    command.stderr(File::create(&log).unwrap());
    let _server = Server::start_with(&mut command, &["--store", &store.uri("serve")]);

    let client = Client::with_uri_str(store.uri("serve")).await.unwrap();
    let mut session = client.start_session().await.unwrap();
    session.start_transaction().await.unwrap();
    let collection = |name| client.database(&store.database).collection::<Document>(name);
    let (servers, meta) = (collection("servers"), collection("meta"));
    meta.update_one(doc! {}, doc! { "$inc": { "c": 1_i64 } }).session(&mut session).await.unwrap();

    let id = Uuid::new();
    let long_ago = DateTime::from_millis(DateTime::now().timestamp_millis() - 30_000);
    let sessions = vec![session.id().get("id").cloned().unwrap()];
    let dead = doc! { "_id": id, "t": long_ago, "s": sessions };
    servers.insert_one(dead).await.unwrap();
    let since = Instant::now();
    while servers.find_one(doc! { "_id": id }).await.unwrap().is_some() {
        assert!(since.elapsed() < TIMEOUT, "the dead server's sessions are not ended");
        sleep(Duration::from_millis(100)).await;
    }
    let error = session.commit_transaction().await.unwrap_err();
    assert!(error.to_string().contains("NoSuchTransaction"), "{error}");
    let text = fs::read_to_string(&log).unwrap();
    assert_eq!(text.matches("the sessions of a server that died").count(), 1, "{text}");
}

/// Removes an action on a collection from the role with this prefix.
fn without(role: &str, collection: &str, action: &str) -> impl Fn(&mut Document) {
    let actions = (role.to_owned(), collection.to_owned(), action.to_owned());
    move |command| {
        let (role, collection, action) = &actions;
        if !command.get_str("createRole").is_ok_and(|name| name.starts_with(role)) {
            return;
        }
        let privileges = command.get_array_mut("privileges").unwrap();
        for privilege in privileges.iter_mut().map(|one| one.as_document_mut().unwrap()) {
            let resource = privilege.get_document("resource").unwrap();
            if resource.get_str("collection").unwrap_or("cluster") == collection {
                let actions = privilege.get_array_mut("actions").unwrap();
                actions.retain(|one| one.as_str() != Some(action));
            }
        }
        let actions =
            |privilege: &Bson| privilege.as_document()?.get_array("actions").ok().cloned();
        privileges.retain(|privilege| actions(privilege).is_some_and(|all| !all.is_empty()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn a_missing_privilege_is_named() {
    let cases = [
        ("polynymServe", "meta", "find", "`find` on meta"),
        ("polynymServe", "", "listCollections", "`listCollections`"),
        ("polynymServe", "users", "listIndexes", "`listIndexes` on users"),
        ("polynymServe", "identities", "insert", "`insert` on identities"),
        ("polynymServe", "requests", "update", "`update or insert` on requests"),
        ("polynymServe", "users", "remove", "`remove` on users"),
        ("polynymServe", "tenants", "remove", "`remove` on tenants"),
        ("polynymServe", "servers", "update", "`update or insert` on servers"),
        ("polynymServe", "journal", "find", "`find` on journal"),
        ("polynymServe", "ended", "update", "`update or insert` on ended"),
        ("polynymInit", "", "createCollection", "`createCollection` on users"),
        ("polynymInit", "", "createIndex", "`createIndex` on users"),
        ("polynymInit", "meta", "insert", "`insert` on meta"),
        ("polynymVerify", "", "collStats", "`collStats` on users"),
        ("polynymRepair", "identities", "remove", "`remove` on identities"),
    ];
    let attempts = cases.into_iter().enumerate().map(async |(n, case)| {
        let (role, collection, action, named) = case;
        let mut error = String::new();
        // An overloaded machine causes other warnings.
        for attempt in 0..3 {
            let change = without(role, collection, action);
            let store = Store::new(&format!("named{n}-{attempt}"), change).await;
            let outcome = tokio::spawn(async move { store.use_all().await }).await.unwrap();
            error = outcome.expect_err(named);
            if error.contains("lacks the privilege") {
                break;
            }
        }
        let expected = format!("the user lacks the privilege {named}");
        assert!(error.contains(&expected), "{expected}: {error}");
        assert!(!error.contains("ann@") && !error.contains("handle"), "{error}");
    });
    stream::iter(attempts).buffer_unordered(CONCURRENT_ATTEMPTS).collect::<()>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
#[ignore = "takes minutes"]
async fn long_every_documented_privilege_is_needed() {
    let mut variants = Vec::new();
    for command in documented(DATABASE, "") {
        let Ok(role) = command.get_str("createRole") else { continue };
        // This is no cluster.
        if role.ends_with("Cluster") {
            continue;
        }
        for entry in command.get_array("privileges").unwrap() {
            let privilege = entry.as_document().unwrap();
            // Without `shardingState`, a server does not detect a connection to a shard.
            let resource = privilege.get_document("resource").unwrap();
            let Ok(collection) = resource.get_str("collection") else { continue };
            for value in privilege.get_array("actions").unwrap() {
                let action = value.as_str().unwrap();
                variants.push([role, collection, action].map(str::to_owned));
            }
        }
    }
    assert!(variants.len() > 30);

    let attempts = variants.into_iter().enumerate().map(async |(n, variant)| {
        let [role, collection, action] = &variant;
        let change = without(role, collection, action);
        let store = Store::new(&format!("without{n}"), change).await;
        let outcome = tokio::spawn(async move { store.use_all().await }).await.unwrap();
        println!("{variant:?}: {outcome:?}");
        (variant, outcome)
    });
    let outcomes: Vec<_> =
        stream::iter(attempts).buffer_unordered(CONCURRENT_ATTEMPTS).collect().await;
    let idle: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).collect();
    assert!(idle.is_empty(), "{idle:?}");
}
