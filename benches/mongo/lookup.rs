//! Ways to look up an identifier on a replica set, beside the store's: what a plain program with
//! the driver does, a join in the database, and identifiers inside the user with an index on them.

use std::sync::Arc;

use mongodb::IndexModel;
use mongodb::bson::doc;
use mongodb::options::IndexOptions;
use polynym::store::coalesce::Coalesced;

use crate::Result;
use crate::bench::{Bench, CONCURRENCIES, Contender};
use crate::documents;
use crate::people::People;
use crate::place::Place;
use crate::readers::{Inside, Lookup, OfStore, Resolves, TwoFinds};
use crate::stores::{IDENTITIES, INSIDE, USERS, open};

const COMPARISON: &str = "lookup";
const PLACE: &str = "replica set";

pub async fn run(bench: &mut Bench, place: &Place, database: &str) -> Result<()> {
    let people = Arc::new(People::new(bench.users)?);
    let store = open(place, database, &[]).await?;
    let collection = |name| place.database(database).collection(name);
    let (identities, users, inside) =
        (collection(IDENTITIES), collection(USERS), collection(INSIDE));
    let unique = IndexModel::builder()
        .keys(doc! { "i": 1 })
        .options(IndexOptions::builder().unique(true).build());
    inside.create_index(unique.build()).await?;
    eprintln!("loading {} users in two forms", bench.users);
    place.load(&users, &people, documents::users).await?;
    place.load(&identities, &people, documents::claims).await?;
    place.load(&inside, &people, documents::users_with_keys).await?;
    place.settle().await?;

    let contenders = [
        contender(
            "two finds, a plain program",
            &people,
            TwoFinds { identities: identities.clone(), users },
        ),
        contender("two finds, the store", &people, OfStore(store.clone())),
        contender(
            "coalesced",
            &people,
            OfStore(store.layered(|inner| Coalesced::new(inner, Default::default()))),
        ),
        contender("one $lookup", &people, Lookup { identities, users: USERS }),
        contender("an index inside the user", &people, Inside { users: inside }),
    ];
    bench.compare(COMPARISON, place, people.len(), &CONCURRENCIES, &contenders).await
}

fn contender(
    what: &'static str,
    people: &Arc<People>,
    reader: impl crate::readers::Reader,
) -> Contender {
    Contender::new(PLACE, what, Resolves { reader, people: people.clone() })
}
