//! Finds in order: each sees at least what those before it have seen, on whichever shards. A find
//! with read concern majority ignores prepared transactions: it shows the documents from before,
//! even if another shard has already shown the commit. After a cluster time it waits for them.

use futures_util::TryStreamExt;
use mongodb::bson::{Document, RawDocumentBuf};
use mongodb::options::{FindOptions, ReadConcern};
use mongodb::{ClientSession, Collection};

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::times::Times;

/// Finds in order, by one causally consistent session.
pub struct OrderedFinds {
    pub session: ClientSession,
}

impl Collections {
    /// Begins finds in order.
    pub async fn in_order(&self) -> Result<OrderedFinds, Fault> {
        self.in_order_after(&Times::default()).await
    }

    /// Begins finds in order that see all that was seen until these times.
    pub async fn in_order_after(&self, times: &Times) -> Result<OrderedFinds, Fault> {
        Ok(OrderedFinds { session: times.session(&self.client).await? })
    }
}

impl OrderedFinds {
    /// All majority-committed documents that a filter matches.
    pub async fn find_documents(
        &mut self,
        from: &Collection<RawDocumentBuf>,
        filter: Document,
        options: FindOptions,
    ) -> Result<Vec<RawDocumentBuf>, Fault> {
        let find = from.find(filter).with_options(options).read_concern(ReadConcern::majority());
        let mut cursor = find.session(&mut self.session).await?;
        Ok(cursor.stream(&mut self.session).try_collect().await?)
    }

    /// The first majority-committed document that matches `filter`, with the fields of
    /// `projection`.
    pub async fn find_document(
        &mut self,
        from: &Collection<RawDocumentBuf>,
        filter: Document,
        projection: Document,
        mut options: FindOptions,
    ) -> Result<Option<RawDocumentBuf>, Fault> {
        (options.projection, options.limit) = (Some(projection), Some(-1));
        Ok(self.find_documents(from, filter, options).await?.pop())
    }
}
