//! Documents in decoded form, for collections that look-ups do not read.

use futures_util::TryStreamExt;
use mongodb::Cursor;
use mongodb::bson::{Document, RawDocumentBuf};
use mongodb::error::Error as DriverError;

/// All documents of a cursor. The driver's code is compiled for encoded documents only.
pub async fn collect(cursor: Cursor<RawDocumentBuf>) -> Result<Vec<Document>, DriverError> {
    let documents: Vec<RawDocumentBuf> = cursor.try_collect().await?;
    documents.iter().map(|document| Ok(Document::try_from(document.as_ref())?)).collect()
}
