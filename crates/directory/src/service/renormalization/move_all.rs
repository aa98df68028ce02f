//! Moves a store to other rules of normalisation. No mutation may name identifiers meanwhile.

use std::sync::Arc;

use locality_uuid::{Generator, Mode};

use crate::error::Error;
use crate::limits::Limits;
use crate::model::tenant::Tenant;
use crate::service::Directory;
use crate::service::tenants::each_tenant::each_tenant;
use crate::service::tenants::renormalization::Problem;
use crate::stores::{Backend, Tenants};
use polynym_identifier::Rules;

/// The progress of a move.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    /// Users that were read.
    pub users: u64,
    /// Identities that were moved, or would be.
    pub identities: u64,
    /// Identities that the rules reject. They keep their form and their rules.
    pub kept: u64,
}

impl Moved {
    /// The progress in words. `outcome` says what happened to the identities.
    pub fn text(self, outcome: &str) -> String {
        let Self { users, identities, kept } = self;
        let moved = format!("{users} users, {identities} identities {outcome}");
        match kept {
            0 => moved,
            kept => format!("{moved}, {kept} that the new rules reject keep their form"),
        }
    }
}

/// Moves all identities of a store to `rules`, or in a dry run only finds those that cannot be
/// moved. Reports the progress of all tenants so far to `progress`.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::OutcomeUnknown`] and [`Error::Internal`], after which another
/// run can continue.
pub async fn move_all(
    backend: Backend,
    rules: Rules,
    dry_run: bool,
    progress: &(dyn Fn(Moved) + Sync),
) -> Result<Vec<Problem>, Error> {
    let limits = Limits::default();
    let directory = Directory::new(backend.clone(), Generator::new(Mode::Variable), limits);
    let directory = Arc::new(directory.with_rules(rules));
    let (mut problems, mut before, mut unreadable) = (Vec::new(), Moved::default(), 0);
    for tenant in tenants(&*backend.tenants).await? {
        let mut moving = directory.renormalize(tenant, "", dry_run).await?;
        loop {
            let step = moving.step().await?;
            problems.append(&mut step.problems);
            unreadable += step.unreadable.len();
            let moved = Moved {
                users: before.users + step.users,
                identities: before.identities + step.moved,
                kept: before.kept + step.kept,
            };
            progress(moved);
            if step.last.is_none() {
                before = moved;
                break;
            }
        }
    }

    if unreadable > 0 {
        let message = format!("{unreadable} users cannot be read: run `polynym store verify`");
        return Err(Error::Internal(message.into()));
    }
    Ok(problems)
}

/// The names of all tenants. The default tenant is first, because it may have no record yet.
async fn tenants(store: &dyn Tenants) -> Result<Vec<Tenant>, Error> {
    let mut tenants = vec![Tenant::DEFAULT];
    each_tenant(store, |tenant| {
        if tenant.name != Tenant::DEFAULT {
            tenants.push(tenant.name);
        }
    })
    .await?;
    Ok(tenants)
}
