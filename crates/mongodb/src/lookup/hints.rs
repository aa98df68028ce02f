//! Look-ups that begin with a hint of the owner. A user's document lists its identities, so a
//! hinted user that lists the key is the answer. A wrong hint costs one more read.

use futures_util::future::try_join;
use locality_uuid::LocalityId;

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::lookup::find::ReadMode;
use crate::lookup::key_lookup::KeyLookup;
use crate::lookup::late_find::Call;
use polynym_directory::{ANSWER_BYTES, Consistency, Found, View};
use polynym_identifier::IdentityKey;

/// The keys of a look-up with hints, by index, their hinted owners, and the keys without.
#[derive(Default)]
struct HintedKeys {
    indices: Vec<usize>,
    owners: Vec<LocalityId>,
    others: Vec<usize>,
}

impl Collections {
    /// Looks up `keys`, in order, until the users have [`ANSWER_BYTES`]. Returns the number of
    /// sequential finds, too. The hinted users and the claims of other keys are read concurrently.
    pub async fn look_up_with_hints(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        call: Call,
    ) -> Result<(Vec<KeyLookup>, u32), Fault> {
        let hinted = self.hinted_keys(keys, consistency);
        if hinted.indices.is_empty() {
            return self.look_up(keys, &mut self.read_mode(consistency, call), view).await;
        }

        let other_keys: Vec<_> = hinted.others.iter().map(|n| keys[*n].clone()).collect();
        let mut mode = self.read_mode(consistency, call);
        let ((checked, hint_reads), (others, reads)) = try_join(
            self.check_hints(keys, &hinted, self.read_mode(consistency, call), view),
            self.look_up(&other_keys, &mut mode, view),
        )
        .await?;

        let mut lookups: Vec<Option<KeyLookup>> = vec![None; keys.len()];
        checked.into_iter().for_each(|(n, lookup)| lookups[n] = Some(lookup));
        hinted.others.into_iter().zip(others).for_each(|(n, lookup)| lookups[n] = Some(lookup));
        Ok((answered(lookups), reads.max(hint_reads)))
    }

    /// The hints for `keys`. There are none for the latest state on a cluster, where a commit
    /// becomes visible on one shard before another: a plain read of a hinted user could return a
    /// state that an earlier look-up saw replaced. Reads by claim have an order; linearizable reads
    /// wait.
    fn hinted_keys(&self, keys: &[IdentityKey], consistency: Consistency) -> HintedKeys {
        let mut hinted = HintedKeys::default();
        let uses_hints = !(self.is_routed && consistency == Consistency::Latest);
        for (n, key) in keys.iter().enumerate() {
            match self.hints.guess(key).filter(|_| uses_hints) {
                Some(owner) => {
                    hinted.indices.push(n);
                    hinted.owners.push(owner);
                }
                None => hinted.others.push(n),
            }
        }
        hinted
    }

    /// Reads the hinted owners. Keys with wrong hints are looked up by their claims.
    async fn check_hints(
        &self,
        keys: &[IdentityKey],
        hinted: &HintedKeys,
        mut mode: ReadMode<'_, '_>,
        view: View,
    ) -> Result<(Vec<(usize, KeyLookup)>, u32), Fault> {
        let (users, mut reads) =
            self.users(hinted.owners.iter().copied().map(Some), &mut mode, view).await?;
        let (mut lookups, mut wrong) = (Vec::with_capacity(users.len()), Vec::new());
        for (n, user) in hinted.indices.iter().zip(users) {
            match user.ok().flatten().and_then(|user| Found::new(user, &keys[*n])) {
                Some(found) => lookups.push((*n, KeyLookup::Owned(found))),
                None => wrong.push(*n),
            }
        }

        if !wrong.is_empty() {
            let wrong_keys: Vec<_> = wrong.iter().map(|n| keys[*n].clone()).collect();
            let (again, more) = self.look_up(&wrong_keys, &mut mode, view).await?;
            lookups.extend(wrong.into_iter().zip(again));
            reads += more;
        }
        Ok((lookups, reads))
    }
}

/// The look-ups before the first missing one, until the users have [`ANSWER_BYTES`].
fn answered(lookups: Vec<Option<KeyLookup>>) -> Vec<KeyLookup> {
    let mut bytes = 0;
    let has_room = |lookup: &KeyLookup| {
        let has_room = bytes <= ANSWER_BYTES;
        bytes += lookup.bytes();
        has_room
    };
    lookups.into_iter().map_while(|lookup| lookup).take_while(has_room).collect()
}
