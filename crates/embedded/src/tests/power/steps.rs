//! Steps for the model, drawn from random numbers with a seed.

use super::Random;
use conformance::step::{Action, Etag, NAMES, POLICIES, Step};
use polynym_directory::{ConflictPolicy::PrimaryWins, ConflictPolicy::SecondaryWins};

/// Milliseconds of a day and an hour.
const DAY_AND_HOUR: i64 = 25 * 3_600_000;
/// The number of users that steps concern: the first ones of a run.
const USERS: usize = 40;

/// A step of any kind.
pub fn any(random: &mut Random) -> Step {
    let mut below = |bound| random.below(bound);
    let (name, other) = (below(NAMES.len()), below(NAMES.len()));
    let action = match below(20) {
        0..4 => Action::Create((0..below(4)).map(|_| below(NAMES.len())).collect(), below(2) == 0),
        4 => Action::Rename(below(3) as u8),
        5 => Action::Set(below(4), Some(below(3) as i64)),
        6..9 => Action::Link(name, below(2) == 0, below(5) == 0),
        9 | 10 => Action::Unlink(name),
        11 | 12 => Action::Replace(name, other),
        13 => Action::Verify(name, below(2) == 0),
        14 => Action::Delete,
        15 => [Action::Disable, Action::Enable, Action::Undelete][below(3)].clone(),
        16 => [Action::Purge, Action::Tend, Action::Release(name)][below(3)].clone(),
        17 | 18 => Action::Merge(below(USERS), [PrimaryWins, SecondaryWins][below(2)]),
        _ => Action::Unmerge(below(USERS)),
    };
    Step {
        action,
        user: below(USERS),
        tenant: usize::from(below(6) == 0),
        etag: [Etag::Any, Etag::Any, Etag::Any, Etag::Current][below(4)],
        request: (below(4) == 0).then(|| (below(3) as u8, below(2) as u64)),
        room: 100,
        policies: below(POLICIES),
        dry_run: below(12) == 0,
        elapsed: if below(8) == 0 { DAY_AND_HOUR } else { below(1_000) as i64 },
    }
}
