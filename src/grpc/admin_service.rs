//! AdminService: purging, holds, new rules and tenants.

use std::pin::Pin;

use futures_util::{Stream, stream};
use locality_uuid::LocalityId;
use tonic::{Request, Status, Streaming};

use super::api::Api;
use super::authorization::{authorized, permitted_tenant};
use super::read_log::log_read_of_all;
use super::status::{Refusal, status};
use super::{convert, policies};
use polynym_access::Call;
use polynym_directory::{
    Error, Invalid, LIST_BYTES, PageLimit, Problem, Progress, Renormalization,
    encoded::tenant_event::tenant_event_message, identifier_message, tenant_message,
};
use polynym_lines::raw_identifier;
use polynym_proto::v1;
use polynym_transport::StreamPermit;
use v1::renormalize_response::Problem as ProblemMessage;

mod backup;
mod delivery;
mod duplicates;
mod export;
mod import;
mod undo;
mod usage;

/// The number of tenants in a page by default, and at most (AIP-158).
const DEFAULT_PAGE_SIZE: usize = 50;
const MAX_PAGE_SIZE: usize = 1_000;
/// The tenants in one read of the store.
const TENANT_BATCH: usize = 50;

/// The progress of a renormalization.
type Renormalizing = Pin<Box<dyn Stream<Item = Result<v1::RenormalizeResponse, Status>> + Send>>;

impl Api {
    pub async fn purge_user(
        &self,
        call: &Call,
        request: v1::PurgeUserRequest,
    ) -> Result<v1::PurgeUserResponse, Refusal> {
        let mut mutation =
            self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        mutation.dry_run = request.validate_only;
        let purged = self.directory.purge(mutation, &request.user_id).await?;
        Ok(v1::PurgeUserResponse { user_ids: purged.iter().map(ToString::to_string).collect() })
    }

