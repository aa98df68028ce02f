//! What is wrong with a key and a user, and what to write so that it is not: pure, so that a store decides it from what
//! it has read inside a transaction exactly as from what it has read in passing.

use super::audited::{Moment, Side, Stood, Suspect};
use super::finding::Fault;
use crate::directory::{Claim, ClaimWrite, Timestamp};

/// What is wrong with a suspect, if anything is.
pub fn judge(suspect: &Suspect, moment: &Moment, now: Timestamp) -> Option<Fault> {
    match suspect.side {
        Side::Listed => judge_listed(suspect, moment, now),
        Side::Claimed => judge_claimed(suspect, moment, now),
    }
}

/// What to write under the suspect's key so that nothing is wrong; nothing where nothing is, or where nobody can tell.
pub fn remedy(suspect: &Suspect, moment: &Moment, now: Timestamp) -> Option<ClaimWrite> {
    let fault = judge(suspect, moment, now).filter(|fault| fault.can_be_settled())?;
    let expected = || expected(suspect, moment).cloned();
    match fault {
        Fault::Unclaimed => expected().map(ClaimWrite::Insert),
        Fault::Misclaimed | Fault::Differs => expected().map(ClaimWrite::Update),
        _ => Some(ClaimWrite::Delete),
    }
}

/// The claim that follows from the suspect's user.
fn expected<'m>(suspect: &Suspect, moment: &'m Moment) -> Option<&'m Claim> {
    match &moment.user {
        Stood::There(user) => user.claim(&suspect.key),
        Stood::Absent | Stood::Unreadable => None,
    }
}

fn judge_listed(suspect: &Suspect, moment: &Moment, now: Timestamp) -> Option<Fault> {
    let expected = expected(suspect, moment)?;
    let claim = match &moment.claim {
        Stood::There(claim) => claim,
        _ if is_over(expected, now) => return None,
        Stood::Absent => return Some(Fault::Unclaimed),
        Stood::Unreadable => return Some(Fault::Unclear),
    };
    if claim == expected || (claim.owner != suspect.user && is_over(expected, now)) {
        return None;
    }
    if claim.owner == suspect.user {
        return Some(Fault::Differs);
    }
    match &moment.owner {
        Stood::There(other) if other.claim(&suspect.key).is_some() => Some(Fault::Shared),
        Stood::There(_) | Stood::Absent => Some(Fault::Misclaimed),
        Stood::Unreadable => Some(Fault::Unclear),
    }
}

/// A key that is held no longer is free, whether or not its claim is still there.
fn is_over(claim: &Claim, now: Timestamp) -> bool {
    claim.hold.is_some_and(|until| until <= now)
}

/// Of a user who cannot be read, nothing is known of what it lists.
fn judge_claimed(suspect: &Suspect, moment: &Moment, now: Timestamp) -> Option<Fault> {
    let Stood::There(claim) = &moment.claim else { return None };
    if claim.owner != suspect.user || is_over(claim, now) {
        return None;
    }
    match &moment.user {
        _ if claim.owner.is_none() => claim.hold.is_none().then_some(Fault::Nobodys),
        Stood::Absent => Some(Fault::Ownerless),
        Stood::There(user) if user.claim(&suspect.key).is_none() => Some(Fault::Unlisted),
        Stood::There(_) | Stood::Unreadable => None,
    }
}
