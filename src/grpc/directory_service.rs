//! DirectoryService: look-ups.

use std::sync::Arc;

use prost::Message;
use tonic::{Request, Response, Status};

use super::status::{answer_too_large, reason, status};
use super::{answer, convert};
use crate::directory::{Directory, Error, Tenant, identifier_message};
use crate::proto::services::directory_service_server::DirectoryService;
use crate::proto::v1;

/// A batch's answer takes no further items once it has this many bytes.
const ANSWER_BYTES: usize = 4 << 20;

pub struct DirectoryApi(pub Arc<Directory>);

#[tonic::async_trait]
impl DirectoryService for DirectoryApi {
    async fn resolve_identity(
        &self,
        request: Request<v1::ResolveIdentityRequest>,
    ) -> Result<Response<answer::Resolved>, Status> {
        let request = request.into_inner();
        let tenant = Tenant::parse(&request.tenant).map_err(status)?;
        let consistency = convert::consistency(request.consistency, request.max_staleness.as_ref()).map_err(status)?;
        let raw = convert::raw(request.identifier.as_ref());
        let (found, reads) = self.0.resolve(&tenant, raw, consistency, request.show_disabled).await.map_err(status)?;
        Ok(with_reads(found.into(), reads))
    }

    async fn batch_resolve_identities(
        &self,
        request: Request<v1::BatchResolveIdentitiesRequest>,
    ) -> Result<Response<answer::BatchResolved>, Status> {
        let request = request.into_inner();
        let tenant = Tenant::parse(&request.tenant).map_err(status)?;
        let consistency = convert::consistency(request.consistency, request.max_staleness.as_ref()).map_err(status)?;
        let raw: Vec<_> = request.identifiers.iter().map(|message| convert::raw(Some(message))).collect();
        let resolved = self.0.batch_resolve(&tenant, &raw, consistency, request.show_disabled).await;
        let (outcomes, reads) = resolved.map_err(status)?;
        Ok(with_reads(answer::BatchResolved { results: fill(outcomes) }, reads))
    }

    async fn get_user(&self, request: Request<v1::GetUserRequest>) -> Result<Response<answer::Got>, Status> {
        let request = request.into_inner();
        let tenant = Tenant::parse(&request.tenant).map_err(status)?;
        let got = self.0.get(&tenant, &request.user_id).await.map_err(status)?;
        Ok(Response::new(got.into()))
    }

    async fn batch_get_users(
        &self,
        request: Request<v1::BatchGetUsersRequest>,
    ) -> Result<Response<answer::BatchGot>, Status> {
        let request = request.into_inner();
        let tenant = Tenant::parse(&request.tenant).map_err(status)?;
        let outcomes = self.0.batch_get(&tenant, &request.user_ids).await.map_err(status)?;
        Ok(Response::new(answer::BatchGot { results: fill(outcomes) }))
    }

    async fn normalize_identity(
        &self,
        request: Request<v1::NormalizeIdentityRequest>,
    ) -> Result<Response<v1::NormalizeIdentityResponse>, Status> {
        let request = request.into_inner();
        let tenant = Tenant::parse(&request.tenant).map_err(status)?;
        let raw = convert::raw(request.identifier.as_ref());
        let (normalization, key) = self.0.normalize(&tenant, raw).map_err(status)?;
        Ok(Response::new(convert::normalization(normalization, key)))
    }

    async fn check_identity(
        &self,
        request: Request<v1::CheckIdentityRequest>,
    ) -> Result<Response<v1::CheckIdentityResponse>, Status> {
        let request = request.into_inner();
        let tenant = Tenant::parse(&request.tenant).map_err(status)?;
        let raw = convert::raw(request.identifier.as_ref());
        let (identifier, refusal) = self.0.check_identity(&tenant, raw).await.map_err(status)?;
        Ok(Response::new(v1::CheckIdentityResponse {
            available: refusal.is_none(),
            reason: refusal.as_ref().map_or("", reason).to_owned(),
            identifier: Some(identifier_message(&identifier)),
        }))
    }
}

/// Answers with the number of reads that were sent for a call.
fn with_reads<T>(response: T, reads: u32) -> Response<T> {
    let mut response = Response::new(response);
    response.metadata_mut().insert("polynym-reads", reads.into());
    response
}

/// The items of an answer, in order; once it is full, the rest say so.
fn fill<T, R: Message + From<Result<T, Status>>>(outcomes: Vec<Result<T, Error>>) -> Vec<R> {
    let mut bytes = 0;
    let bounded = |outcome: Result<T, Error>| {
        let item = (bytes < ANSWER_BYTES).then(|| R::from(outcome.map_err(status)));
        bytes += item.as_ref().map_or(0, R::encoded_len);
        item.filter(|_| bytes < ANSWER_BYTES).unwrap_or_else(|| R::from(Err(answer_too_large(ANSWER_BYTES))))
    };
    outcomes.into_iter().map(bounded).collect()
}
