//! Which shards take the writes, by kind of id. The ids are those of two hours, as four servers
//! would have made them; the hours pass as fast as the documents are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use locality_uuid::{Generator, Mode, split_points};
use mongodb::Collection;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, doc};
use polynym::directory::Timestamp;
use uuid::{NoContext, Uuid};

use crate::Result;
use crate::bench::Bench;
use crate::documents;
use crate::place::{Place, number};
use crate::report::Spread;

/// Pieces of the id space for each shard.
const PIECES: usize = 4;
const SERVERS: u32 = 4;
const MINUTES: u64 = 120;
/// The writes between two counts.
const SLICES: u64 = 24;
const MILLIS: u64 = 60_000;
/// The time for which sequential ids stay together.
const WINDOW: u64 = 10 * MILLIS;
/// A value of the size of a user.
const FILLER: [u8; 320] = [b'u'; 320];
const TOGETHER: usize = 500;
/// Of all users, so many are written of each kind.
const SHARE: u64 = 20;
/// Ids that tell their time lie in pieces of the year that has passed.
const YEAR: u64 = 365 * 24 * 60 * MILLIS;

#[derive(Clone, Copy)]
enum Ids {
    Variable,
    Sequential,
    Object,
    Version7,
}

const KINDS: [(&str, Ids); 4] = [
    ("Locality UUID, variable", Ids::Variable),
    ("Locality UUID, sequential", Ids::Sequential),
    ("ObjectId", Ids::Object),
    ("UUID version 7", Ids::Version7),
];

pub async fn run(bench: &mut Bench, place: &Place, database: &str) -> Result<()> {
    let of_slice = (bench.users / SHARE / SLICES).max(TOGETHER as u64 / 2);
    for (n, (name, ids)) in KINDS.into_iter().enumerate() {
        eprintln!("locality: {name}");
        // The start of a window of the sequential ids, so that slices lie inside windows.
        let start = Timestamp::now().as_millis() as u64 / WINDOW * WINDOW;
        let collection = format!("ids_{n}");
        place
            .spread(
                database,
                &collection,
                cuts(ids, place.shards().len() * PIECES, start),
                place.shards(),
            )
            .await?;
        let mut source = Source::new(ids, start);
        let target = place.database(database).collection::<Document>(&collection);
        let parts = place.parts(database, &collection);
        let (mut slices, mut before) = (Vec::new(), counts(&parts).await?);
        for slice in 0..SLICES {
            write(&target, &mut source, of_slice, slice).await?;
            let after = counts(&parts).await?;
            slices.push(after.iter().zip(&before).map(|(after, before)| after - before).collect());
            before = after;
        }
        place.settle().await?;
        let index_bytes = index_bytes(&parts).await?;
        bench.report.spreads.push(Spread { ids: name, minutes: MINUTES, slices, index_bytes });
    }
    Ok(())
}

/// The boundaries that cut the space of these ids into `pieces`.
fn cuts(ids: Ids, pieces: usize, now: u64) -> Vec<Bson> {
    let passed = (1..pieces as u64).map(|n| now - YEAR + YEAR / pieces as u64 * n);
    match ids {
        Ids::Variable | Ids::Sequential => {
            split_points(pieces).into_iter().map(|id| documents::uuid(id).into()).collect()
        }
        Ids::Object => passed
            .map(|at| ObjectId::from_parts((at / 1_000) as u32, [0; 5], [0; 3]).into())
            .collect(),
        Ids::Version7 => passed
            .map(|at| {
                uuid_value(uuid::Builder::from_unix_timestamp_millis(at, &[0; 10]).into_uuid())
            })
            .collect(),
    }
}

async fn write(
    target: &Collection<Document>,
    source: &mut Source,
    count: u64,
    slice: u64,
) -> Result<()> {
    let filler = Binary { subtype: BinarySubtype::Generic, bytes: FILLER.to_vec() };
    let step = MINUTES * MILLIS / (SLICES * count);
    let ids: Vec<_> = (0..count).map(|n| source.next((slice * count + n) * step)).collect();
    for some in ids.chunks(TOGETHER) {
        let documents: Vec<_> = some.iter().map(|id| doc! { "_id": id, "w": &filler }).collect();
        target.insert_many(documents).ordered(false).await?;
    }
    Ok(())
}

async fn counts(parts: &[Collection<Document>]) -> Result<Vec<u64>> {
    let mut counts = Vec::new();
    for part in parts {
        counts.push(part.estimated_document_count().await?);
    }
    Ok(counts)
}

async fn index_bytes(parts: &[Collection<Document>]) -> Result<f64> {
    let mut sum = 0.0;
    for part in parts {
        let stats = part
            .client()
            .database(&part.namespace().db)
            .run_command(doc! { "collStats": part.name() })
            .await?;
        sum += number(&stats, "totalIndexSize")?;
    }
    Ok(sum)
}

/// Servers that make ids in turn, by a clock that is set.
struct Source {
    ids: Ids,
    start: u64,
    now: Arc<AtomicU64>,
    generators: Vec<Generator>,
    made: u32,
}

impl Source {
    fn new(ids: Ids, start: u64) -> Self {
        let now = Arc::new(AtomicU64::new(start));
        let mode = if matches!(ids, Ids::Sequential) { Mode::Sequential } else { Mode::Variable };
        let generator = |_| {
            let now = now.clone();
            Generator::builder(mode)
                .random_origin()
                .clock(move || now.load(Ordering::Relaxed))
                .build()
        };
        Self { ids, start, generators: (0..SERVERS).map(generator).collect(), now, made: 0 }
    }

    /// An id made so many milliseconds after the start.
    fn next(&mut self, millis: u64) -> Bson {
        let now = self.start + millis;
        self.now.store(now, Ordering::Relaxed);
        self.made += 1;
        let server = self.made % SERVERS;
        match self.ids {
            Ids::Variable | Ids::Sequential => {
                documents::uuid(self.generators[server as usize].next_id()).into()
            }
            Ids::Object => {
                let [_, counter @ ..] = self.made.to_be_bytes();
                ObjectId::from_parts((now / 1_000) as u32, [server as u8; 5], counter).into()
            }
            Ids::Version7 => {
                let nanos = (now % 1_000 * 1_000_000) as u32;
                uuid_value(Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, now / 1_000, nanos)))
            }
        }
    }
}

fn uuid_value(id: Uuid) -> Bson {
    mongodb::bson::Uuid::from_bytes(id.into_bytes()).into()
}
