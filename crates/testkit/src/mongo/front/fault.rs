//! Error replies of the front end: from a server, or its own.

use std::io;

use mongodb::bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};

/// The client may retry a transaction with this label.
pub const TRANSIENT: &str = "TransientTransactionError";
/// The client may retry a commit with this label.
pub const RETRYABLE: &str = "RetryableWriteError";

/// StaleConfig, StaleEpoch and StaleDbVersion: the routing table of the sender is outdated.
const STALE: [i32; 3] = [13388, 150, 249];

/// An error reply.
pub struct Fault(Document);

impl Fault {
    pub fn own(code: i32, name: &str, message: impl Into<String>) -> Self {
        Self(doc! { "ok": 0.0, "errmsg": message.into(), "code": code, "codeName": name })
    }

    /// Returns the error reply of a server.
    pub fn status_details(reply: Document) -> Self {
        Self(reply)
    }

    /// Sets the label, which replaces all others.
    pub fn labelled(mut self, label: &str) -> Self {
        self.0.insert("errorLabels", vec![label]);
        self
    }

    /// Returns true if a server rejects the routing table as outdated.
    pub fn is_stale(&self) -> bool {
        let is_stale =
            |error: &Document| error.get_i32("code").is_ok_and(|code| STALE.contains(&code));
        let errors = self.0.get_array("writeErrors").into_iter().flatten();
        is_stale(&self.0) || errors.filter_map(Bson::as_document).any(is_stale)
    }

    /// Returns true if a server is unreachable.
    pub fn is_lost(&self) -> bool {
        self.0.get_i32("code").is_ok_and(|is| is == LOST)
    }

    /// Returns true if a server is unreachable or no primary: another may be, soon.
    pub fn is_away(&self) -> bool {
        self.is_lost() || self.0.get_i32("code").is_ok_and(|code| NO_PRIMARY.contains(&code))
    }

    pub fn reply(self) -> RawDocumentBuf {
        RawDocumentBuf::try_from(&self.0).unwrap_or_default()
    }
}

/// ShutdownInProgress, PrimarySteppedDown, NotWritablePrimary, InterruptedDueToReplStateChange,
/// NotPrimaryNoSecondaryOk and NotPrimaryOrSecondary.
const NO_PRIMARY: [i32; 6] = [91, 189, 10107, 11602, 13435, 13436];

/// HostUnreachable: the code of a router for an unreachable shard.
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

/// Returns true if a reply reports success.
pub fn is_ok(reply: &RawDocument) -> bool {
    reply.get_f64("ok").is_ok_and(|ok| ok == 1.0)
}
