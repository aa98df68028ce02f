//! What the lines of a dry run would write, for the later lines.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

use crate::model::claim::ClaimWrite;
use crate::model::tenant::Tenant;
use crate::mutation::read_set::{Outcome, Write};
use crate::trial::Trial;

/// Whether an earlier line of a dry run has the same content: an import counts the later one as
/// imported.
pub(super) fn is_repeated(trial: Option<&Trial>, content: u128) -> bool {
    trial.is_some_and(|trial| trial.has_request(content))
}

/// Remembers what a line of a dry run would write.
pub(super) fn foreseen(trial: Option<&Trial>, mut outcome: Outcome) -> Outcome {
    if let Some(trial) = trial {
        foresee(trial, std::mem::take(&mut outcome.foreseen));
    }
    outcome
}

/// The content of a line in its tenant.
pub(super) fn content(tenant: &Tenant, line: u128) -> u128 {
    xxh3_128_with_seed(tenant.as_str().as_bytes(), xxh3_64(&line.to_be_bytes()))
}

/// Adds to a trial what a mutation would write.
fn foresee(trial: &Trial, writes: Vec<Write>) {
    for write in writes {
        match write {
            Write::PutUser(record) => trial.put_user(&record),
            Write::RemoveUser(id) => trial.remove_user(id),
            Write::Claim(key, ClaimWrite::Insert(claim) | ClaimWrite::Update(claim)) => {
                trial.put_claim(key, Some(claim));
            }
            Write::Claim(key, ClaimWrite::Delete) => trial.put_claim(key, None),
            _ => {}
        }
    }
}
