//! The stored form of claims.

use locality_uuid::LocalityId;

use crate::error::Fault;
use polynym_directory::{Claim, Timestamp};

/// The length of a claim on an identity that a user owns: 16 bytes of the user's id, then the
/// version of the rules that made the key. Numbers are big-endian.
const OWNED: usize = 18;
/// The length of a claim that is a guard, or held, or has no owner: the bytes above, a byte of
/// flags, and the end of its hold. Fields of a newer program may follow.
const FLAGGED: usize = 27;

const GUARD: u8 = 1;
const HELD: u8 = 2;
const UNOWNED: u8 = 4;

/// The stored form of a claim.
pub fn encode_claim(claim: &Claim) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FLAGGED);
    bytes.extend(claim.owner.map_or([0; 16], |owner| *owner.as_bytes()));
    bytes.extend((claim.rules_version as u16).to_be_bytes());
    if claim.resolves_to().is_none() {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        bytes.push(
            flag(claim.guard, GUARD)
                | flag(claim.hold.is_some(), HELD)
                | flag(claim.owner.is_none(), UNOWNED),
        );
        bytes.extend(claim.hold.map_or(0, Timestamp::as_millis).to_be_bytes());
    }

    bytes
}

/// The claim of a stored form.
pub fn decode_claim(bytes: &[u8]) -> Result<Claim, Fault> {
    let fault = || Fault::damaged("a claim that is too short");
    let (owner, rest) = bytes.split_first_chunk::<16>().ok_or_else(fault)?;
    let (version, rest) = rest.split_first_chunk().ok_or_else(fault)?;
    let (flags, hold) = match rest.split_first() {
        None => (0, 0),
        Some((flags, rest)) => (*flags, i64::from_be_bytes(*rest.first_chunk().ok_or_else(fault)?)),
    };

    Ok(Claim {
        owner: (flags & UNOWNED == 0).then(|| LocalityId::from(*owner)),
        guard: flags & GUARD != 0,
        hold: (flags & HELD != 0).then(|| Timestamp::from_millis(hold)),
        rules_version: u16::from_be_bytes(*version).into(),
    })
}

/// The stored form of a claim that replaces `before` and keeps its unknown fields. None if it has
/// no unknown fields.
pub fn encode_claim_over(claim: &Claim, before: &[u8]) -> Option<Vec<u8>> {
    let unknown = before.get(FLAGGED..).filter(|unknown| !unknown.is_empty())?;
    let mut bytes = encode_claim(claim);
    // Absent flags and times are zero.
    bytes.resize(FLAGGED, 0);
    bytes.extend(unknown);
    Some(bytes)
}

/// The user that the key of a stored claim resolves to.
pub fn resolves_to(bytes: &[u8]) -> Result<Option<LocalityId>, Fault> {
    match bytes.len() {
        OWNED => Ok(bytes.first_chunk().map(|id| LocalityId::from(*id))),
        FLAGGED.. => Ok(decode_claim(bytes)?.resolves_to()),
        length => Err(Fault::damaged(format!("a claim of {length} bytes"))),
    }
}
