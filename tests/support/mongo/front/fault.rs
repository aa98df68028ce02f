//! What the front end answers when it cannot do what it was asked: a server's own words, or its
//! own.

use std::io;

use mongodb::bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};

/// A transaction with this label can be begun again.
pub const TRANSIENT: &str = "TransientTransactionError";
/// A commit with this label can be sent again.
pub const RETRYABLE: &str = "RetryableWriteError";

/// StaleConfig, StaleEpoch and StaleDbVersion: the sender does not know where the chunks are now.
const STALE: [i32; 3] = [13388, 150, 249];

/// An answer that says no.
pub struct Fault(Document);

impl Fault {
    pub fn own(code: i32, name: &str, message: impl Into<String>) -> Self {
        Self(doc! { "ok": 0.0, "errmsg": message.into(), "code": code, "codeName": name })
    }

    /// What a server said.
    pub fn told(reply: Document) -> Self {
        Self(reply)
    }

    /// The same with a label, the only one.
    pub fn labelled(mut self, label: &str) -> Self {
        self.0.insert("errorLabels", vec![label]);
        self
    }

    /// Whether a server says that the table of chunks is old.
    pub fn is_stale(&self) -> bool {
        let is_stale =
            |error: &Document| error.get_i32("code").is_ok_and(|code| STALE.contains(&code));
        let errors = self.0.get_array("writeErrors").into_iter().flatten();
        is_stale(&self.0) || errors.filter_map(Bson::as_document).any(is_stale)
    }

    /// Whether a server is gone.
    pub fn is_lost(&self) -> bool {
        self.0.get_i32("code").is_ok_and(|is| is == LOST)
    }

    pub fn reply(self) -> RawDocumentBuf {
        RawDocumentBuf::try_from(&self.0).unwrap_or_default()
    }
}

/// HostUnreachable: what a router says when a shard does not answer.
const LOST: i32 = 6;

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::own(LOST, "HostUnreachable", error.to_string())
    }
}

impl From<mongodb::bson::error::Error> for Fault {
    fn from(error: mongodb::bson::error::Error) -> Self {
        Self::own(9, "FailedToParse", error.to_string())
    }
}

/// Whether a server's answer says yes.
pub fn is_ok(reply: &RawDocument) -> bool {
    reply.get_f64("ok").is_ok_and(|ok| ok == 1.0)
}
