//! The diagnosis and the repair of a candidate: pure functions, so that stores can call them inside
//! a transaction too.

use super::checkable::{Candidate, CandidateState, Presence, Side};
use super::finding::Inconsistency;
use polynym_directory::{Claim, ClaimWrite, Timestamp};

/// The fault of a candidate, if it has one.
pub fn diagnose(
    candidate: &Candidate,
    state: &CandidateState,
    now: Timestamp,
) -> Option<Inconsistency> {
    match candidate.side {
        Side::Listed => diagnose_listed(candidate, state, now),
        Side::Claimed => diagnose_claimed(candidate, state, now),
    }
}

/// The write on the candidate's key that repairs it. None without a fault, or without a known
/// repair.
pub fn plan_repair(
    candidate: &Candidate,
    state: &CandidateState,
    now: Timestamp,
) -> Option<ClaimWrite> {
    let fault = diagnose(candidate, state, now).filter(|fault| fault.is_repairable())?;
    let expected = || expected(candidate, state).cloned();
    match fault {
        Inconsistency::Unclaimed => expected().map(ClaimWrite::Insert),
        Inconsistency::Misclaimed | Inconsistency::Differs => expected().map(ClaimWrite::Update),
        _ => Some(ClaimWrite::Delete),
    }
}

/// The claim that the candidate's user must have.
fn expected<'s>(candidate: &Candidate, state: &'s CandidateState) -> Option<&'s Claim> {
    match &state.user {
        Presence::Present(user) => user.claim(&candidate.key),
        Presence::Absent | Presence::Unreadable => None,
    }
}

fn diagnose_listed(
    candidate: &Candidate,
    state: &CandidateState,
    now: Timestamp,
) -> Option<Inconsistency> {
    let expected = expected(candidate, state)?;
    let claim = match &state.claim {
        Presence::Present(claim) => claim,
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
    match &state.owner {
        Presence::Present(other) if other.claim(&candidate.key).is_some() => {
            Some(Inconsistency::Shared)
        }
        Presence::Present(_) | Presence::Absent => Some(Inconsistency::Misclaimed),
        Presence::Unreadable => Some(Inconsistency::Unclear),
    }
}

/// Whether a hold has ended. Its key is free, even if the claim still exists.
fn is_over(claim: &Claim, now: Timestamp) -> bool {
    claim.hold.is_some_and(|until| until <= now)
}

/// The fault of a candidate from a claim. A user that cannot be read may list the key.
fn diagnose_claimed(
    candidate: &Candidate,
    state: &CandidateState,
    now: Timestamp,
) -> Option<Inconsistency> {
    let Presence::Present(claim) = &state.claim else { return None };
    if claim.owner != candidate.user || is_over(claim, now) {
        return None;
    }

    match &state.user {
        _ if claim.owner.is_none() => claim.hold.is_none().then_some(Inconsistency::Unowned),
        Presence::Absent => Some(Inconsistency::Ownerless),
        Presence::Present(user) if user.claim(&candidate.key).is_none() => {
            Some(Inconsistency::Unlisted)
        }
        Presence::Present(_) | Presence::Unreadable => None,
    }
}
