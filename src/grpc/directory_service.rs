//! DirectoryService: look-ups.

use std::sync::{Arc, OnceLock};

use metrics::{Histogram, histogram};
use prost_types::Timestamp as ProtoTimestamp;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tonic::{Request, Response, Status};

use super::authorization::{permitted_tenant, role_too_low, with_caller};
use super::batch::fill;
use super::read_mask::ReadMask;
use super::status::{reason, status};
use super::{convert, raw_response};
use crate::access::{Call, Metric, Role};
use crate::directory::encoded::encode::identifier_message;
use crate::directory::encoded::event::event_message;
use crate::directory::error::Error;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::model::unknown;
use crate::directory::service::Directory;
use crate::directory::service::context::RequestContext;
use crate::directory::service::lookup::read::ResolveOptions;
use crate::directory::service::search::SearchRequest;
use crate::identifier::RawIdentifier;
use crate::proto::services::directory_service_server::DirectoryService;
use crate::proto::v1;
use crate::transport::protocol;
use crate::transport::rich_status::internal;

/// Concurrent batches: each may hold a full answer in memory until it is sent.
const BATCHES: usize = 64;

pub struct DirectoryApi {
    directory: Arc<Directory>,
    batches: Semaphore,
    /// Whether the server is about to stop.
    stopping: watch::Receiver<bool>,
}

impl DirectoryApi {
    pub fn new(directory: Arc<Directory>, stopping: watch::Receiver<bool>) -> Self {
        super::watch::show_metrics();
        Self { directory, batches: Semaphore::new(BATCHES), stopping }
    }

    /// Waits for a batch's turn.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, Status> {
        self.batches.acquire().await.map_err(|_| internal())
    }
}

/// The number of a batch's items in its message, which is not decoded for that. In both messages
/// they have this tag.
const ITEMS: u32 = 2;

/// Refuses a batch of too many items before they are decoded: an empty one takes two bytes, and
/// many times that decoded.
pub fn check_batch(path: &str, message: &[u8], limit: usize) -> Result<(), Status> {
    if !path.ends_with("/BatchResolveIdentities") && !path.ends_with("/BatchGetUsers") {
        return Ok(());
    }
    let count = unknown::fields(message).filter(|field| field.tag == ITEMS).count();
    if count > limit { Err(status(Error::BatchTooLarge { limit, count })) } else { Ok(()) }
}

impl DirectoryApi {
    fn context<'a>(
        &self,
        caller: &'a Call,
        method: &'static str,
        tenant: &str,
    ) -> Result<RequestContext<'a>, Status> {
        let tenant = permitted_tenant(caller, tenant)?;
        Ok(self.directory.context(tenant, &caller.name, method, ""))
    }

    /// The tenant of a look-up. A caller that has missed too often gets none, whatever it looks
    /// for.
    fn look_up_tenant(caller: &Call, tenant: &str) -> Result<Tenant, Status> {
        let tenant = permitted_tenant(caller, tenant)?;
        caller.check_misses().map_err(protocol::misses_spent)?;
        Ok(tenant)
    }

    /// The context of a look-up. See [`DirectoryApi::look_up_tenant`].
    fn look_up<'a>(
        &self,
        caller: &'a Call,
        method: &'static str,
        tenant: &str,
    ) -> Result<RequestContext<'a>, Status> {
        let tenant = Self::look_up_tenant(caller, tenant)?;
        Ok(self.directory.context(tenant, &caller.name, method, ""))
    }
}

#[tonic::async_trait]
impl DirectoryService for DirectoryApi {
    async fn resolve_identity(
        &self,
        request: Request<v1::ResolveIdentityRequest>,
    ) -> Result<Response<raw_response::Resolved>, Status> {
        let (caller, request) = with_caller(request)?;
        let tenant = Self::look_up_tenant(&caller, &request.tenant)?;
        let mask = ReadMask::parse(request.read_mask.as_ref()).map_err(status)?;
        let options = ResolveOptions {
            max_staleness: convert::max_staleness(request.max_staleness.as_ref())
                .map_err(status)?,
            consistency: convert::consistency(request.consistency).map_err(status)?,
            show_disabled: request.show_disabled,
            view: mask.view(),
        };
        let raw = convert::raw(request.identifier.as_ref());
        let resolved = match as_of(&caller, request.as_of.as_ref())? {
            None => self.directory.resolve(&tenant, raw, options).await,
            Some(time) => {
                let context = self.directory.context(tenant, &caller.name, "ResolveIdentity", "");
                self.directory.resolve_as_of(&context, raw, time, options.view).await
            }
        };
        count_misses(&caller, [&resolved]);
        count_resolves(&caller, [(&raw, &resolved)]);
        let (found, reads) = resolved.map_err(status)?;
        resolve_reads().record(reads);
        Ok(with_reads(mask.apply_to_found(found).into(), reads))
    }

