//! The probe of health: looks up keys that have no owner, with the finds of look-ups. A router does
//! not say which shard owns which key, so there are enough keys for every shard to own some.

use std::time::Duration;

use futures_util::future::{join_all, try_join};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson};
use mongodb::options::{ReadConcern, ReadPreference, SelectionCriteria};

use crate::store::mongo::client::error::Fault;
use crate::store::mongo::database::collections::Collections;
use crate::store::mongo::lookup::find::Finds;

/// The time that servers have to answer; on a cluster, first all of them and then any.
const TIME: Duration = Duration::from_secs(1);
/// The longest that the one primary of a replica set has, which is all of the store.
const ALONE: Duration = Duration::from_secs(3);
/// Keys of each collection. They share the range of ids and that of hashes about equally.
const KEYS: u8 = 128;
/// One key in so many is looked for alone, where not all of the shards answer.
const ALONE_EVERY: usize = 16;

impl Collections {
    /// Whether look-ups are answered, at least those of some users, and this program may write.
    pub async fn check(&self) -> Result<(), Fault> {
        self.fence.versions()?;
        let time = if self.is_routed { TIME } else { ALONE };
        let [users, identities] = keys();
        let all = try_join(
            self.probe_users(users.clone(), time),
            self.probe_identities(identities.clone(), time),
        );
        let missing = all.await.err();

        match missing {
            Some(fault) if !self.is_routed || !self.any(users, identities).await => Err(fault),
            missing => {
                self.reachability.note(missing.as_ref());
                Ok(())
            }
        }
    }

    /// Whether any shard answers. All probes are awaited: a find is not dropped half-way.
    async fn any(&self, users: Vec<Bson>, identities: Vec<Bson>) -> bool {
        let some = |keys: Vec<Bson>| keys.into_iter().step_by(ALONE_EVERY).map(|key| vec![key]);
        let users = join_all(some(users).map(|key| self.probe_users(key, TIME)));
        let identities = join_all(some(identities).map(|key| self.probe_identities(key, TIME)));
        let (users, identities) = futures_util::join!(users, identities);
        users.iter().chain(&identities).any(Result::is_ok)
    }

    async fn probe_users(&self, ids: Vec<Bson>, time: Duration) -> Result<(), Fault> {
        probe(time).find(&self.users, ids, None).await.map(drop)
    }

    async fn probe_identities(&self, keys: Vec<Bson>, time: Duration) -> Result<(), Fault> {
        probe(time).find(&self.identities, keys, None).await.map(drop)
    }
}

fn probe(time: Duration) -> Finds<'static, 'static> {
    let criteria = SelectionCriteria::ReadPreference(ReadPreference::Primary);
    Finds::Plain { concern: ReadConcern::majority(), criteria, time }
}

/// Keys of `users`, and keys of `identities`.
fn keys() -> [Vec<Bson>; 2] {
    let user = |n: u8| {
        let mut bytes = [0; 16];
        bytes[0] = n * (u8::MAX / KEYS + 1);
        Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: bytes.to_vec() })
    };
    let identity = |n: u8| Bson::String(format!("probe {n}"));
    [(0..KEYS).map(user).collect(), (0..KEYS).map(identity).collect()]
}
