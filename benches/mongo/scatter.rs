//! The cost of look-ups with one, two and three shards: routed by the identifier, and scattered to
//! all shards if identifiers are inside the users. In that form no index over all shards can be
//! unique, either.

use std::sync::Arc;

use locality_uuid::split_points;
use mongodb::IndexModel;
use mongodb::bson::{Bson, doc};
use polynym::directory::Backend;
use polynym::store::coalesce::Coalesced;

use crate::Result;
use crate::bench::{Bench, CONCURRENCIES, Contender};
use crate::documents;
use crate::people::People;
use crate::place::Place;
use crate::readers::{Inside, OfStore, Resolves};
use crate::stores::{IDENTITIES, INSIDE, USERS, open};

const COMPARISON: &str = "scatter";
/// Everything is loaded three times and a collection spread over this many pieces a shard.
const PIECES: usize = 4;
/// Of all users, so many are loaded here: three times over, through a router.
const SHARE: u64 = 10;

pub async fn run(bench: &mut Bench, place: &Place, database: &str) -> Result<()> {
    let people = Arc::new(People::new((bench.users / SHARE).max(1_000))?);
    let mut contenders = Vec::new();
    for count in 1..=place.shards().len() {
        let (database, shards) = (format!("{database}_{count}"), &place.shards()[..count]);
        eprintln!("loading {} users on {count} shards in two forms", people.len());
        let store = load(place, &database, shards, &people).await?;
        let inside = Inside { users: place.database(&database).collection(INSIDE) };
        let coalesced = store.clone().layered(|inner| Coalesced::new(inner, Default::default()));
        let name = if count == 1 { "1 shard".to_owned() } else { format!("{count} shards") };
        contenders.extend([
            Contender::new(
                &name,
                "two finds",
                Resolves { reader: OfStore(store), people: people.clone() },
            ),
            Contender::new(
                &name,
                "coalesced",
                Resolves { reader: OfStore(coalesced), people: people.clone() },
            ),
            Contender::new(
                &name,
                "scatter-gather",
                Resolves { reader: inside, people: people.clone() },
            ),
        ]);
    }
    bench.compare(COMPARISON, place, people.len(), &CONCURRENCIES, &contenders).await
}

async fn load(
    place: &Place,
    database: &str,
    shards: &[String],
    people: &Arc<People>,
) -> Result<Backend> {
    let store = open(place, database, shards).await?;
    let points =
        split_points(PIECES * shards.len()).into_iter().map(|id| Bson::from(documents::uuid(id)));
    place.spread(database, INSIDE, points.collect(), shards).await?;
    let collection = |name| place.database(database).collection(name);
    collection(INSIDE).create_index(IndexModel::builder().keys(doc! { "i": 1 }).build()).await?;
    place.load(&collection(USERS), people, documents::users).await?;
    place.load(&collection(IDENTITIES), people, documents::claims).await?;
    place.load(&collection(INSIDE), people, documents::users_with_keys).await?;
    place.settle().await?;
    Ok(store)
}
