//! RegistryService: mutations.

mod bulk;

use tonic::{Response, Status};

use super::api::Api;
use super::convert;
use super::status::status;
use polynym_access::Call;
use polynym_directory::{
    Error, Invalid, User, UserChange, encoded::bulk_change::summary, user_message,
};
use polynym_lines::raw_identifier;
use polynym_proto::v1;

fn user_response(outcome: Result<User, Error>) -> Result<Option<v1::User>, Status> {
    Ok(Some(user_message(&outcome.map_err(status)?)))
}

fn required_user(user: &Option<v1::User>) -> Result<&v1::User, Status> {
    user.as_ref().ok_or_else(|| status(Error::invalid(Invalid::Field, "user", "is missing")))
}

impl Api {
    pub async fn create_user(
        &self,
        call: &Call,
        request: v1::CreateUserRequest,
    ) -> Result<Response<v1::CreateUserResponse>, Status> {
        let mutation = self.mutation(call, &request.tenant, "", &request.request_id)?;
        let user = required_user(&request.user)?;
        let identities = convert::raw_identities(&user.identities).map_err(status)?;
        let attributes = convert::attributes(&user.attributes).map_err(status)?;
        let created = self
            .directory
            .create(mutation, user.display_name.clone(), &identities, attributes)
            .await;
        Ok(Response::new(v1::CreateUserResponse { user: user_response(created)? }))
    }

    pub async fn update_user(
        &self,
        call: &Call,
        request: v1::UpdateUserRequest,
    ) -> Result<Response<v1::UpdateUserResponse>, Status> {
        let user = required_user(&request.user)?;
        let mutation = self.mutation(call, &request.tenant, &user.etag, &request.request_id)?;
        let attributes = convert::attributes(&user.attributes).map_err(status)?;
        let paths = request.update_mask.as_ref().map(|mask| mask.paths.as_slice());
        let updated = self
            .directory
            .update(mutation, &user.user_id, paths, user.display_name.clone(), attributes)
            .await;
        Ok(Response::new(v1::UpdateUserResponse { user: user_response(updated)? }))
    }

