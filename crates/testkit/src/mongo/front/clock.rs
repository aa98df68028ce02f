//! The latest cluster time received from shards and clients: a snapshot at this time contains every
//! write acknowledged through the front end.

use std::sync::Mutex;

use mongodb::bson::{RawDocument, RawDocumentBuf, Timestamp};

const FIELD: &str = "$clusterTime";

/// A cluster time, and the same with the signature that servers pass on.
#[derive(Clone)]
pub struct ClusterTime {
    pub time: Timestamp,
    pub signed: RawDocumentBuf,
}

#[derive(Default)]
pub struct Clock(Mutex<Option<ClusterTime>>);

impl Clock {
    /// Advances to the time in a command or a reply.
    pub fn advance(&self, document: &RawDocument) {
        let Ok(signed) = document.get_document(FIELD) else { return };
        let Ok(time) = signed.get_timestamp("clusterTime") else { return };
        let mut latest = self.0.lock().unwrap();
        if latest.as_ref().is_none_or(|latest| latest.time < time) {
            *latest = Some(ClusterTime { time, signed: signed.to_owned() });
        }
    }

    /// Returns `None` before the first reply of a shard.
    pub fn now(&self) -> Option<ClusterTime> {
        self.0.lock().unwrap().clone()
    }
}
