//! Writes the rows of a store that is there once more, in plain batches, and prints how many users
//! a second that makes: what an import is compared with. See `benches/transfer.py`.
//!
//! `floor redb FROM TO` copies users, claims and index entries from one database file to a new one.
//! `floor scan FILE` reads all users of a file. `floor mongo URI FROM TO` inserts the documents of
//! the users and claims of one database into the collections of another, which are to be there.
//! `floor initiate URI` makes a replica set of one server, and waits until it takes writes.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt, stream};
use mongodb::bson::{RawDocumentBuf, doc};
use mongodb::options::{Acknowledgment, WriteConcern};
use mongodb::{Client, Collection};
use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};

type Fallible<T> = Result<T, Box<dyn Error>>;

const USERS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("users");
const CLAIMS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("identities");
const LISTED: TableDefinition<'_, (&str, &[u8; 16]), ()> = TableDefinition::new("tenant_users");
const ATTRIBUTES: TableDefinition<'_, &[u8], ()> = TableDefinition::new("attributes");

/// Users in one transaction: as many as share one of the embedded store.
const BATCH: usize = 1_024;
/// The memory for pages, as `serve --cache 64MiB` has it.
const CACHE: usize = 48 << 20;
/// Documents in one insertion, and insertions at once.
const DOCUMENTS: usize = 1_000;
const AT_ONCE: usize = 4;

/// The rows of one user.
#[derive(Default)]
struct Rows {
    user: Vec<u8>,
    tenant: String,
    claims: Vec<(Vec<u8>, Vec<u8>)>,
    attributes: Vec<Vec<u8>>,
}

#[tokio::main]
async fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["redb", from, to] => copy(from, to),
        ["scan", file] => scan(file),
        ["mongo", uri, from, to] => insert(uri, from, to).await,
        ["initiate", uri] => initiate(uri).await,
        _ => Err("see the module's comment".into()),
    }
}

fn print(users: usize, begun: Instant) {
    println!("{:.0}", users as f64 / begun.elapsed().as_secs_f64());
}

fn copy(from: &str, to: &str) -> Fallible<()> {
    let users: Vec<_> = read(from)?.into_iter().collect();
    let database = Database::builder().set_cache_size(CACHE).create(to)?;
    let begun = Instant::now();
    // Ids are in order, and those of an import are not: every so many users, from all of them.
    let stride = users.len().div_ceil(BATCH);
    for batch in 0..stride {
        let mut transaction = database.begin_write()?;
        transaction.set_quick_repair(true);
        {
            let mut all = transaction.open_table(USERS)?;
            let mut claims = transaction.open_table(CLAIMS)?;
            let mut listed = transaction.open_table(LISTED)?;
            let mut attributes = transaction.open_table(ATTRIBUTES)?;
            for (id, rows) in users.iter().skip(batch).step_by(stride) {
                all.insert(id, rows.user.as_slice())?;
                listed.insert((rows.tenant.as_str(), id), ())?;
                for (key, claim) in &rows.claims {
                    claims.insert(key.as_slice(), claim.as_slice())?;
                }
                for key in &rows.attributes {
                    attributes.insert(key.as_slice(), ())?;
                }
            }
        }
        transaction.commit()?;
    }
    print(users.len(), begun);
    Ok(())
}

/// The rows of all users.
fn read(file: &str) -> Fallible<BTreeMap<[u8; 16], Rows>> {
    let database = Database::open(file)?;
    let transaction = database.begin_read()?;
    let mut users = BTreeMap::<[u8; 16], Rows>::new();
    for entry in transaction.open_table(USERS)?.iter()? {
        let (id, user) = entry?;
        users.entry(*id.value()).or_default().user = user.value().to_vec();
    }
    for entry in transaction.open_table(LISTED)?.iter()? {
        let key = entry?.0;
        let (tenant, id) = key.value();
        users.entry(*id).or_default().tenant = tenant.to_owned();
    }
    for entry in transaction.open_table(CLAIMS)?.iter()? {
        let (key, claim) = entry?;
        // A claim begins with its owner's id.
        let owner = claim.value().first_chunk().ok_or("a claim that is too short")?;
        let claim = (key.value().to_vec(), claim.value().to_vec());
        users.entry(*owner).or_default().claims.push(claim);
    }
    for entry in transaction.open_table(ATTRIBUTES)?.iter()? {
        let key = entry?.0;
        // An index entry ends with its user's id.
        let id = key.value().last_chunk().ok_or("an entry that is too short")?;
        users.entry(*id).or_default().attributes.push(key.value().to_vec());
    }
    Ok(users)
}

fn scan(file: &str) -> Fallible<()> {
    let database = Database::open(file)?;
    let transaction = database.begin_read()?;
    let users = transaction.open_table(USERS)?;
    let begun = Instant::now();
    let mut bytes = 0;
    for entry in users.iter()? {
        bytes += entry?.1.value().len();
    }
    print(users.len()? as usize, begun);
    eprintln!("{bytes} bytes");
    Ok(())
}

async fn insert(uri: &str, from: &str, to: &str) -> Fallible<()> {
    let client = Client::with_uri_str(uri).await?;
    let mut batches = Vec::new();
    let mut users = 0;
    for name in ["users", "identities"] {
        let source: Collection<RawDocumentBuf> = client.database(from).collection(name);
        let documents: Vec<_> = source.find(doc! {}).await?.try_collect().await?;
        users = if name == "users" { documents.len() } else { users };
        let own = documents.chunks(DOCUMENTS).map(|batch| (name, batch.to_vec()));
        batches.extend(own.collect::<Vec<_>>());
    }

    let concern = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
    let begun = Instant::now();
    let inserts = stream::iter(batches.into_iter().map(|(name, batch)| {
        let into: Collection<RawDocumentBuf> = client.database(to).collection(name);
        let concern = concern.clone();
        async move {
            let insert = into.insert_many(batch).ordered(false).bypass_document_validation(true);
            insert.write_concern(concern).await
        }
    }));
    let mut inserts = inserts.buffer_unordered(AT_ONCE);
    while inserts.try_next().await?.is_some() {}
    print(users, begun);
    Ok(())
}

async fn initiate(uri: &str) -> Fallible<()> {
    let client = Client::with_uri_str(format!("{uri}/?directConnection=true")).await?;
    let admin = client.database("admin");
    admin.run_command(doc! { "replSetInitiate": {} }).await?;
    let hello = || admin.run_command(doc! { "hello": 1 });
    while !hello().await?.get_bool("isWritablePrimary")? {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    Ok(())
}
