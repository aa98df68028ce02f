//! The embedded store in a folder whose database the tests damage.

use std::ops::Range;
use std::path::PathBuf;

use locality_uuid::LocalityId;
use polynym_directory::{EncodedUser, Mutation, Mutations, Record, Tenant, Timestamp, User};
use polynym_embedded::{Embedded, Options};
use redb::{TableDefinition, WriteTransaction};
use tempfile::TempDir;

use super::{json, stderr, stdout, store};
use crate::server::Server;
use crate::support::database;
use crate::support::scenarios::damage::{self, Breakable};
use crate::support::scenarios::store_command::findings;
use crate::support::users;

const USERS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("users");
const IDENTITIES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("identities");

/// A closed folder.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        drop(Embedded::open(folder.path(), Options::default()).unwrap());
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("directory.redb")
    }

    fn write(&self, write: impl FnOnce(&WriteTransaction)) {
        let transaction = database(self.0.path()).begin_write().unwrap();
        write(&transaction);
        transaction.commit().unwrap();
    }

    fn put(&self, key: &str, claim: &[u8]) {
        self.write(|transaction| {
            transaction.open_table(IDENTITIES).unwrap().insert(key.as_bytes(), claim).unwrap();
        });
    }

    fn put_stored(&self, id: LocalityId, record: &[u8]) {
        self.write(|transaction| {
            transaction.open_table(USERS).unwrap().insert(id.as_bytes(), record).unwrap();
        });
    }

    fn open(&self) -> Embedded {
        Embedded::open(self.0.path(), Options::default()).unwrap()
    }
}

#[async_trait::async_trait]
impl Breakable for Folder {
    fn name(&self) -> String {
        format!("embedded:{}", self.0.path().display())
    }

    async fn create(&self, users: Range<usize>) {
        damage::create(&self.open(), users).await;
    }

    async fn delete_claim(&self, key: &str) {
        self.write(|transaction| {
            assert!(
                transaction
                    .open_table(IDENTITIES)
                    .unwrap()
                    .remove(key.as_bytes())
                    .unwrap()
                    .is_some()
            );
        });
    }

    /// In the store's schema: owner and version; without an owner, flags and the end of the hold.
    async fn put_claim(&self, key: &str, owner: Option<LocalityId>, held: Option<Timestamp>) {
        let mut claim = owner.map_or([0; 16], |owner| *owner.as_bytes()).to_vec();
        claim.extend(1_u16.to_be_bytes());
        if owner.is_none() || held.is_some() {
            claim.push(if held.is_some() { 2 } else { 0 } | if owner.is_none() { 4 } else { 0 });
            claim.extend(held.map_or(0, Timestamp::as_millis).to_be_bytes());
        }
        self.put(key, &claim);
    }

    /// In the store's schema: a message whose first field is the user, and its hash.
    async fn put_user(&self, id: LocalityId, user: &User) {
        let wire = EncodedUser::from_user(user).into_bytes();
        let mut record = vec![0x0a, wire.len() as u8 | 0x80, (wire.len() >> 7) as u8];
        assert!((0x80..0x4000).contains(&wire.len()));
        record.extend(wire);
        record.extend(xxhash_rust::xxh3::xxh3_64(&record).to_le_bytes());
        self.put_stored(id, &record);
    }

    async fn put_record(&self, record: &Record) {
        let (user, private) = record.encode();
        let mut stored = Vec::new();
        for (tag, bytes) in [(1, &user.into_bytes()[..]), (2, &private)] {
            prost::encoding::bytes::encode(tag, &bytes.to_vec(), &mut stored);
        }
        stored.extend(xxhash_rust::xxh3::xxh3_64(&stored).to_le_bytes());
        self.put_stored(record.id(), &stored);
    }

    async fn put_garbage_claim(&self, key: &str) {
        self.put(key, b"short");
    }

    async fn put_garbage_user(&self, id: LocalityId) {
        self.put_stored(id, b"not a record");
    }