    pub async fn link_identity(
        &self,
        call: &Call,
        request: v1::LinkIdentityRequest,
    ) -> Result<Response<v1::LinkIdentityResponse>, Status> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let raw = raw_identifier(request.identifier.as_ref());
        let by = convert::verified_by(request.verified, &request.verified_by).map_err(status)?;
        let linked = self
            .directory
            .link(mutation, &request.user_id, raw, &request.display, by, request.primary)
            .await;
        Ok(Response::new(v1::LinkIdentityResponse { user: user_response(linked)? }))
    }

    pub async fn unlink_identity(
        &self,
        call: &Call,
        request: v1::UnlinkIdentityRequest,
    ) -> Result<Response<v1::UnlinkIdentityResponse>, Status> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let raw = raw_identifier(request.identifier.as_ref());
        let unlinked = self.directory.unlink(mutation, &request.user_id, raw).await;
        Ok(Response::new(v1::UnlinkIdentityResponse { user: user_response(unlinked)? }))
    }

    pub async fn replace_identity(
        &self,
        call: &Call,
        request: v1::ReplaceIdentityRequest,
    ) -> Result<Response<v1::ReplaceIdentityResponse>, Status> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let old = raw_identifier(request.old_identifier.as_ref());
        let new = raw_identifier(request.new_identifier.as_ref());
        let replaced = self.directory.replace(mutation, &request.user_id, old, new).await;
        Ok(Response::new(v1::ReplaceIdentityResponse { user: user_response(replaced)? }))
    }

    pub async fn move_identity(
        &self,
        call: &Call,
        request: v1::MoveIdentityRequest,
    ) -> Result<Response<v1::MoveIdentityResponse>, Status> {
        let mut mutation =
            self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        mutation.dry_run = request.validate_only;
        let raw = raw_identifier(request.identifier.as_ref());
        let moved = self
            .directory
            .move_identity(mutation, &request.from_user_id, &request.to_user_id, raw)
            .await;
        Ok(Response::new(v1::MoveIdentityResponse { user: user_response(moved)? }))
    }

    pub async fn verify_identity(
        &self,
        call: &Call,
        request: v1::VerifyIdentityRequest,
    ) -> Result<Response<v1::VerifyIdentityResponse>, Status> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let raw = raw_identifier(request.identifier.as_ref());
        let by = convert::verified_by(request.verified, &request.verified_by).map_err(status)?;
        let verified = self.directory.verify(mutation, &request.user_id, raw, by).await;
        Ok(Response::new(v1::VerifyIdentityResponse { user: user_response(verified)? }))
    }

    pub async fn disable_user(
        &self,
        call: &Call,
        request: v1::DisableUserRequest,
    ) -> Result<Response<v1::DisableUserResponse>, Status> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let changed =
            self.directory.change_state(mutation, &request.user_id, UserChange::Disable).await;
        Ok(Response::new(v1::DisableUserResponse { user: user_response(changed)? }))
    }

    pub async fn enable_user(
        &self,
        call: &Call,
        request: v1::EnableUserRequest,
    ) -> Result<Response<v1::EnableUserResponse>, Status> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let changed =
            self.directory.change_state(mutation, &request.user_id, UserChange::Enable).await;
        Ok(Response::new(v1::EnableUserResponse { user: user_response(changed)? }))
    }

    pub async fn delete_user(
        &self,
        call: &Call,
        request: v1::DeleteUserRequest,
    ) -> Result<Response<v1::DeleteUserResponse>, Status> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let changed =
            self.directory.change_state(mutation, &request.user_id, UserChange::Delete).await;
        Ok(Response::new(v1::DeleteUserResponse { user: user_response(changed)? }))
    }

    pub async fn undelete_user(
        &self,
        call: &Call,
        request: v1::UndeleteUserRequest,
    ) -> Result<Response<v1::UndeleteUserResponse>, Status> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let changed =
            self.directory.change_state(mutation, &request.user_id, UserChange::Undelete).await;
        Ok(Response::new(v1::UndeleteUserResponse { user: user_response(changed)? }))
    }

    pub async fn merge_users(
        &self,
        call: &Call,
        request: v1::MergeUsersRequest,
    ) -> Result<Response<v1::MergeUsersResponse>, Status> {
        let mut mutation =
            self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        mutation.dry_run = request.validate_only;
        let policy = convert::conflict_policy(request.conflict_policy).map_err(status)?;
        let merged = self
            .directory
            .merge(mutation, &request.primary_user_id, &request.secondary_user_id, policy)
            .await;
        let (user, preview) = merged.map_err(status)?;
        Ok(Response::new(v1::MergeUsersResponse {
            user: Some(user_message(&user)),
            preview: preview.as_ref().map(convert::preview),
        }))
    }

    pub async fn unmerge_users(
        &self,
        call: &Call,
        request: v1::UnmergeUsersRequest,
    ) -> Result<Response<v1::UnmergeUsersResponse>, Status> {
        let mut mutation =
            self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        mutation.dry_run = request.validate_only;
        let unmerged = self
            .directory
            .unmerge(mutation, &request.primary_user_id, &request.secondary_user_id)
            .await;
        let (user, not_restored) = unmerged.map_err(status)?;
        Ok(Response::new(v1::UnmergeUsersResponse {
            user: Some(user_message(&user)),
            not_restored: not_restored.iter().map(convert::not_restored).collect(),
        }))
    }

    pub async fn start_bulk_change(
        &self,
        call: &Call,
        request: v1::StartBulkChangeRequest,
    ) -> Result<Response<v1::StartBulkChangeResponse>, Status> {
        let mutation = self.mutation(call, &request.tenant, "", &request.request_id)?;
        let start = bulk::start(&request).map_err(status)?;
        let started = self.directory.start_bulk_change(mutation, start).await;
        Ok(Response::new(v1::StartBulkChangeResponse { bulk_change: bulk::response(started)? }))
    }

    pub async fn get_bulk_change(
        &self,
        call: &Call,
        request: v1::GetBulkChangeRequest,
    ) -> Result<Response<v1::GetBulkChangeResponse>, Status> {
        let context = self.context(call, &request.tenant, "")?;
        let found = self.directory.bulk_change(&context, &request.bulk_id).await;
        Ok(Response::new(v1::GetBulkChangeResponse { bulk_change: bulk::response(found)? }))
    }

    pub async fn list_bulk_changes(
        &self,
        call: &Call,
        request: v1::ListBulkChangesRequest,
    ) -> Result<Response<v1::ListBulkChangesResponse>, Status> {
        let context = self.context(call, &request.tenant, "")?;
        let (size, token) = (request.page_size, &*request.page_token);
        let page = self.directory.list_bulk_changes(&context, size, token).await;
        let page = page.map_err(status)?;
        Ok(Response::new(v1::ListBulkChangesResponse {
            bulk_changes: page.changes.iter().map(summary).collect(),
            next_page_token: page.next_page_token,
        }))
    }

    pub async fn stop_bulk_change(
        &self,
        call: &Call,
        request: v1::StopBulkChangeRequest,
    ) -> Result<Response<v1::StopBulkChangeResponse>, Status> {
        let mutation = self.mutation(call, &request.tenant, "", "")?;
        let stopped = self.directory.stop_bulk_change(mutation, &request.bulk_id).await;
        Ok(Response::new(v1::StopBulkChangeResponse { bulk_change: bulk::response(stopped)? }))
    }

    pub async fn resume_bulk_change(
        &self,
        call: &Call,
        request: v1::ResumeBulkChangeRequest,
    ) -> Result<Response<v1::ResumeBulkChangeResponse>, Status> {
        let mutation = self.mutation(call, &request.tenant, "", "")?;
        let resumed = self.directory.resume_bulk_change(mutation, &request.bulk_id).await;
        Ok(Response::new(v1::ResumeBulkChangeResponse { bulk_change: bulk::response(resumed)? }))
    }
}
