//! Applies a plan. Each tenant changes by one call with the etag that was compared, so that a
//! change by somebody else is seen and compared again.

use std::time::Duration;

use super::difference::between;
use super::node::Fault;
use super::plan::{Action, Step, compare, deletion, request};
use super::reader::{Declared, defaults};
use super::show;
use crate::client::Session;
use crate::failure::Failure;
use crate::output::printable;
use crate::tenant::delete;
use polynym_client::reasons::ETAG_MISMATCH;
use polynym_proto::v1::{DeleteTenantRequest, Tenant, UpdateTenantRequest};

/// The maximum attempts to change a tenant that others change, too.
const MAX_ATTEMPTS: u32 = 10;
/// The bounds of the pause before another attempt, in milliseconds.
const PAUSE_MILLIS: std::ops::Range<u64> = 20..200;

/// Applies the steps in their order, and waits for deletions.
pub async fn apply(session: &Session, steps: Vec<Step<'_>>) -> Result<(), Failure> {
    let (count, mut deleted) = (steps.len(), Vec::new());
    for (done, step) in steps.into_iter().enumerate() {
        let (name, session) = (step.tenant.clone(), session.with_tenant(&step.tenant));
        let outcome = match step.action {
            Action::Create(declared) | Action::Update(declared) => {
                set(&session, declared, step).await
            }
            Action::Delete => remove(&session, step.etag).await.map(|()| deleted.push(session)),
        };
        if let Err(failure) = outcome {
            let tenant = printable(&name);
            eprintln!("stopped at {tenant}, after {done} of {count} tenants: run this again");
            return Err(failure.without_request_id());
        }
    }
    for session in deleted {
        delete::wait(&session).await?;
    }
    Ok(())
}

/// Begins the deletion of the session's tenant, which has this etag.
async fn remove(session: &Session, mut etag: String) -> Result<(), Failure> {
    let tenant = session.tenant();
    for _ in 0..MAX_ATTEMPTS {
        let request = DeleteTenantRequest { tenant: tenant.clone(), etag, ..Default::default() };
        match session.admin().delete_tenant(request).await {
            Ok(_) => {
                let tenant = printable(&tenant);
                eprintln!("{tenant} is being deleted, even if this command is stopped");
                return Ok(());
            }
            Err(error) if error.reason() == ETAG_MISMATCH => {}
            Err(error) => return Err(session.failure(error)),
        }
        pause().await;
        match deletion(session).await? {
            Some(again) => etag = again.etag,
            None => return Ok(()),
        }
    }
    Err(changed_by_others(&tenant))
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(PAUSE_MILLIS))).await;
}

fn changed_by_others(tenant: &str) -> Failure {
    let tenant = printable(tenant);
    Failure::Other(format!(
        "{tenant} was changed by others during each of {MAX_ATTEMPTS} attempts: run this again"
    ))
}

/// Changes a tenant until it is as the files describe it.
async fn set(session: &Session, declared: &Declared, first: Step<'_>) -> Result<(), Failure> {
    let mut step = first;
    for _ in 0..MAX_ATTEMPTS {
        if attempt(session, declared, &step).await? {
            return Ok(());
        }
        pause().await;
        let mut faults = Vec::new();
        match compare(session, declared, &mut faults).await? {
            Some(again) => step = again,
            None => {
                let rejected = faults.pop();
                let failure = |rule: Fault| Failure::Other(printable(&rule.message).into_owned());
                return rejected.map_or(Ok(()), |rule| Err(failure(rule)));
            }
        }
        eprintln!("{} was changed meanwhile, and is compared again", printable(&declared.name));
        show::step(session, &step)?;
    }
    Err(changed_by_others(&declared.name))
}

/// Makes a change. Returns false if the tenant differs from the one that was compared.
async fn attempt(session: &Session, declared: &Declared, step: &Step<'_>) -> Result<bool, Failure> {
    let etag = match step.action {
        Action::Create(_) => match create(session).await? {
            Some(etag) => etag,
            None => return Ok(false),
        },
        _ => step.etag.clone(),
    };
    match session.admin().update_tenant(request(declared, &etag, false)).await {
        Ok(_) => Ok(true),
        Err(error) if error.reason() == ETAG_MISMATCH => Ok(false),
        Err(error) => {
            if matches!(step.action, Action::Create(_)) {
                let name = printable(&declared.name);
                eprintln!("{name} was created with the policies of a new tenant");
            }
            Err(session.failure(error))
        }
    }
}

/// Creates the session's tenant with the policies of a new one. Returns its etag; none if somebody
/// else has created it with other policies.
async fn create(session: &Session) -> Result<Option<String>, Failure> {
    let request = UpdateTenantRequest { tenant: session.tenant(), ..Default::default() };
    let answer = session.answer(session.admin().update_tenant(request).await)?;
    let Tenant { etag, policies, .. } = answer.tenant.unwrap_or_default();
    let is_new = between(&defaults(), &policies.unwrap_or_default()).is_empty();
    Ok(Some(etag).filter(|_| is_new))
}
