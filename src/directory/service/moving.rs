//! The rules of normalisation that a store has, and how a store gets others: its identities are
//! moved, and nothing names identifiers meanwhile.

use std::sync::Arc;

use locality_uuid::{Generator, Mode};

use super::admin::Problem;
use crate::directory::error::Error;
use crate::directory::model::tenant::Tenant;
use crate::directory::mutation::{Mutation, MutationKind};
use crate::directory::store::Store;
use crate::directory::{Directory, Limits};
use crate::identifier::Rules;

/// How many tenants are listed at once.
const TENANTS: usize = 100;

/// The versions of the rules of normalisation that a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRules {
    /// The version by which identifiers are normalised.
    pub version: u32,
    /// The version to which identities are being moved, while they are.
    pub next: Option<u32>,
}

impl StoredRules {
    /// The rules of a store whose identities are not being moved.
    pub const fn new(version: u32) -> Self {
        Self { version, next: None }
    }

    /// Whether a mutation is of these rules. One that names no identifier is of any.
    ///
    /// # Errors
    /// [`Error::RulesChanging`]
    pub fn check(self, mutation: &Mutation) -> Result<(), Error> {
        let is_same = mutation.rules.version() == self.version;
        let is_of_rules = match &mutation.change {
            MutationKind::Create(draft) => draft.identities.is_empty() || is_same,
            MutationKind::Link(_)
            | MutationKind::Unlink(_)
            | MutationKind::Replace(..)
            | MutationKind::Verify(..)
            | MutationKind::Move(..)
            | MutationKind::Release(_) => is_same,
            // They give identities to users that were looked at before.
            MutationKind::Merge(..) | MutationKind::Unmerge(_) => true,
            _ => return Ok(()),
        };
        let names_none =
            matches!(&mutation.change, MutationKind::Create(draft) if draft.identities.is_empty());
        if is_of_rules && (self.next.is_none() || names_none) {
            Ok(())
        } else {
            Err(Error::RulesChanging)
        }
    }
}

/// Moves all identities of a store to `rules`, or only finds those that cannot be moved. Passes
/// how many users were looked at and how many identities were moved to `progress`.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::OutcomeUnknown`] and [`Error::Internal`], after which another
/// run can go on.
pub async fn move_all(
    store: Arc<dyn Store>,
    rules: Rules,
    dry_run: bool,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Vec<Problem>, Error> {
    let limits = Limits::default();
    let directory = Directory::new(store.clone(), Generator::new(Mode::Variable), limits);
    let directory = Arc::new(directory.under(rules));
    let (mut problems, mut users, mut moved) = (Vec::new(), 0, 0);
    for tenant in tenants(&*store).await? {
        let mut moving = directory.renormalize(tenant, "", dry_run).await?;
        loop {
            let step = moving.step().await?;
            problems.append(&mut step.problems);
            progress(users + step.users, moved + step.moved);
            if step.last.is_none() {
                (users, moved) = (users + step.users, moved + step.moved);
                break;
            }
        }
    }
    Ok(problems)
}

/// All tenants; that which is meant where none is named, too.
async fn tenants(store: &dyn Store) -> Result<Vec<Tenant>, Error> {
    let mut tenants = vec![Tenant::DEFAULT];
    let mut after = String::new();
    loop {
        let found = store.tenants("", &after, TENANTS).await?;
        let Some(last) = found.last() else { return Ok(tenants) };
        after = last.name.as_str().to_owned();
        tenants.extend(
            found.into_iter().map(|tenant| tenant.name).filter(|name| *name != Tenant::DEFAULT),
        );
    }
}
