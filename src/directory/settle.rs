//! What it takes for users to change: which of them are written, and which claims lie between what they were and what
//! they are to be. The claims follow from the users alone, so that no change of a user can forget one.

use std::collections::BTreeMap;

use super::size::size;
use super::view::{Seen, Stop};
use super::{Claim, ClaimWrite, Effects, Error, Identity, Mutation, Needs, Record, User, View};
use crate::identifier::IdentityKey;

/// What becomes of one user.
pub struct Transition<'v> {
    /// As it was read; none where it is new.
    pub before: Option<&'v Record>,
    /// As it is to be.
    pub after: Record,
}

/// For each key whose claim changes, the claim before and after.
pub type Changes = BTreeMap<IdentityKey, (Option<Claim>, Option<Claim>)>;

/// The effects of a mutation under which users change so, the first of them being the one whom it is about.
pub fn settle(mutation: &Mutation, view: &View, mut transitions: Vec<Transition<'_>>) -> Result<Effects, Stop> {
    for Transition { before, after } in &mut transitions {
        after.user.settle_primaries();
        if let Some(before) = before.filter(|before| before.user != after.user) {
            after.user.update_time = mutation.time.max(before.user.update_time);
        }
    }
    if let Some(first) = transitions.first() {
        check_limits(mutation, first)?;
    }
    let mut changes = Changes::new();
    transitions.iter().for_each(|transition| add_changes(&mut changes, transition));
    let claims = writes(mutation, view, changes)?;
    let mut users = Vec::with_capacity(transitions.len());
    let mut unchanged = None;
    for Transition { before, after } in transitions {
        if before != Some(&after) {
            users.push(after);
        } else if after.id() == mutation.user_id {
            unchanged = Some(after.user);
        }
    }
    users.sort_unstable_by_key(Record::id);
    Ok(Effects { users, claims, subject: mutation.user_id, unchanged })
}

/// Nobody is refused for what was there before: a limit that was lowered only stops growth.
fn check_limits(mutation: &Mutation, Transition { before, after }: &Transition<'_>) -> Result<(), Error> {
    let had = |count: fn(&User) -> usize| before.map_or(0, |before| count(&before.user));
    let check = |what, limit, count: fn(&User) -> usize| match count(&after.user) {
        n if n > limit && n > had(count) => Err(Error::TooMany { what, limit, count: n }),
        _ => Ok(()),
    };
    check("identities", mutation.limits.identities, |user| user.identities.len())?;
    check("attributes", mutation.limits.attributes, |user| user.attributes.len())?;
    check("bytes", mutation.limits.bytes, size)
}

/// Adds the claims that lie between the two states of a user.
pub fn add_changes(changes: &mut Changes, Transition { before, after }: &Transition<'_>) {
    let had = before.map_or(&[][..], |before| &before.user.identities);
    let (released, taken) = differing(had, &after.user.identities);
    let claim = |identity: &Identity| (after.user.key(&identity.identifier), Some(Claim::of(after.id(), identity)));
    for (key, claim) in released.iter().map(claim) {
        changes.entry(key).or_default().0 = claim;
    }
    for (key, claim) in taken.iter().map(claim) {
        changes.entry(key).or_default().1 = claim;
    }
}

/// Two lists of identities without what both start and end with: the claims there are the same.
fn differing<'a>(before: &'a [Identity], after: &'a [Identity]) -> (&'a [Identity], &'a [Identity]) {
    let same = |(a, b): &(&Identity, &Identity)| a.identifier == b.identifier && a.rules_version == b.rules_version;
    let start = before.iter().zip(after).take_while(same).count();
    let (before, after) = (&before[start..], &after[start..]);
    let end = before.iter().rev().zip(after.iter().rev()).take_while(same).count();
    (&before[..before.len() - end], &after[..after.len() - end])
}

/// What to write for the claims to change so.
fn writes(mutation: &Mutation, view: &View, changes: Changes) -> Result<Vec<(IdentityKey, ClaimWrite)>, Stop> {
    let mut claims = Vec::with_capacity(changes.len());
    let mut needs = Needs::default();
    for (key, (before, after)) in changes {
        let write = match (before, after) {
            (before, after) if before == after => continue,
            (_, None) => ClaimWrite::Delete,
            (Some(_), Some(after)) => ClaimWrite::Update(after),
            (None, Some(after)) => match view.claim(&key) {
                Seen::Absent => ClaimWrite::Insert(after),
                Seen::There(claim) => return Err(refusal(mutation, &key, claim).into()),
                Seen::Unread => {
                    needs.claims.push(key);
                    continue;
                }
            },
        };
        claims.push((key, write));
    }
    if needs.claims.is_empty() { Ok(claims) } else { Err(Stop::Read(needs)) }
}

/// Why a key cannot be taken under which there is a claim.
fn refusal(mutation: &Mutation, key: &IdentityKey, claim: &Claim) -> Error {
    let field = mutation.field_of(key);
    match claim.resolves_to() {
        Some(owner) => Error::IdentityTaken { owner, field },
        None => Error::Internal("a claim of nobody".into()),
    }
}
