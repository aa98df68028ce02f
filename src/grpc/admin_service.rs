//! AdminService: purging, holds, new rules and tenants.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, stream};
use tonic::{Request, Response, Status, Streaming};

use super::authorization::{permitted_tenant, with_caller};
use super::registry_service::{call, with_dry_run};
use super::status::{reason, status};
use super::{backup, convert, duplicates, export, import, policies, usage};
use crate::access::Call;
use crate::directory::encoded::encode::identifier_message;
use crate::directory::encoded::tenant::tenant_message;
use crate::directory::encoded::tenant_event::tenant_event_message;
use crate::directory::error::{Error, Invalid};
use crate::directory::model::tenant_record::TenantRecord;
use crate::directory::service::Directory;
use crate::directory::service::tenants::admin::{Problem, Progress, Renormalization};
use crate::proto::services::admin_service_server::AdminService;
use crate::proto::v1;
use v1::renormalize_response::Problem as ProblemMessage;

/// Tenants in a page by default, and at most (AIP-158).
const PAGE: usize = 50;
const LARGEST_PAGE: usize = 1_000;

pub struct AdminApi(pub Arc<Directory>);

#[tonic::async_trait]
impl AdminService for AdminApi {
    async fn purge_user(
        &self,
        request: Request<v1::PurgeUserRequest>,
    ) -> Result<Response<v1::PurgeUserResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let call = call(
            &self.0,
            &caller,
            "PurgeUser",
            &request.tenant,
            &request.etag,
            &request.request_id,
        )?;
        let purged = self
            .0
            .purge(with_dry_run(call, request.validate_only), &request.user_id)
            .await
            .map_err(status)?;
        Ok(Response::new(v1::PurgeUserResponse {
            user_ids: purged.iter().map(ToString::to_string).collect(),
        }))
    }

    async fn release_hold(
        &self,
        request: Request<v1::ReleaseHoldRequest>,
    ) -> Result<Response<v1::ReleaseHoldResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let call = call(&self.0, &caller, "ReleaseHold", &request.tenant, "", &request.request_id)?;
        let raw = convert::raw(request.identifier.as_ref());
        let identifier = self.0.release_hold(call, raw).await.map_err(status)?;
        Ok(Response::new(v1::ReleaseHoldResponse {
            identifier: Some(identifier_message(&identifier)),
        }))
    }

    type RenormalizeStream =
        Pin<Box<dyn Stream<Item = Result<v1::RenormalizeResponse, Status>> + Send>>;

    async fn renormalize(
        &self,
        request: Request<v1::RenormalizeRequest>,
    ) -> Result<Response<Self::RenormalizeStream>, Status> {
        let (caller, request) = with_caller(request)?;
        let tenant = permitted_tenant(&caller, &request.tenant)?;
        let run = self
            .0
            .renormalize(tenant, &request.page_token, request.validate_only)
            .await
            .map_err(status)?;
        let steps = stream::try_unfold(Some(run), |run| async move {
            let Some(run) = run else { return Ok(None) };
            step(run).await.map(Some).map_err(status)
        });

        Ok(Response::new(Box::pin(steps)))
    }

    async fn get_tenant(
        &self,
        request: Request<v1::GetTenantRequest>,
    ) -> Result<Response<v1::GetTenantResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let name = permitted_tenant(&caller, &request.tenant)?;
        let tenant = self.0.tenant(&name).await.map_err(status)?;
        Ok(Response::new(v1::GetTenantResponse { tenant: Some(tenant_message(&tenant)) }))
    }

    async fn update_tenant(
        &self,
        request: Request<v1::UpdateTenantRequest>,
    ) -> Result<Response<v1::UpdateTenantResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let call = call(
            &self.0,
            &caller,
            "UpdateTenant",
            &request.tenant,
            &request.etag,
            &request.request_id,
        )?;
        let mask = request.update_mask.as_ref().map(|mask| mask.paths.as_slice());
        let update = policies::update(request.policies.as_ref(), mask).map_err(status)?;
        let tenant = self
            .0
            .set_tenant(with_dry_run(call, request.validate_only), update)
            .await
            .map_err(status)?;
        Ok(Response::new(v1::UpdateTenantResponse { tenant: Some(tenant_message(&tenant)) }))
    }

    async fn delete_tenant(
        &self,
        request: Request<v1::DeleteTenantRequest>,
    ) -> Result<Response<v1::DeleteTenantResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let call = call(
            &self.0,
            &caller,
            "DeleteTenant",
            &request.tenant,
            &request.etag,
            &request.request_id,
        )?;
        let deleted =
            self.0.delete_tenant(with_dry_run(call, request.validate_only), request.force).await;
        let tenant = deleted.map_err(status)?.as_ref().map(tenant_message);
        Ok(Response::new(v1::DeleteTenantResponse { tenant }))
    }

    type ImportUsersStream = import::Responses;

    async fn import_users(
        &self,
        request: Request<Streaming<v1::ImportUsersRequest>>,
    ) -> Result<Response<Self::ImportUsersStream>, Status> {
        let (caller, requests) = with_caller(request)?;
        Ok(Response::new(import::import(self.0.clone(), caller, requests)))
    }

    type ExportUsersStream = export::Responses;

    async fn export_users(
        &self,
        request: Request<v1::ExportUsersRequest>,
    ) -> Result<Response<Self::ExportUsersStream>, Status> {
        let (caller, request) = with_caller(request)?;
        let tenant = permitted_tenant(&caller, &request.tenant)?;
        Ok(Response::new(export::export(&self.0, tenant, &request).await?))
    }

    type FindDuplicatesStream = duplicates::Responses;

    async fn find_duplicates(
        &self,
        request: Request<v1::FindDuplicatesRequest>,
    ) -> Result<Response<Self::FindDuplicatesStream>, Status> {
        let (caller, request) = with_caller(request)?;
        let tenant = permitted_tenant(&caller, &request.tenant)?;
        Ok(Response::new(duplicates::find(&self.0, tenant, &request).await?))
    }

    type BackupStoreStream = backup::Responses;

    async fn backup_store(
        &self,
        request: Request<v1::BackupStoreRequest>,
    ) -> Result<Response<Self::BackupStoreStream>, Status> {
        let (caller, _) = with_caller(request)?;
        Ok(Response::new(backup::backup(self.0.clone(), &caller)?))
    }

    async fn list_tenants(
        &self,
        request: Request<v1::ListTenantsRequest>,
    ) -> Result<Response<v1::ListTenantsResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let size = page_size(request.page_size).map_err(status)?;
        // One more than asked for shows whether there is another page.
        let listed = self.own_tenants(&caller, &request.tenant, &request.page_token, size + 1);
        let mut tenants = listed.await.map_err(status)?;
        let more = tenants.len() > size;
        tenants.truncate(size);
        let next_page_token = tenants
            .last()
            .filter(|_| more)
            .map(|tenant| tenant.name.to_string())
            .unwrap_or_default();
        let tenants = tenants.iter().map(tenant_message).collect();

        Ok(Response::new(v1::ListTenantsResponse { tenants, next_page_token }))
    }

    async fn list_tenant_history(
        &self,
        request: Request<v1::ListTenantHistoryRequest>,
    ) -> Result<Response<v1::ListTenantHistoryResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let tenant = permitted_tenant(&caller, &request.tenant)?;
        let context = self.0.context(tenant, &caller.name, "ListTenantHistory", "");
        let history = convert::tenant_history(&request).map_err(status)?;
        let page = self.0.tenant_history(&context, history).await.map_err(status)?;
        Ok(Response::new(v1::ListTenantHistoryResponse {
            events: page.events.iter().map(tenant_event_message).collect(),
            next_page_token: page.next_page_token,
        }))
    }

    async fn get_usage(
        &self,
        request: Request<v1::GetUsageRequest>,
    ) -> Result<Response<v1::GetUsageResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let tenant = permitted_tenant(&caller, &request.tenant)?;
        let context = self.0.context(tenant, &caller.name, "GetUsage", "");
        let wanted = usage::usage(&request).map_err(status)?;
        let report = self.0.usage(&context, wanted).await.map_err(status)?;
        Ok(Response::new(usage::usage_message(report)))
    }

    async fn list_attribute_names(
        &self,
        request: Request<v1::ListAttributeNamesRequest>,
    ) -> Result<Response<v1::ListAttributeNamesResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let tenant = permitted_tenant(&caller, &request.tenant)?;
        let size = page_size(request.page_size).map_err(status)?;
        // One more than asked for shows whether there is another page.
        let listed = self.0.attribute_names(&tenant, &request.page_token, size + 1).await;
        let mut names = listed.map_err(status)?;
        let more = names.len() > size;
        names.truncate(size);
        let next_page_token = names.last().filter(|_| more).cloned().unwrap_or_default();

        Ok(Response::new(v1::ListAttributeNamesResponse { names, next_page_token }))
    }
}