    pub async fn release_hold(
        &self,
        call: &Call,
        request: v1::ReleaseHoldRequest,
    ) -> Result<v1::ReleaseHoldResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, "", &request.request_id)?;
        let raw = raw_identifier(request.identifier.as_ref());
        let identifier = self.directory.release_hold(mutation, raw).await?;
        Ok(v1::ReleaseHoldResponse { identifier: Some(identifier_message(&identifier)) })
    }

    pub async fn renormalize(
        &self,
        request: Request<v1::RenormalizeRequest>,
    ) -> Result<Renormalizing, Refusal> {
        let (call, request) = authorized(request)?;
        let tenant = permitted_tenant(&call, &request.tenant)?;
        let run =
            self.directory.renormalize(tenant, &request.page_token, request.validate_only).await?;
        log_read_of_all(&call);
        let steps = stream::try_unfold(Some(run), |run| async move {
            let Some(run) = run else { return Ok(None) };
            step(run).await.map(Some).map_err(status)
        });

        Ok(Box::pin(steps))
    }

    pub async fn get_tenant(
        &self,
        call: &Call,
        request: v1::GetTenantRequest,
    ) -> Result<v1::GetTenantResponse, Refusal> {
        let name = permitted_tenant(call, &request.tenant)?;
        let tenant = self.directory.tenant(&name).await?;
        Ok(v1::GetTenantResponse { tenant: Some(tenant_message(&tenant)) })
    }

    pub async fn update_tenant(
        &self,
        call: &Call,
        request: v1::UpdateTenantRequest,
    ) -> Result<v1::UpdateTenantResponse, Refusal> {
        let mut mutation =
            self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        mutation.dry_run = request.validate_only;
        let paths = request.update_mask.as_ref().map(|mask| mask.paths.as_slice());
        let update = policies::update(request.policies.as_ref(), paths)?;
        let tenant = self.directory.set_tenant(mutation, update).await?;
        Ok(v1::UpdateTenantResponse { tenant: Some(tenant_message(&tenant)) })
    }

    pub async fn delete_tenant(
        &self,
        call: &Call,
        request: v1::DeleteTenantRequest,
    ) -> Result<v1::DeleteTenantResponse, Refusal> {
        let mut mutation =
            self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        mutation.dry_run = request.validate_only;
        let deleted = self.directory.delete_tenant(mutation, request.force).await;
        let tenant = deleted?.as_ref().map(tenant_message);
        Ok(v1::DeleteTenantResponse { tenant })
    }

    pub async fn import_users(
        &self,
        request: Request<Streaming<v1::ImportUsersRequest>>,
    ) -> Result<import::Responses, Refusal> {
        let permit = request.extensions().get::<StreamPermit>().cloned();
        let (call, requests) = authorized(request)?;
        log_read_of_all(&call);
        Ok(import::import(self.directory.clone(), call, requests, permit))
    }

    pub async fn export_users(
        &self,
        request: Request<v1::ExportUsersRequest>,
    ) -> Result<export::Responses, Refusal> {
        let (call, request) = authorized(request)?;
        let tenant = permitted_tenant(&call, &request.tenant)?;
        let exported = export::export(&self.directory, tenant, &request).await?;
        log_read_of_all(&call);
        Ok(exported)
    }

    pub async fn find_duplicates(
        &self,
        request: Request<v1::FindDuplicatesRequest>,
    ) -> Result<duplicates::Responses, Refusal> {
        let (call, request) = authorized(request)?;
        let tenant = permitted_tenant(&call, &request.tenant)?;
        let found = duplicates::find(&self.directory, tenant, &request).await?;
        log_read_of_all(&call);
        Ok(found)
    }

    pub async fn undo_operation(
        &self,
        request: Request<v1::UndoOperationRequest>,
    ) -> Result<undo::Responses, Refusal> {
        let permit = request.extensions().get::<StreamPermit>().cloned();
        let (call, request) = authorized(request)?;
        let mut mutation = self.mutation(&call, &request.tenant, "", "")?;
        mutation.dry_run = request.validate_only;
        let (operation, users) = (&*request.operation_id, &*request.user_ids);
        let undo = self.directory.begin_undo(&mutation, operation, users).await;
        Ok(undo::undo(undo?, permit))
    }

    pub async fn backup_store(
        &self,
        request: Request<v1::BackupStoreRequest>,
    ) -> Result<backup::Responses, Refusal> {
        let (call, _) = authorized(request)?;
        let copied = backup::backup(self.directory.clone(), &call)?;
        log_read_of_all(&call);
        Ok(copied)
    }

    pub async fn list_tenants(
        &self,
        call: &Call,
        request: v1::ListTenantsRequest,
    ) -> Result<v1::ListTenantsResponse, Refusal> {
        let size = page_size(request.page_size)?;
        let page = self.permitted_tenants(call, &request.tenant, request.page_token, size);
        Ok(page.await?)
    }

    pub async fn list_tenant_history(
        &self,
        call: &Call,
        request: v1::ListTenantHistoryRequest,
    ) -> Result<v1::ListTenantHistoryResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let history = convert::tenant_history(&request)?;
        let page = self.directory.tenant_history(&context, history).await?;
        Ok(v1::ListTenantHistoryResponse {
            events: page.events.iter().map(tenant_event_message).collect(),
            next_page_token: page.next_page_token,
        })
    }

    pub async fn get_usage(
        &self,
        call: &Call,
        request: v1::GetUsageRequest,
    ) -> Result<v1::GetUsageResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let report_request = usage::usage_request(&request)?;
        let report = self.directory.usage(&context, report_request).await?;
        Ok(usage::usage_response(report))
    }

    pub async fn list_attribute_names(
        &self,
        call: &Call,
        request: v1::ListAttributeNamesRequest,
    ) -> Result<v1::ListAttributeNamesResponse, Refusal> {
        let tenant = permitted_tenant(call, &request.tenant)?;
        let size = page_size(request.page_size)?;
        // One more than requested shows whether another page follows.
        let listed = self.directory.attribute_names(&tenant, &request.page_token, size + 1).await;
        let mut names = listed?;
        let has_more = names.len() > size;
        names.truncate(size);
        let next_page_token = names.last().filter(|_| has_more).cloned().unwrap_or_default();

        Ok(v1::ListAttributeNamesResponse { names, next_page_token })
    }
}

