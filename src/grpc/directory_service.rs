//! DirectoryService: look-ups.

use std::sync::Arc;

use prost::Message;
use tonic::{Request, Response, Status};

use super::convert;
use super::status::{answer_too_large, status};
use crate::directory::{Directory, Error, Found, Tenant, User};
use crate::proto::v1::directory_service_server::DirectoryService;
use crate::proto::v1::{self, batch_get_users_response, batch_resolve_identities_response};

/// A batch's answer takes no further items once it has this many bytes.
const ANSWER_BYTES: usize = 4 << 20;

pub struct DirectoryApi(pub Arc<Directory>);

#[tonic::async_trait]
impl DirectoryService for DirectoryApi {
    async fn resolve_identity(
        &self,
        request: Request<v1::ResolveIdentityRequest>,
    ) -> Result<Response<v1::ResolveIdentityResponse>, Status> {
        let request = request.into_inner();
        let tenant = Tenant::parse(&request.tenant).map_err(status)?;
        let consistency = convert::consistency(request.consistency, request.max_staleness.as_ref()).map_err(status)?;
        let raw = convert::raw(request.identifier.as_ref());
        let (found, reads) = self.0.resolve(&tenant, raw, consistency).await.map_err(status)?;
        let (user, identity) = convert::found(found);
        let response = v1::ResolveIdentityResponse { user: Some(user), identity: Some(identity) };
        Ok(with_reads(response, reads))
    }

    async fn batch_resolve_identities(
        &self,
        request: Request<v1::BatchResolveIdentitiesRequest>,
    ) -> Result<Response<v1::BatchResolveIdentitiesResponse>, Status> {
        let request = request.into_inner();
        let tenant = Tenant::parse(&request.tenant).map_err(status)?;
        let consistency = convert::consistency(request.consistency, request.max_staleness.as_ref()).map_err(status)?;
        let raw: Vec<_> = request.identifiers.iter().map(|message| convert::raw(Some(message))).collect();
        let (outcomes, reads) = self.0.batch_resolve(&tenant, &raw, consistency).await.map_err(status)?;
        let results = fill(outcomes, resolve_result, || resolve_failure(answer_too_large(ANSWER_BYTES)));
        Ok(with_reads(v1::BatchResolveIdentitiesResponse { results }, reads))
    }

    async fn get_user(&self, request: Request<v1::GetUserRequest>) -> Result<Response<v1::GetUserResponse>, Status> {
        let request = request.into_inner();
        let tenant = Tenant::parse(&request.tenant).map_err(status)?;
        let user = self.0.get(&tenant, &request.user_id).await.map_err(status)?;
        let user = Some(convert::user(user));
        Ok(Response::new(v1::GetUserResponse { user, merged_from: String::new() }))
    }

    async fn batch_get_users(
        &self,
        request: Request<v1::BatchGetUsersRequest>,
    ) -> Result<Response<v1::BatchGetUsersResponse>, Status> {
        let request = request.into_inner();
        let tenant = Tenant::parse(&request.tenant).map_err(status)?;
        let outcomes = self.0.batch_get(&tenant, &request.user_ids).await.map_err(status)?;
        let results = fill(outcomes, get_result, || get_failure(answer_too_large(ANSWER_BYTES)));
        Ok(Response::new(v1::BatchGetUsersResponse { results }))
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
        let (identifier, owner) = self.0.owner(&tenant, raw).await.map_err(status)?;
        Ok(Response::new(v1::CheckIdentityResponse {
            available: owner.is_none(),
            reason: owner.map(|_| "IDENTITY_TAKEN".to_owned()).unwrap_or_default(),
            identifier: Some(convert::identifier(&identifier)),
        }))
    }
}

/// Answers with the number of reads that were sent for a call.
fn with_reads<T>(response: T, reads: u32) -> Response<T> {
    let mut response = Response::new(response);
    response.metadata_mut().insert("polynym-reads", reads.into());
    response
}

/// The items of an answer, in order, until it is full; from there on what `left` says.
fn fill<T, R: Message>(outcomes: Vec<T>, item: impl Fn(T) -> R, left: impl Fn() -> R) -> Vec<R> {
    let mut bytes = 0;
    let bounded = |outcome| {
        if bytes >= ANSWER_BYTES {
            return left();
        }
        let item = item(outcome);
        bytes += item.encoded_len();
        if bytes >= ANSWER_BYTES { left() } else { item }
    };
    outcomes.into_iter().map(bounded).collect()
}

fn resolve_result(outcome: Result<Found, Error>) -> batch_resolve_identities_response::Result {
    use batch_resolve_identities_response::{Found, Result, result::Outcome};
    match outcome {
        Err(error) => resolve_failure(status(error)),
        Ok(found) => {
            let (user, identity) = convert::found(found);
            let found = Found { user: Some(user), identity: Some(identity) };
            Result { outcome: Some(Outcome::Found(found)) }
        }
    }
}

fn resolve_failure(status: Status) -> batch_resolve_identities_response::Result {
    use batch_resolve_identities_response::{Result, result::Outcome};
    Result { outcome: Some(Outcome::Error(convert::status(&status))) }
}

fn get_result(outcome: Result<User, Error>) -> batch_get_users_response::Result {
    use batch_get_users_response::{Found, Result, result::Outcome};
    match outcome {
        Err(error) => get_failure(status(error)),
        Ok(user) => {
            let found = Found { user: Some(convert::user(user)), merged_from: String::new() };
            Result { outcome: Some(Outcome::Found(found)) }
        }
    }
}

fn get_failure(status: Status) -> batch_get_users_response::Result {
    use batch_get_users_response::{Result, result::Outcome};
    Result { outcome: Some(Outcome::Error(convert::status(&status))) }
}