impl AdminApi {
    /// So many tenants that the caller may work in, after `token`. No token names another one.
    async fn own_tenants(
        &self,
        caller: &Call,
        prefix: &str,
        token: &str,
        count: usize,
    ) -> Result<Vec<TenantRecord>, Error> {
        let (mut own, mut after) = (Vec::new(), token.to_owned());
        loop {
            let page = self.0.tenants(prefix, &after, count).await?;
            let is_last = page.len() < count;
            after = page.last().map(|tenant| tenant.name.to_string()).unwrap_or_default();
            own.extend(
                page.into_iter().filter(|tenant| caller.tenants.contains(tenant.name.as_str())),
            );
            if is_last || own.len() >= count {
                own.truncate(count);
                return Ok(own);
            }
        }
    }
}

fn page_size(size: i32) -> Result<usize, Error> {
    let size = usize::try_from(size)
        .map_err(|_| Error::invalid(Invalid::Field, "page_size", "must not be negative"))?;
    Ok(if size == 0 { PAGE } else { size.min(LARGEST_PAGE) })
}

/// One step, and what is left to do after it.
///
/// Yields first: messages that are ready at once would be sent together, so that the caller saw
/// no progress, and a run would go on although nobody reads it.
async fn step(
    mut run: Renormalization,
) -> Result<(v1::RenormalizeResponse, Option<Renormalization>), Error> {
    tokio::task::yield_now().await;
    let progress = run.step().await?;
    let (message, more) = (progress_message(progress), progress.last.is_some());
    Ok((message, more.then_some(run)))
}

fn progress_message(progress: &Progress) -> v1::RenormalizeResponse {
    v1::RenormalizeResponse {
        users: progress.users as i64,
        moved: progress.moved as i64,
        failed: progress.failed as i64,
        problems: progress.problems.iter().map(problem_message).collect(),
        page_token: progress.last.map(|id| id.to_string()).unwrap_or_default(),
    }
}

fn problem_message(problem: &Problem) -> ProblemMessage {
    ProblemMessage {
        user_id: problem.user.to_string(),
        identifier: Some(identifier_message(&problem.identifier)),
        reason: reason(&problem.error).to_owned(),
        message: problem.error.to_string(),
    }
}
