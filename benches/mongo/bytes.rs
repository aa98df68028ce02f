//! The bytes of claims and users on disk, in the store's form and in the obvious alternatives.

use std::sync::Arc;

use mongodb::bson::{Document, doc};
use mongodb::options::IndexOptions;
use mongodb::{Collection, IndexModel};

use crate::Result;
use crate::bench::Bench;
use crate::documents::{self, Form};
use crate::people::{KINDS, People};
use crate::place::{Place, number};
use crate::report::Size;

/// The name, the form, and the field beside `_id` that has a unique index.
const FORMS: [(&str, Form, Option<&str>); 6] = [
    ("claim, the key is its _id", documents::claims, None),
    ("claim, _id of its own and a unique field", documents::claims_with_own_id, Some("k")),
    ("claim, the key is its _id, long names", documents::claims_with_long_names, None),
    ("user in wire form", documents::users, None),
    ("user in wire form, long names", documents::users_with_long_names, None),
    ("user spelled out", documents::spelled_out, None),
];

pub async fn run(bench: &mut Bench, place: &Place, database: &str) -> Result<()> {
    // As many claims as there are users elsewhere.
    let people = Arc::new(People::new(bench.users.div_ceil(KINDS))?);
    for (n, (what, form, unique)) in FORMS.into_iter().enumerate() {
        eprintln!("bytes: {what}");
        let collection = place.database(database).collection::<Document>(&format!("form_{n}"));
        if let Some(field) = unique {
            let options = IndexOptions::builder().unique(true).build();
            collection
                .create_index(
                    IndexModel::builder().keys(doc! { field: 1 }).options(options).build(),
                )
                .await?;
        }
        place.load(&collection, &people, form).await?;
        place.settle().await?;
        bench.report.sizes.push(size(place, database, &collection, what).await?);
        collection.drop().await?;
    }
    Ok(())
}

async fn size(
    place: &Place,
    database: &str,
    collection: &Collection<Document>,
    what: &'static str,
) -> Result<Size> {
    let stats =
        place.database(database).run_command(doc! { "collStats": collection.name() }).await?;
    Ok(Size {
        what,
        documents: number(&stats, "count")? as u64,
        data_bytes: number(&stats, "size")?,
        disk_bytes: number(&stats, "storageSize")?,
        index_bytes: number(&stats, "totalIndexSize")?,
    })
}