    async fn batch_resolve_identities(
        &self,
        request: Request<v1::BatchResolveIdentitiesRequest>,
    ) -> Result<Response<raw_response::BatchResolved>, Status> {
        let (caller, request) = with_caller(request)?;
        let tenant = Self::look_up_tenant(&caller, &request.tenant)?;
        let mask = ReadMask::parse(request.read_mask.as_ref()).map_err(status)?;
        let options = ResolveOptions {
            max_staleness: convert::max_staleness(request.max_staleness.as_ref())
                .map_err(status)?,
            consistency: convert::consistency(request.consistency).map_err(status)?,
            show_disabled: request.show_disabled,
            view: mask.view(),
        };
        let raw: Vec<_> =
            request.identifiers.iter().map(|message| convert::raw(Some(message))).collect();
        let _turn = self.turn().await?;
        let resolved = match as_of(&caller, request.as_of.as_ref())? {
            None => self.directory.batch_resolve(&tenant, &raw, options).await,
            Some(time) => {
                let method = "BatchResolveIdentities";
                let context = self.directory.context(tenant, &caller.name, method, "");
                self.directory.batch_resolve_as_of(&context, &raw, time, options.view).await
            }
        };
        let (outcomes, reads) = resolved.map_err(status)?;
        count_misses(&caller, &outcomes);
        count_resolves(&caller, raw.iter().zip(&outcomes));
        let masked = |outcome: Result<_, _>| outcome.map(|found| mask.apply_to_found(found));
        let outcomes = outcomes.into_iter().map(masked).collect();
        Ok(with_reads(raw_response::BatchResolved { results: fill(outcomes) }, reads))
    }

    async fn get_user(
        &self,
        request: Request<v1::GetUserRequest>,
    ) -> Result<Response<raw_response::Got>, Status> {
        let (caller, request) = with_caller(request)?;
        let context = self.look_up(&caller, "GetUser", &request.tenant)?;
        let mask = ReadMask::parse(request.read_mask.as_ref()).map_err(status)?;
        let got = self.directory.get(&context, &request.user_id, mask.view()).await;
        count_misses(&caller, [&got]);
        Ok(Response::new(mask.apply_to_got(got.map_err(status)?).into()))
    }

    async fn batch_get_users(
        &self,
        request: Request<v1::BatchGetUsersRequest>,
    ) -> Result<Response<raw_response::BatchGot>, Status> {
        let (caller, request) = with_caller(request)?;
        let context = self.look_up(&caller, "BatchGetUsers", &request.tenant)?;
        let _turn = self.turn().await?;
        let mask = ReadMask::parse(request.read_mask.as_ref()).map_err(status)?;
        let got = self.directory.batch_get(&context, &request.user_ids, mask.view()).await;
        let outcomes = got.map_err(status)?;
        count_misses(&caller, &outcomes);
        let masked = |outcome: Result<_, _>| outcome.map(|got| mask.apply_to_got(got));
        let outcomes = outcomes.into_iter().map(masked).collect();
        Ok(Response::new(raw_response::BatchGot { results: fill(outcomes) }))
    }

