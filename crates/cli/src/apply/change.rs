//! Applies a plan. Each tenant changes by one call with the etag that was compared, so that a
//! change by somebody else is seen and compared again.

use std::time::Duration;

use super::difference::between;
use super::plan::{Action, Step, compare, request};
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
    let mut deleted = Vec::new();
    for step in steps {
        let session = session.with_tenant(&step.tenant);
        match step.action {
            Action::Create(declared) | Action::Update(declared) => {
                set(&session, declared, step).await?;
            }
            Action::Delete => {
                let Step { tenant, etag, .. } = step;
                let request = DeleteTenantRequest { tenant, etag, ..Default::default() };
                delete::send(&session, request).await?;
                deleted.push(session);
            }
        }
    }
    for session in deleted {
        let tenant = session.tenant();
        eprintln!("{} is being deleted, even if this command is stopped", printable(&tenant));
        delete::wait(&session).await?;
    }
    Ok(())
}

/// Makes a tenant what the files describe.
async fn set(session: &Session, declared: &Declared, first: Step<'_>) -> Result<(), Failure> {
    let mut step = first;
    for _ in 0..MAX_ATTEMPTS {
        if attempt(session, declared, &step).await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(fastrand::u64(PAUSE_MILLIS))).await;
        let mut faults = Vec::new();
        match compare(session, declared, &mut faults).await? {
            Some(again) => step = again,
            None => {
                let fault = faults.pop().map(|fault| Failure::Other(fault.message));
                return fault.map_or(Ok(()), Err);
            }
        }
        eprintln!("{} was changed meanwhile, and is compared again", printable(&declared.name));
        show::step(session, &step)?;
    }
    let (name, attempts) = (printable(&declared.name), MAX_ATTEMPTS);
    Err(Failure::Other(format!(
        "{name} was changed by others during each of {attempts} attempts: run this again"
    )))
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
        Err(error) => Err(session.failure(error)),
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
