//! RegistryService: mutations.

mod bulk;

use super::api::Api;
use super::convert;
use super::read_log::log_read_of;
use super::status::Refusal;
use polynym_access::Call;
use polynym_directory::{
    Error, Invalid, User, UserChange, encoded::bulk_change::summary, user_message,
};
use polynym_lines::raw_identifier;
use polynym_proto::v1;

fn user_response(outcome: Result<User, Error>) -> Result<Option<v1::User>, Error> {
    Ok(Some(user_message(&outcome?)))
}

fn required_user(user: &Option<v1::User>) -> Result<&v1::User, Error> {
    user.as_ref().ok_or_else(|| Error::invalid(Invalid::Field, "user", "is missing"))
}

impl Api {
    pub async fn create_user(
        &self,
        call: &Call,
        request: v1::CreateUserRequest,
    ) -> Result<v1::CreateUserResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, "", &request.request_id)?;
        let user = required_user(&request.user)?;
        let identities = convert::raw_identities(&user.identities)?;
        let attributes = convert::attributes(&user.attributes)?;
        let created = self
            .directory
            .create(mutation, user.display_name.clone(), &identities, attributes)
            .await;
        Ok(v1::CreateUserResponse { user: user_response(created)? })
    }

    pub async fn update_user(
        &self,
        call: &Call,
        request: v1::UpdateUserRequest,
    ) -> Result<v1::UpdateUserResponse, Refusal> {
        let user = required_user(&request.user)?;
        let mutation = self.mutation(call, &request.tenant, &user.etag, &request.request_id)?;
        let attributes = convert::attributes(&user.attributes)?;
        let paths = request.update_mask.as_ref().map(|mask| mask.paths.as_slice());
        let updated = self
            .directory
            .update(mutation, &user.user_id, paths, user.display_name.clone(), attributes)
            .await;
        Ok(v1::UpdateUserResponse { user: user_response(updated)? })
    }

    pub async fn link_identity(
        &self,
        call: &Call,
        request: v1::LinkIdentityRequest,
    ) -> Result<v1::LinkIdentityResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let raw = raw_identifier(request.identifier.as_ref());
        let by = convert::verified_by(request.verified, &request.verified_by)?;
        let linked = self
            .directory
            .link(mutation, &request.user_id, raw, &request.display, by, request.primary)
            .await;
        Ok(v1::LinkIdentityResponse { user: user_response(linked)? })
    }

    pub async fn unlink_identity(
        &self,
        call: &Call,
        request: v1::UnlinkIdentityRequest,
    ) -> Result<v1::UnlinkIdentityResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let raw = raw_identifier(request.identifier.as_ref());
        let unlinked = self.directory.unlink(mutation, &request.user_id, raw).await;
        Ok(v1::UnlinkIdentityResponse { user: user_response(unlinked)? })
    }

    pub async fn replace_identity(
        &self,
        call: &Call,
        request: v1::ReplaceIdentityRequest,
    ) -> Result<v1::ReplaceIdentityResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let old = raw_identifier(request.old_identifier.as_ref());
        let new = raw_identifier(request.new_identifier.as_ref());
        let replaced = self.directory.replace(mutation, &request.user_id, old, new).await;
        Ok(v1::ReplaceIdentityResponse { user: user_response(replaced)? })
    }

    pub async fn move_identity(
        &self,
        call: &Call,
        request: v1::MoveIdentityRequest,
    ) -> Result<v1::MoveIdentityResponse, Refusal> {
        let mut mutation =
            self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        mutation.dry_run = request.validate_only;
        let raw = raw_identifier(request.identifier.as_ref());
        let moved = self
            .directory
            .move_identity(mutation, &request.from_user_id, &request.to_user_id, raw)
            .await;
        let user = user_response(moved)?;
        log_read_of(call, [&request.from_user_id, &request.to_user_id]);
        Ok(v1::MoveIdentityResponse { user })
    }

    pub async fn verify_identity(
        &self,
        call: &Call,
        request: v1::VerifyIdentityRequest,
    ) -> Result<v1::VerifyIdentityResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let raw = raw_identifier(request.identifier.as_ref());
        let by = convert::verified_by(request.verified, &request.verified_by)?;
        let verified = self.directory.verify(mutation, &request.user_id, raw, by).await;
        Ok(v1::VerifyIdentityResponse { user: user_response(verified)? })
    }

    pub async fn disable_user(
        &self,
        call: &Call,
        request: v1::DisableUserRequest,
    ) -> Result<v1::DisableUserResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let changed =
            self.directory.change_state(mutation, &request.user_id, UserChange::Disable).await;
        Ok(v1::DisableUserResponse { user: user_response(changed)? })
    }

    pub async fn enable_user(
        &self,
        call: &Call,
        request: v1::EnableUserRequest,
    ) -> Result<v1::EnableUserResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let changed =
            self.directory.change_state(mutation, &request.user_id, UserChange::Enable).await;
        Ok(v1::EnableUserResponse { user: user_response(changed)? })
    }

    pub async fn delete_user(
        &self,
        call: &Call,
        request: v1::DeleteUserRequest,
    ) -> Result<v1::DeleteUserResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let changed =
            self.directory.change_state(mutation, &request.user_id, UserChange::Delete).await;
        Ok(v1::DeleteUserResponse { user: user_response(changed)? })
    }

    pub async fn undelete_user(
        &self,
        call: &Call,
        request: v1::UndeleteUserRequest,
    ) -> Result<v1::UndeleteUserResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        let changed =
            self.directory.change_state(mutation, &request.user_id, UserChange::Undelete).await;
        Ok(v1::UndeleteUserResponse { user: user_response(changed)? })
    }

    pub async fn merge_users(
        &self,
        call: &Call,
        request: v1::MergeUsersRequest,
    ) -> Result<v1::MergeUsersResponse, Refusal> {
        let mut mutation =
            self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        mutation.dry_run = request.validate_only;
        let policy = convert::conflict_policy(request.conflict_policy)?;
        let merged = self
            .directory
            .merge(mutation, &request.primary_user_id, &request.secondary_user_id, policy)
            .await;
        let (user, preview) = merged?;
        log_read_of(call, [&request.primary_user_id, &request.secondary_user_id]);
        Ok(v1::MergeUsersResponse {
            user: Some(user_message(&user)),
            preview: preview.as_ref().map(convert::preview),
        })
    }

    pub async fn unmerge_users(
        &self,
        call: &Call,
        request: v1::UnmergeUsersRequest,
    ) -> Result<v1::UnmergeUsersResponse, Refusal> {
        let mut mutation =
            self.mutation(call, &request.tenant, &request.etag, &request.request_id)?;
        mutation.dry_run = request.validate_only;
        let unmerged = self
            .directory
            .unmerge(mutation, &request.primary_user_id, &request.secondary_user_id)
            .await;
        let (user, not_restored) = unmerged?;
        log_read_of(call, [&request.primary_user_id, &request.secondary_user_id]);
        Ok(v1::UnmergeUsersResponse {
            user: Some(user_message(&user)),
            not_restored: not_restored.iter().map(convert::not_restored).collect(),
        })
    }

    pub async fn start_bulk_change(
        &self,
        call: &Call,
        request: v1::StartBulkChangeRequest,
    ) -> Result<v1::StartBulkChangeResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, "", &request.request_id)?;
        let start = bulk::start(&request)?;
        bulk::check_role(call, &start.action)?;
        let started = self.directory.start_bulk_change(mutation, start).await;
        Ok(v1::StartBulkChangeResponse { bulk_change: bulk::response(started)? })
    }

    pub async fn get_bulk_change(
        &self,
        call: &Call,
        request: v1::GetBulkChangeRequest,
    ) -> Result<v1::GetBulkChangeResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let found = self.directory.bulk_change(&context, &request.bulk_id).await;
        Ok(v1::GetBulkChangeResponse { bulk_change: bulk::response(found)? })
    }

    pub async fn list_bulk_changes(
        &self,
        call: &Call,
        request: v1::ListBulkChangesRequest,
    ) -> Result<v1::ListBulkChangesResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let (size, token) = (request.page_size, &*request.page_token);
        let page = self.directory.list_bulk_changes(&context, size, token).await;
        let page = page?;
        Ok(v1::ListBulkChangesResponse {
            bulk_changes: page.changes.iter().map(summary).collect(),
            next_page_token: page.next_page_token,
        })
    }

    pub async fn stop_bulk_change(
        &self,
        call: &Call,
        request: v1::StopBulkChangeRequest,
    ) -> Result<v1::StopBulkChangeResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, "", "")?;
        let stopped = self.directory.stop_bulk_change(mutation, &request.bulk_id).await;
        Ok(v1::StopBulkChangeResponse { bulk_change: bulk::response(stopped)? })
    }

    pub async fn resume_bulk_change(
        &self,
        call: &Call,
        request: v1::ResumeBulkChangeRequest,
    ) -> Result<v1::ResumeBulkChangeResponse, Refusal> {
        let mutation = self.mutation(call, &request.tenant, "", "")?;
        let known = self.directory.bulk_change(&mutation.context, &request.bulk_id).await?;
        bulk::check_role(call, &known.action)?;
        let resumed = self.directory.resume_bulk_change(mutation, &request.bulk_id).await;
        Ok(v1::ResumeBulkChangeResponse { bulk_change: bulk::response(resumed)? })
    }
}
