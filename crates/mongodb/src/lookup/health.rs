//! The health probe: finds keys without an owner, as look-ups do. A router does not report which
//! shard owns a key, so there are enough keys for every shard to own some.

use std::time::Duration;

use futures_util::future::try_join;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, RawDocumentBuf};
use mongodb::options::{ReadConcern, ReadPreference, SelectionCriteria};
use mongodb::{Collection, Database};

use tokio::task::JoinSet;

use crate::client::connect::connect_apart;
use crate::client::error::{Fault, OpenError};
use crate::database::collections::Collections;
use crate::lookup::plain_find::PlainFind;

/// The `appName` of its connections.
const APP_NAME: &str = "polynym health";
/// The time limit on a cluster, first for all shards and then for any.
const SHARD_TIMEOUT: Duration = Duration::from_secs(1);
/// The time limit for the primary of a replica set.
const REPLICA_SET_TIMEOUT: Duration = Duration::from_secs(3);
/// The keys of each collection. They spread about evenly over ids and hashes.
const PROBE_KEYS: u8 = 128;
/// If not all shards answer, one of this many keys is probed in a find of its own.
const SINGLE_KEY_STEP: usize = 16;
/// The limit of concurrent probes: those of single keys, beside those of all keys without an answer
/// yet.
const MAX_PROBES: u32 = 2 * (PROBE_KEYS as u32 / SINGLE_KEY_STEP as u32) + 2;

/// Connects for health probes.
///
/// # Errors
/// [`OpenError`].
pub async fn connect_probes(uri: &str) -> Result<Database, OpenError> {
    connect_apart(uri, APP_NAME, MAX_PROBES).await
}

impl Collections {
    /// Fails unless this program may write, and look-ups of some users are answered.
    pub async fn check(&self) -> Result<(), Fault> {
        self.version_guard.versions()?;
        let time = if self.is_routed { SHARD_TIMEOUT } else { REPLICA_SET_TIMEOUT };
        let [users, identities] = keys();
        let all = try_join(
            probe(self.users.clone(), users.clone(), time),
            probe(self.identities.clone(), identities.clone(), time),
        );
        let missing = all.await.err();

        match missing {
            Some(fault) if !self.is_routed || !self.any_answers(users, identities).await => {
                Err(fault)
            }
            missing => {
                self.reachability.record(missing.as_ref());
                Ok(())
            }
        }
    }

    /// Whether any shard answers. The other probes run to their ends: a find must not be dropped
    /// half-way.
    async fn any_answers(&self, users: Vec<Bson>, identities: Vec<Bson>) -> bool {
        let mut probes = JoinSet::new();
        for (from, keys) in [(&self.users, users), (&self.identities, identities)] {
            for key in keys.into_iter().step_by(SINGLE_KEY_STEP) {
                probes.spawn(probe(from.clone(), vec![key], SHARD_TIMEOUT));
            }
        }
        while let Some(probe) = probes.join_next().await {
            if matches!(probe, Ok(Ok(()))) {
                probes.detach_all();
                return true;
            }
        }
        false
    }
}

/// Fails unless a find of these keys is answered in time.
async fn probe(
    from: Collection<RawDocumentBuf>,
    keys: Vec<Bson>,
    time: Duration,
) -> Result<(), Fault> {
    let criteria = SelectionCriteria::ReadPreference(ReadPreference::Primary);
    let find = PlainFind { concern: ReadConcern::majority(), criteria, time };
    find.send(&from, keys, &[]).await.map(drop)
}

/// Keys of `users`, and keys of `identities`.
fn keys() -> [Vec<Bson>; 2] {
    let user = |n: u8| {
        let mut bytes = [0; 16];
        bytes[0] = n * (u8::MAX / PROBE_KEYS + 1);
        Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: bytes.to_vec() })
    };
    let identity = |n: u8| Bson::String(format!("probe {n}"));
    [(0..PROBE_KEYS).map(user).collect(), (0..PROBE_KEYS).map(identity).collect()]
}
