//! Tenants as they are kept: a name, its policies, and when they changed.

use xxhash_rust::xxh3::xxh3_64;

use super::view::Stop;
use super::{
    Effects, Error, Mutation, Policies, PolicyUpdate, Report, Tenant, Timestamp, Unknown, View, WireError, wire,
};
use crate::locality::LocalityId;

/// What is kept of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantRecord {
    /// Its name.
    pub name: Tenant,
    /// Its rules.
    pub policies: Policies,
    /// When it was created.
    pub create_time: Timestamp,
    /// When its policies last changed.
    pub update_time: Timestamp,
    /// Fields that a newer program added, to the tenant and to its policies.
    pub unknown: [Unknown; 2],
}

impl TenantRecord {
    /// A hash of what is visible of the tenant, as 16 hex digits.
    pub fn etag(&self) -> String {
        format!("{:016x}", xxh3_64(&self.encode()))
    }

    /// The form in which stores keep it.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode_tenant(self)
    }

    /// The tenant of what [`TenantRecord::encode`] gave.
    ///
    /// # Errors
    /// [`WireError`] where that is something else.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        wire::decode_tenant(bytes)
    }
}

/// Changes a tenant's policies, or makes it with them.
pub fn set(mutation: &Mutation, view: &View, update: &PolicyUpdate) -> Result<Effects, Stop> {
    let before = view.read_tenant()?;
    if mutation.etag.as_ref().is_some_and(|etag| before.is_none_or(|before| *etag != before.etag())) {
        return Err(Error::EtagMismatch.into());
    }
    let now = mutation.time;
    let name = mutation.tenant.clone();
    let new = || TenantRecord {
        name,
        policies: Policies::default(),
        create_time: now,
        update_time: now,
        unknown: Default::default(),
    };
    let mut after = before.cloned().unwrap_or_else(new);
    update.apply(&mut after.policies);
    if let Some(before) = before.filter(|before| before.policies != after.policies) {
        after.update_time = now.after(before.update_time);
    }
    let report = Report::Tenant(Box::new(after.clone()));
    let tenant = Some(after).filter(|after| before != Some(after));
    Ok(Effects { tenant, report, ..Effects::nothing(mutation.user_id) })
}

/// Answers a change that was carried out before with the tenant as it is now.
pub fn repeat(subject: LocalityId, view: &View) -> Result<Effects, Stop> {
    let tenant = view.read_tenant()?.ok_or(Error::TenantNotFound)?;
    Ok(Effects { report: Report::Tenant(Box::new(tenant.clone())), ..Effects::nothing(subject) })
}
