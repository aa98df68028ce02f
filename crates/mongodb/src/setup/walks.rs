//! Walks over whole collections for `store verify`.

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use mongodb::Collection;
use mongodb::bson::{RawDocument, RawDocumentBuf, doc};
use mongodb::options::ReadConcern;

use crate::database::collections::LONG_READ;
use crate::schema::fields::ID;
use crate::setup::integrity::{BATCH, IntegritySession, failure};
use polynym_directory::Error;

impl IntegritySession {
    /// All documents of a collection, ascending by id.
    pub(super) fn walk<T: Send + 'static>(
        &self,
        collection: &Collection<RawDocumentBuf>,
        row: fn(&RawDocument) -> T,
    ) -> BoxStream<'_, Result<T, Error>> {
        let collection = collection.clone();
        let rows = async move {
            let mut finds = self.in_order().await?;
            let find = collection.find(doc! {}).sort(doc! { ID: 1 }).batch_size(BATCH as u32);
            let find = find.read_concern(ReadConcern::majority()).max_time(LONG_READ);
            let cursor = find.session(&mut finds.session).await.map_err(failure)?;
            let rows =
                stream::try_unfold((finds, cursor), move |(mut finds, mut cursor)| async move {
                    let next =
                        cursor.next(&mut finds.session).await.transpose().map_err(failure)?;
                    self.learn(&finds);
                    Ok::<_, Error>(next.map(|document| (row(&document), (finds, cursor))))
                });
            Ok::<_, Error>(rows)
        };
        stream::once(rows).try_flatten().boxed()
    }
}
