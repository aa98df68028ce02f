//! The plan: the differences between the files and the server.

use std::collections::BTreeSet;

use prost_types::FieldMask;

use super::difference::{self, Difference, between};
use super::node::Fault;
use super::reader::{Declared, defaults};
use crate::client::Session;
use crate::failure::Failure;
use crate::output::printable;
use crate::tenant::delete;
use polynym_client::reasons::UPDATE_MASK_INVALID;
use polynym_client::{Error, Kind};
use polynym_proto::v1::{DeleteTenantRequest, Tenant, UpdateTenantRequest};

/// A change of a tenant.
#[derive(Debug)]
pub struct Step<'a> {
    /// The tenant.
    pub tenant: String,
    /// The change.
    pub action: Action<'a>,
    /// The differences; none of a tenant to delete.
    pub differences: Vec<Difference>,
    /// The etag of the tenant that was compared; empty if it does not exist.
    pub etag: String,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug)]
pub enum Action<'a> {
    /// The tenant is created.
    Create(&'a Declared),
    /// Its policies change.
    Update(&'a Declared),
    /// It is deleted.
    Delete,
}

/// The changes by which the tenants of the server become as files describe them. The server checks
/// each without applying it; its rejections are added to `faults`.
pub async fn steps<'a>(
    session: &Session,
    tenants: &'a [Declared],
    pruned: &[String],
    faults: &mut Vec<Fault>,
) -> Result<Vec<Step<'a>>, Failure> {
    let mut steps = Vec::new();
    let unchanged = |tenant: &str, failure: Failure| {
        eprintln!("nothing was changed: {} cannot be compared", printable(tenant));
        failure.without_request_id()
    };
    for declared in tenants {
        let compared = compare(&session.with_tenant(&declared.name), declared, faults).await;
        steps.extend(compared.map_err(|failure| unchanged(&declared.name, failure))?);
    }
    for name in pruned.iter().collect::<BTreeSet<_>>() {
        let deletion = deletion(&session.with_tenant(name)).await;
        steps.extend(deletion.map_err(|failure| unchanged(name, failure))?);
    }
    Ok(steps)
}

/// The change of a tenant, the session's; none if it is as described, or if the server rejects it.
/// The server's own form of the policies is compared, such as that of handles.
pub async fn compare<'a>(
    session: &Session,
    declared: &'a Declared,
    faults: &mut Vec<Fault>,
) -> Result<Option<Step<'a>>, Failure> {
    let current = find(session).await?;
    if current.as_ref().is_some_and(|tenant| tenant.delete_time.is_some()) {
        let tenant = &declared.name;
        let rule = format!("tenant {tenant} is being deleted: run this again once it is gone");
        return Err(Failure::Other(rule));
    }
    let wanted = match session.admin().update_tenant(request(declared, "", true)).await {
        Ok(answer) => answer.tenant.unwrap_or_default(),
        Err(error) if error.reason() == UPDATE_MASK_INVALID => {
            let rule = "the server is older than this command, and lacks some of its policies";
            return Err(Failure::Other(rule.to_owned()));
        }
        Err(error) if error.kind() == Kind::InvalidArgument => {
            faults.push(fault(declared, &error));
            return Ok(None);
        }
        Err(error) => return Err(session.failure(error)),
    };
    let action = match current {
        Some(_) => Action::Update(declared),
        None => Action::Create(declared),
    };
    let Tenant { etag, policies, .. } = current.unwrap_or_default();
    let before = policies.unwrap_or_else(defaults);
    let differences = between(&before, &wanted.policies.unwrap_or_default());
    if differences.is_empty() && matches!(action, Action::Update(_)) {
        return Ok(None);
    }
    Ok(Some(Step { tenant: declared.name.clone(), action, differences, etag }))
}

/// The request by which a tenant becomes as files describe it.
pub fn request(declared: &Declared, etag: &str, validate_only: bool) -> UpdateTenantRequest {
    UpdateTenantRequest {
        tenant: declared.name.clone(),
        policies: Some(declared.policies.clone()),
        update_mask: Some(FieldMask { paths: difference::paths() }),
        etag: etag.to_owned(),
        request_id: String::new(),
        validate_only,
    }
}

/// The record of the session's tenant.
async fn find(session: &Session) -> Result<Option<Tenant>, Failure> {
    Ok(session.find_tenant().await?.filter(|tenant| !tenant.etag.is_empty()))
}

/// The deletion of the session's tenant; none if it does not exist, or is being deleted.
pub async fn deletion(session: &Session) -> Result<Option<Step<'static>>, Failure> {
    let tenant = session.tenant();
    let Some(Tenant { etag, delete_time, .. }) = find(session).await? else {
        eprintln!("there is no tenant {}", printable(&tenant));
        return Ok(None);
    };
    if delete_time.is_some() {
        eprintln!("{} is being deleted already", printable(&tenant));
        return Ok(None);
    }
    let request = DeleteTenantRequest {
        tenant: tenant.clone(),
        etag: etag.clone(),
        validate_only: true,
        ..Default::default()
    };
    delete::send(session, request).await?;
    Ok(Some(Step { tenant, action: Action::Delete, differences: Vec::new(), etag }))
}

/// The fault that a rejection names, at the policy of its field, or else at the tenant.
fn fault(declared: &Declared, error: &Error) -> Fault {
    let path = error.field().and_then(|field| field.strip_prefix("policies."));
    let position = path.and_then(|path| declared.positions.get(path)).unwrap_or(&declared.position);
    Fault::new(*position, error.message())
}
