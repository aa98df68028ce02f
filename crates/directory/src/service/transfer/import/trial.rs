//! What the lines of a dry run would write, for the later lines.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

use super::{Import, Line};
use crate::model::claim::ClaimWrite;
use crate::mutation::read_set::{Outcome, Write};
use crate::trial::Trial;

impl Import {
    /// Whether an earlier line of a dry run has the same content: an import counts the later one as
    /// imported.
    pub(super) fn is_repeated(&self, content: u128) -> bool {
        self.trial.as_ref().is_some_and(|trial| trial.has_request(content))
    }

    /// Remembers what a line of a dry run would write.
    pub(super) fn foreseen(&self, mut outcome: Outcome) -> Outcome {
        if let Some(trial) = &self.trial {
            foresee(trial, std::mem::take(&mut outcome.foreseen));
        }
        outcome
    }
}

/// The content of a line in its tenant.
pub(super) fn content(line: &Line<'_>) -> u128 {
    let seed = xxh3_64(&line.content.to_be_bytes());
    xxh3_128_with_seed(line.tenant.as_str().as_bytes(), seed)
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