    async fn normalize_identity(
        &self,
        request: Request<v1::NormalizeIdentityRequest>,
    ) -> Result<Response<v1::NormalizeIdentityResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let context = self.context(&caller, "NormalizeIdentity", &request.tenant)?;
        let raw = convert::raw(request.identifier.as_ref());
        let normalized = self.directory.normalize(&context, raw).await.map_err(status)?;
        let (normalization, rules_version, key) = normalized;
        Ok(Response::new(convert::normalization(normalization, rules_version, key)))
    }

    async fn check_identity(
        &self,
        request: Request<v1::CheckIdentityRequest>,
    ) -> Result<Response<v1::CheckIdentityResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let context = self.look_up(&caller, "CheckIdentity", &request.tenant)?;
        let raw = convert::raw(request.identifier.as_ref());
        // Either answer says whether somebody has the identifier.
        caller.missed(1);
        let (identifier, refusal) =
            self.directory.check_identity(&context, &request.user_id, raw).await.map_err(status)?;
        let held_until = match &refusal {
            // Its time says when somebody gave the identifier up.
            Some(Error::IdentityHeld { until, .. }) if caller.role > Role::Resolver => {
                Some(convert::time_message(*until))
            }
            _ => None,
        };

        Ok(Response::new(v1::CheckIdentityResponse {
            available: refusal.is_none(),
            reason: refusal.as_ref().map_or("", reason).to_owned(),
            identifier: Some(identifier_message(&identifier)),
            held_until,
        }))
    }

    async fn search_users(
        &self,
        request: Request<v1::SearchUsersRequest>,
    ) -> Result<Response<raw_response::Searched>, Status> {
        let (caller, request) = with_caller(request)?;
        let context = self.context(&caller, "SearchUsers", &request.tenant)?;
        if request.explain && caller.role < Role::Admin {
            return Err(role_too_low("explain", Role::Admin));
        }
        let mask = ReadMask::parse(request.read_mask.as_ref()).map_err(status)?;
        let _turn = self.turn().await?;
        let search = SearchRequest {
            filter: &request.filter,
            order_by: &request.order_by,
            page_size: request.page_size,
            page_token: &request.page_token,
            explain: request.explain,
            view: mask.view(),
        };
        let page = self.directory.search(&context, search).await.map_err(status)?;
        let plan = request.explain.then(|| convert::plan(&page.plan));
        let users = page.users.into_iter().map(|user| mask.encode(user)).collect();
        Ok(Response::new(raw_response::Searched {
            users,
            next_page_token: page.next_page_token,
            plan,
        }))
    }

    async fn list_history(
        &self,
        request: Request<v1::ListHistoryRequest>,
    ) -> Result<Response<v1::ListHistoryResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let context = self.context(&caller, "ListHistory", &request.tenant)?;
        let history = convert::history(&request).map_err(status)?;
        let page = self.directory.history(&context, history).await.map_err(status)?;
        Ok(Response::new(v1::ListHistoryResponse {
            events: page.events.iter().map(event_message).collect(),
            next_page_token: page.next_page_token,
        }))
    }

    type WatchStream = super::watch::Responses;

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (caller, request) = with_caller(request)?;
        let context = self.context(&caller, "Watch", &request.tenant)?;
        let wanted = convert::watch(&request).map_err(status)?;
        let watch = self.directory.watch(&context, wanted).await.map_err(status)?;
        Ok(Response::new(super::watch::responses(watch, self.stopping.clone())))
    }
}

/// The time of which a look-up asks. Resolvers may ask for the present alone.
fn as_of(caller: &Call, time: Option<&ProtoTimestamp>) -> Result<Option<Timestamp>, Status> {
    if time.is_some() && caller.role < Role::Registrar {
        return Err(role_too_low("as_of", Role::Registrar));
    }
    convert::optional_timestamp("as_of", time).map_err(status)
}

/// The histogram of reads.
pub const RESOLVE_READS: (&str, &str) =
    ("polynym_resolve_reads", "Reads, each sent to one shard, for one ResolveIdentity");

fn resolve_reads() -> &'static Histogram {
    static HISTOGRAM: OnceLock<Histogram> = OnceLock::new();
    HISTOGRAM.get_or_init(|| histogram!(RESOLVE_READS.0))
}

/// Counts the look-ups that found nobody.
pub fn count_misses<'a, T: 'a>(
    caller: &Call,
    outcomes: impl IntoIterator<Item = &'a Result<T, Error>>,
) {
    let is_miss = |outcome: &&Result<T, Error>| {
        matches!(outcome, Err(Error::IdentityNotFound | Error::UserNotFound))
    };
    caller.missed(outcomes.into_iter().filter(is_miss).count());
}

/// Counts look-ups by the kinds of their identifiers.
fn count_resolves<'a, T: 'a>(
    caller: &Call,
    looked_up: impl IntoIterator<Item = (&'a Option<RawIdentifier<'a>>, &'a Result<T, Error>)>,
) {
    for (raw, outcome) in looked_up {
        let found = match outcome {
            Ok(_) => true,
            Err(Error::IdentityNotFound) => false,
            Err(_) => continue,
        };
        if let Some(raw) = raw {
            caller.count(Metric::Resolve { kind: raw.kind().as_str(), found }, 1);
        }
    }
}

/// Answers with the number of reads that were sent for a call.
fn with_reads<T>(response: T, reads: u32) -> Response<T> {
    let mut response = Response::new(response);
    response.metadata_mut().insert("polynym-reads", reads.into());
    response
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt;

    use super::check_batch;

    /// Items that cannot be decoded: they are counted all the same.
    #[test]
    fn items_are_counted_before_they_are_decoded() {
        let items = |count: usize| [0x12, 1, 0xff].repeat(count);
        let path = "/polynym.v1.DirectoryService/BatchResolveIdentities";
        assert!(check_batch(path, &items(1_000), 1_000).is_ok());
        let refused = check_batch(path, &items(300_000), 1_000).unwrap_err();
        assert_eq!(refused.get_details_error_info().unwrap().metadata["value"], "300000");
        assert!(check_batch("/polynym.v1.DirectoryService/GetUser", &items(1_001), 1_000).is_ok());
    }
}
