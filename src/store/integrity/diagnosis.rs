//! The diagnosis of a key and a user, and its repair. Pure: a store decides from reads inside a
//! transaction exactly as from reads outside of one.

use super::checkable::{Candidate, Moment, Presence, Side};
use super::finding::Inconsistency;
use crate::directory::model::claim::{Claim, ClaimWrite};
use crate::directory::model::timestamp::Timestamp;

/// The fault of a candidate, if it has one.
pub fn diagnose(candidate: &Candidate, moment: &Moment, now: Timestamp) -> Option<Inconsistency> {
    match candidate.side {
        Side::Listed => diagnose_listed(candidate, moment, now),
        Side::Claimed => diagnose_claimed(candidate, moment, now),
    }
}

/// The write under the candidate's key that repairs it; none if there is no fault, or no repair can
/// be told.
pub fn plan_repair(candidate: &Candidate, moment: &Moment, now: Timestamp) -> Option<ClaimWrite> {
    let fault = diagnose(candidate, moment, now).filter(|fault| fault.is_repairable())?;
    let expected = || expected(candidate, moment).cloned();
    match fault {
        Inconsistency::Unclaimed => expected().map(ClaimWrite::Insert),
        Inconsistency::Misclaimed | Inconsistency::Differs => expected().map(ClaimWrite::Update),
        _ => Some(ClaimWrite::Delete),
    }
}

/// The claim that follows from the candidate's user.
fn expected<'m>(candidate: &Candidate, moment: &'m Moment) -> Option<&'m Claim> {
    match &moment.user {
        Presence::There(user) => user.claim(&candidate.key),
        Presence::Absent | Presence::Unreadable => None,
    }
}

fn diagnose_listed(
    candidate: &Candidate,
    moment: &Moment,
    now: Timestamp,
) -> Option<Inconsistency> {
    let expected = expected(candidate, moment)?;
    let claim = match &moment.claim {
        Presence::There(claim) => claim,
        _ if is_over(expected, now) => return None,
        Presence::Absent => return Some(Inconsistency::Unclaimed),
        Presence::Unreadable => return Some(Inconsistency::Unclear),
    };
    if claim == expected || (claim.owner != candidate.user && is_over(expected, now)) {
        return None;
    }

    if claim.owner == candidate.user {
        return Some(Inconsistency::Differs);
    }
    match &moment.owner {
        Presence::There(other) if other.claim(&candidate.key).is_some() => {
            Some(Inconsistency::Shared)
        }
        Presence::There(_) | Presence::Absent => Some(Inconsistency::Misclaimed),
        Presence::Unreadable => Some(Inconsistency::Unclear),
    }
}

/// A key that is held no longer is free, whether or not its claim is still there.
fn is_over(claim: &Claim, now: Timestamp) -> bool {
    claim.hold.is_some_and(|until| until <= now)
}

/// Of a user who cannot be read, nothing is known of what it lists.
fn diagnose_claimed(
    candidate: &Candidate,
    moment: &Moment,
    now: Timestamp,
) -> Option<Inconsistency> {
    let Presence::There(claim) = &moment.claim else { return None };
    if claim.owner != candidate.user || is_over(claim, now) {
        return None;
    }

    match &moment.user {
        _ if claim.owner.is_none() => claim.hold.is_none().then_some(Inconsistency::Unowned),
        Presence::Absent => Some(Inconsistency::Ownerless),
        Presence::There(user) if user.claim(&candidate.key).is_none() => {
            Some(Inconsistency::Unlisted)
        }
        Presence::There(_) | Presence::Unreadable => None,
    }
}
