//! Look-ups that begin with a guess of the owner. A user's document lists what the user owns, so a
//! user that lists the key is the answer, as of the moment of that one read. A wrong guess costs
//! one read more.

use futures_util::future::try_join;
use locality_uuid::LocalityId;

use super::collections::Collections;
use super::error::Fault;
use super::read::Pair;
use crate::directory::encoded::encoded_user::Found;
use crate::directory::stores::{ANSWER_BYTES, Consistency, View};
use crate::identifier::IdentityKey;

/// The keys of a look-up with a guess, by their places, and those without.
#[derive(Default)]
struct Guesses {
    places: Vec<usize>,
    owners: Vec<LocalityId>,
    others: Vec<usize>,
}

impl Collections {
    /// The claims and users of `keys`, in order, until the users have [`ANSWER_BYTES`]; and the
    /// number of finds that follow one another. Keys with a guess are read from the users while the
    /// claims of the others are read.
    pub(super) async fn guessed_pairs(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
    ) -> Result<(Vec<Pair>, u32), Fault> {
        let guesses = self.guesses(keys, consistency);
        if guesses.places.is_empty() {
            return self.pairs(keys, &mut self.plain(consistency), view).await;
        }

        let other_keys: Vec<_> = guesses.others.iter().map(|n| keys[*n].clone()).collect();
        let mut finds = self.plain(consistency);
        let ((guessed, guess_reads), (others, reads)) = try_join(
            self.confirm(keys, &guesses, consistency, view),
            self.pairs(&other_keys, &mut finds, view),
        )
        .await?;

        let mut pairs: Vec<Option<Pair>> = vec![None; keys.len()];
        guessed.into_iter().for_each(|(n, pair)| pairs[n] = Some(pair));
        guesses.others.into_iter().zip(others).for_each(|(n, pair)| pairs[n] = Some(pair));
        Ok((answered(pairs), reads.max(guess_reads)))
    }

    /// The guesses for `keys`; none where a guess could answer what another look-up has already
    /// seen replaced: on a cluster, a commit shows on one shard before another, and a plain read
    /// of a user does not wait for it. Reads of claims are ordered by the claim; linearizable reads
    /// wait.
    fn guesses(&self, keys: &[IdentityKey], consistency: Consistency) -> Guesses {
        let mut guesses = Guesses::default();
        let may_guess = !(self.is_routed && consistency == Consistency::Latest);
        for (n, key) in keys.iter().enumerate() {
            match self.hints.guess(key).filter(|_| may_guess) {
                Some(owner) => {
                    guesses.places.push(n);
                    guesses.owners.push(owner);
                }
                None => guesses.others.push(n),
            }
        }
        guesses
    }

    /// Reads the guessed owners; the keys of wrong guesses are looked up by their claims.
    async fn confirm(
        &self,
        keys: &[IdentityKey],
        guesses: &Guesses,
        consistency: Consistency,
        view: View,
    ) -> Result<(Vec<(usize, Pair)>, u32), Fault> {
        let mut finds = self.plain(consistency);
        let (users, mut reads) =
            self.users(guesses.owners.iter().copied().map(Some), &mut finds, view).await?;
        let (mut pairs, mut wrong) = (Vec::with_capacity(users.len()), Vec::new());
        for (n, user) in guesses.places.iter().zip(users) {
            let user = user.ok().flatten();
            match user.and_then(|user| Found::new(user, &keys[*n])) {
                Some(found) => pairs.push((*n, Pair::Owned(found))),
                None => wrong.push(*n),
            }
        }

        if !wrong.is_empty() {
            let wrong_keys: Vec<_> = wrong.iter().map(|n| keys[*n].clone()).collect();
            let (again, more) = self.pairs(&wrong_keys, &mut finds, view).await?;
            pairs.extend(wrong.into_iter().zip(again));
            reads += more;
        }
        Ok((pairs, reads))
    }
}

/// The pairs before the first that is missing, until the users have [`ANSWER_BYTES`].
fn answered(pairs: Vec<Option<Pair>>) -> Vec<Pair> {
    let mut bytes = 0;
    let has_room = |pair: &Pair| {
        let has_room = bytes <= ANSWER_BYTES;
        bytes += pair.bytes();
        has_room
    };
    pairs.into_iter().map_while(|pair| pair).take_while(has_room).collect()
}