    async fn assert_there(&self, users: &[usize]) {
        damage::assert_there(&self.open(), users).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repairable_findings_are_repaired() {
    damage::repairable(&Folder::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_to_users_who_do_not_name_the_user_back_are_removed() {
    damage::links(&Folder::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_findings_are_reported_and_left() {
    damage::unrepairable(&Folder::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_claims_are_restored() {
    let folder = Folder::new();
    folder.create(0..700).await;
    folder.write(|transaction| {
        transaction.open_table(IDENTITIES).unwrap().retain(|_, _| false).unwrap();
    });
    let output = store(&["verify", "--repair"], &folder.name());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output)
            .ends_with("700 users and 1400 claims read: 1400 findings, 1400 repaired, 0 left\n")
    );
    assert!(stdout(&store(&["verify"], &folder.name())).contains("no inconsistency"));
    folder.assert_there(&[0, 1, 350, 699]).await;
}

/// Claims of two tenants are gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_or_a_sample_is_verified() {
    const USERS: usize = 60;
    let folder = Folder::new();
    let acme = Tenant::parse("acme").unwrap();
    let opened = folder.open();
    for n in 0..USERS {
        opened.mutate(users::creation(n)).await.unwrap();
        let other = users::creation(USERS + n);
        opened.mutate(Mutation { tenant: acme.clone(), ..other }).await.unwrap();
    }
    drop(opened);
    let is_email = |key: &[u8]| String::from_utf8_lossy(key).contains(",email,");
    folder.write(|transaction| {
        let mut claims = transaction.open_table(IDENTITIES).unwrap();
        claims.retain(|key, _| !is_email(key)).unwrap();
    });
    let findings = |arguments: &[&str]| findings(arguments, &folder.name());

    assert_eq!(findings(&[]).len(), 2 * USERS);
    assert_eq!(findings(&["--tenant", "acme"]).len(), USERS);
    let text = stdout(&store(&["verify", "--tenant", "acme"], &folder.name()));
    assert!(text.contains("60 users and 60 claims read of tenant acme: 60 findings"), "{text}");
    assert!(text.ends_with("stray entries of the search index\n"), "{text}");
    let output = store(&["verify", "--tenant", "nobody"], &folder.name());
    assert!(!output.status.success() && stderr(&output).contains("nobody"), "{output:?}");

    let sample = |seed: &str| findings(&["--sample", "50%", "--seed", seed]);
    let [one, again, other] = [sample("1"), sample("1"), sample("2")];
    assert!((USERS / 2..USERS * 3 / 2).contains(&one.len()), "{}", one.len());
    assert_eq!(one, again);
    assert_ne!(one, other);
    let text = stdout(&store(&["verify", "--sample", "30", "--seed", "7"], &folder.name()));
    assert!(text.contains("a sample of about 120 and 120 by --seed 7"), "{text}");
    assert!(text.contains("not checked: all others"), "{text}");
    let all = json(&store(&["verify", "--json", "--sample", "100%"], &folder.name()));
    let totals = all.last().unwrap();
    assert_eq!((&totals["users"], &totals["sample"]["of_users"]), (&120.into(), &120.into()));
    assert!(totals["sample"]["seed"].is_u64(), "{totals}");
    for wrong in [&["--sample", "30", "--repair"][..], &["--sample", "0"], &["--seed", "1"]] {
        let output = store(&[&["verify"], wrong].concat(), &folder.name());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }

    assert_eq!(findings(&["--tenant", "acme", "--repair"]).len(), USERS);
    assert_eq!(findings(&[]).len(), USERS);
}

#[test]
fn a_status_counts_the_content() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("embedded:{}", folder.path().join("new").display());
    let output = store(&["status"], &name);
    assert_eq!(output.status.code(), Some(1));
    let output = stderr(&output);
    assert!(output.contains("has no store") && output.contains("polynym store init"), "{output}");
    assert!(!folder.path().join("new").exists(), "looking has made a folder");

    let output = store(&["init"], &name);
    assert!(
        output.status.success() && stdout(&output).ends_with("is a store now\n"),
        "{}",
        stdout(&output)
    );
    assert!(stdout(&store(&["init"], &name)).ends_with("was a store before\n"));
    let mut server = Server::start(&["--sample", "--store", &name]);
    assert!(!server.line().is_empty());
    for command in ["status", "verify"] {
        let output = store(&[command], &name);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("in use by another process"), "{}", stderr(&output));
    }
    drop(server);

    let status = json(&store(&["status", "--json"], &name)).pop().unwrap();
    assert!(
        status["users"].as_u64() > Some(20)
            && status["identities"].as_u64() > status["users"].as_u64(),
        "{status}"
    );
    assert!(
        status["file_bytes"].as_u64() > Some(10_000) && status["schema_version"].is_u64(),
        "{status}"
    );
    assert_eq!(status["requests"], 0);
    let table = stdout(&store(&["status"], &name));
    assert!(table.contains("identities") && table.contains("KiB"), "{table}");
    assert!(store(&["verify"], &name).status.success());
}

#[test]
fn a_corrupted_file_is_refused() {
    let folder = Folder::new();
    tokio::runtime::Runtime::new().unwrap().block_on(folder.create(0..500));
    let mut bytes = std::fs::read(folder.file()).unwrap();
    let at = bytes.windows(17).position(|text| text == b"user7@example.com").unwrap();
    bytes[at] ^= 1;
    std::fs::write(folder.file(), &bytes).unwrap();
    let output = store(&["verify", "--mend"], &folder.name());
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(
        text.contains("damaged") && !text.contains("user7") && text.lines().count() == 1,
        "{text}"
    );
}

#[test]
fn errors_of_the_settings_are_reported_with_their_origin() {
    let output = store(&["verify", "--json=perhaps"], "mongodb://joe:secret@host");
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(
        text.contains("2 errors") && text.contains("has no database") && !text.contains("secret"),
        "{text}"
    );
}

/// A flag of older versions is accepted, and reported to do nothing.
#[test]
fn a_tenant_to_presplit_has_no_effect() {
    let folder = tempfile::tempdir().unwrap();
    let output =
        store(&["init", "--tenant", "acme"], &format!("embedded:{}", folder.path().display()));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("--tenant has no effect"), "{}", stderr(&output));
}
