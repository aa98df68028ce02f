//! The latest time that the front end has heard of, from shards and clients: a snapshot taken at it
//! holds everything that was acknowledged through here.

use std::sync::Mutex;

use mongodb::bson::{RawDocument, RawDocumentBuf, Timestamp};

const FIELD: &str = "$clusterTime";

/// A moment of the cluster: the time, and the same with its signature, as servers pass it on.
#[derive(Clone)]
pub struct Moment {
    pub time: Timestamp,
    pub signed: RawDocumentBuf,
}

#[derive(Default)]
pub struct Clock(Mutex<Option<Moment>>);

impl Clock {
    /// Takes notice of the time in a command or a reply.
    pub fn advance(&self, document: &RawDocument) {
        let Ok(signed) = document.get_document(FIELD) else { return };
        let Ok(time) = signed.get_timestamp("clusterTime") else { return };
        let mut latest = self.0.lock().unwrap();
        if latest.as_ref().is_none_or(|latest| latest.time < time) {
            *latest = Some(Moment { time, signed: signed.to_owned() });
        }
    }

    /// None before any shard has answered.
    pub fn now(&self) -> Option<Moment> {
        self.0.lock().unwrap().clone()
    }
}
