//! Calls of admins: tenants and holds.

use std::time::Instant;

use crate::error::Error;
use crate::model::policies::PolicyUpdate;
use crate::model::tenant::Tenant;
use crate::model::tenant_record::TenantRecord;
use crate::mutation::read_set::MutationReport;
use crate::mutation::{Mutation, MutationKind, TenantChange};
use crate::service::Directory;
use crate::service::context::MutationCall;
use crate::service::mutate::mutation_log::MutationLog;
use crate::service::page_token;
use crate::tenant_cache::KnownTenant;
use polynym_identifier::{Identifier, RawIdentifier};

impl Directory {
    /// Ends the hold on an identifier. Returns its canonical form.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::NotHeld`], and those of
    /// [`crate::stores::Mutations::mutate`].
    pub async fn release_hold(
        &self,
        call: MutationCall<'_>,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<Identifier, Error> {
        let rules = self.rules_to_change().await?;
        let identifier = self.held_identifier(rules, &call.context.tenant, raw).await?;
        let kind = MutationKind::ReleaseHold(identifier.clone());
        self.execute_with_rules(rules, call, kind).await?;
        Ok(identifier)
    }

    /// A tenant with its policies.
    ///
    /// # Errors
    /// [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn tenant(&self, name: &Tenant) -> Result<TenantRecord, Error> {
        self.backend.tenants.tenant(name).await?.ok_or(Error::TenantNotFound)
    }

    /// Up to `limit` tenants after `token`, by name, whose names start with `prefix`.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Unavailable`].
    pub async fn tenants(
        &self,
        prefix: &str,
        token: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Error> {
        page_token::tenant(token)?;
        self.backend.tenants.tenants(prefix, token, limit).await
    }

    /// Up to `limit` attribute names of a tenant, after `token`.
    ///
    /// # Errors
    /// [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn attribute_names(
        &self,
        tenant: &Tenant,
        token: &str,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        self.known_tenant(tenant).await?;
        self.backend.tenants.attribute_names(tenant, token, limit).await
    }

    /// Changes a tenant's policies, and creates the tenant if it does not exist.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::EtagMismatch`], and those of
    /// [`crate::stores::Mutations::mutate`].
    pub async fn set_tenant(
        &self,
        call: MutationCall<'_>,
        update: PolicyUpdate,
    ) -> Result<TenantRecord, Error> {
        update.check()?;
        self.change_tenant(call, TenantChange::Set(update)).await
    }

    /// Changes a tenant.
    pub(crate) async fn change_tenant(
        &self,
        call: MutationCall<'_>,
        change: TenantChange,
    ) -> Result<TenantRecord, Error> {
        let (name, dry_run) = (call.context.tenant.clone(), call.dry_run);
        let kind = MutationKind::Tenant(change);
        let mutation = self.mutation(call.clone(), kind, KnownTenant::default())?;
        let began = Instant::now();
        let log = MutationLog::new(&call, None);
        let outcome = self.backend.mutations.mutate(mutation).await;
        log.write(&outcome);

        match outcome?.report {
            MutationReport::Tenant(tenant) => {
                if !dry_run {
                    self.tenants.learn_change(&name, Some(KnownTenant::from(&*tenant)), began);
                    self.queue_jobs(&tenant);
                }
                Ok(*tenant)
            }
            _ => Err(Error::Internal("a mutation of a tenant without its tenant".into())),
        }
    }

    /// The tenant of a mutation. The first mutation creates the tenant, unless only admins do, or
    /// it is a dry run.
    pub(crate) async fn tenant_to_change(
        &self,
        call: &MutationCall<'_>,
    ) -> Result<KnownTenant, Error> {
        let (name, dry_run) = (&call.context.tenant, call.dry_run);
        match self.tenants.get(&self.backend.tenants, name).await? {
            Some(tenant) if tenant.is_deleted => Err(Error::TenantNotFound),
            Some(tenant) => Ok(tenant),
            None if !self.auto_creates(name) => Err(Error::TenantNotFound),
            None if dry_run => Ok(KnownTenant::default()),
            None => {
                let kind = MutationKind::Tenant(TenantChange::Set(PolicyUpdate::default()));
                let mutation = Mutation::new(name.clone(), call.context.now.time, kind);
                let began = Instant::now();
                let MutationReport::Tenant(tenant) =
                    self.backend.mutations.mutate(mutation).await?.report
                else {
                    return Err(Error::Internal(
                        "a mutation of a tenant without its tenant".into(),
                    ));
                };
                let tenant = KnownTenant::from(&*tenant);
                self.tenants.learn_change(name, Some(tenant.clone()), began);
                Ok(tenant)
            }
        }
    }
}