impl Api {
    /// A page of at most `size` tenants after `token` that the caller may work in. Tokens name no
    /// other tenants.
    async fn permitted_tenants(
        &self,
        call: &Call,
        prefix: &str,
        token: String,
        size: usize,
    ) -> Result<v1::ListTenantsResponse, Error> {
        let (mut page, mut limit) =
            (v1::ListTenantsResponse::default(), PageLimit::new(size, LIST_BYTES));
        let mut after = token;
        loop {
            let part = self.directory.tenants(prefix, &after, TENANT_BATCH).await?;
            let is_last = part.len() < TENANT_BATCH;
            after = part.last().map(|tenant| tenant.name.to_string()).unwrap_or_default();
            for tenant in part.iter().filter(|tenant| call.tenants.contains(tenant.name.as_str())) {
                let message = tenant_message(tenant);
                if !limit.take_message(&message) {
                    page.next_page_token =
                        page.tenants.last().map(|last| last.tenant.clone()).unwrap_or_default();
                    return Ok(page);
                }
                page.tenants.push(message);
            }
            if is_last {
                return Ok(page);
            }
        }
    }
}

fn page_size(size: i32) -> Result<usize, Error> {
    let count = usize::try_from(size)
        .map_err(|_| Error::invalid(Invalid::Field, "page_size", "must not be negative"))?;
    Ok(if count == 0 { DEFAULT_PAGE_SIZE } else { count.min(MAX_PAGE_SIZE) })
}

/// Executes one step. Returns its progress, and the run unless it has ended.
///
/// Yields first: messages that are ready at once would be sent together, hiding the progress, and a
/// run would continue without a reader.
async fn step(
    mut run: Renormalization,
) -> Result<(v1::RenormalizeResponse, Option<Renormalization>), Error> {
    tokio::task::yield_now().await;
    let progress = run.step().await?;
    let (message, has_more) = (progress_message(progress), progress.last.is_some());
    Ok((message, has_more.then_some(run)))
}

fn progress_message(progress: &Progress) -> v1::RenormalizeResponse {
    let problems = progress.problems.iter().map(problem_message);
    let problems = problems.chain(progress.unreadable.iter().map(unreadable_message));
    v1::RenormalizeResponse {
        users: progress.users as i64,
        moved: progress.moved as i64,
        failed: progress.failed as i64,
        problems: problems.collect(),
        page_token: progress.last.map(|id| id.to_string()).unwrap_or_default(),
        kept: progress.kept as i64,
    }
}

fn unreadable_message(user: &LocalityId) -> ProblemMessage {
    let error = Error::Internal("the record of a user cannot be read".into());
    ProblemMessage {
        user_id: user.to_string(),
        reason: error.reason().to_owned(),
        message: "its stored record cannot be read: run `polynym store verify`".to_owned(),
        ..ProblemMessage::default()
    }
}

fn problem_message(problem: &Problem) -> ProblemMessage {
    let other = problem.other.as_ref();
    ProblemMessage {
        user_id: problem.user.to_string(),
        identifier: Some(identifier_message(&problem.identifier)),
        reason: problem.error.reason().to_owned(),
        message: problem.error.to_string(),
        new_identifier: Some(identifier_message(&problem.renormalized)),
        other_user_id: other.map(|(user, _)| user.to_string()).unwrap_or_default(),
        other_identifier: other.map(|(_, identifier)| identifier_message(identifier)),
    }
}
