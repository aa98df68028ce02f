//! Moves a store to other rules of normalisation. No mutation may name identifiers meanwhile.

use std::sync::Arc;

use locality_uuid::{Generator, Mode};

use crate::error::Error;
use crate::model::limits::Limits;
use crate::model::tenant::Tenant;
use crate::service::Directory;
use crate::service::tenants::admin::Problem;
use crate::service::tenants::each_tenant::each_tenant;
use crate::stores::{Backend, Tenants};
use polynym_identifier::Rules;

/// Moves all identities of a store to `rules`, or in a dry run only finds those that cannot be
/// moved. Reports the number of users read and of identities moved to `progress`.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::OutcomeUnknown`] and [`Error::Internal`], after which another
/// run can continue.
pub async fn move_all(
    backend: Backend,
    rules: Rules,
    dry_run: bool,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Vec<Problem>, Error> {
    let limits = Limits::default();
    let directory = Directory::new(backend.clone(), Generator::new(Mode::Variable), limits);
    let directory = Arc::new(directory.with_rules(rules));
    let (mut problems, mut users, mut moved) = (Vec::new(), 0, 0);
    for tenant in tenants(&*backend.tenants).await? {
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
