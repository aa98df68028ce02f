//! DirectoryService: look-ups.

use std::sync::OnceLock;

use metrics::{Histogram, histogram};
use prost_types::Timestamp as ProtoTimestamp;
use tonic::{Request, Response, Status};

use super::api::{Api, count_misses, look_up_tenant};
use super::authorization::authorized;
use super::status::status;
use super::{convert, raw_response, watch};
use polynym_access::{Call, Metric, Role};
use polynym_directory::{
    Error, ResolveOptions, SearchRequest, Timestamp, encoded::event::event_message,
    identifier_message,
};
use polynym_identifier::RawIdentifier;
use polynym_lines::raw_identifier;
use polynym_proto::v1;
use polynym_transport::protocol;

mod batch;
mod read_mask;

use batch::fill;
use read_mask::ReadMask;

impl Api {
    pub async fn resolve_identity(
        &self,
        call: &Call,
        request: v1::ResolveIdentityRequest,
    ) -> Result<Response<raw_response::Resolved>, Status> {
        let tenant = look_up_tenant(call, &request.tenant)?;
        let mask = ReadMask::parse(request.read_mask.as_ref()).map_err(status)?;
        let options = ResolveOptions {
            max_staleness: convert::max_staleness(request.max_staleness.as_ref())
                .map_err(status)?,
            consistency: convert::consistency(request.consistency).map_err(status)?,
            show_disabled: request.show_disabled,
            view: mask.view(),
        };
        let raw = raw_identifier(request.identifier.as_ref());
        let resolved = match as_of(call, request.as_of.as_ref())? {
            None => self.directory.resolve(&tenant, raw, options).await,
            Some(time) => {
                let context = self.directory.context(tenant, &call.name, call.method(), "");
                self.directory.resolve_as_of(&context, raw, time, options.view).await
            }
        };
        count_misses(call, [&resolved]);
        count_resolves(call, [(&raw, &resolved)]);
        let (found, reads) = resolved.map_err(status)?;
        resolve_reads().record(reads);
        Ok(with_reads(mask.apply_to_found(found).into(), reads))
    }

    pub async fn batch_resolve_identities(
        &self,
        call: &Call,
        request: v1::BatchResolveIdentitiesRequest,
    ) -> Result<Response<raw_response::BatchResolved>, Status> {
        let tenant = look_up_tenant(call, &request.tenant)?;
        let mask = ReadMask::parse(request.read_mask.as_ref()).map_err(status)?;
        let options = ResolveOptions {
            max_staleness: convert::max_staleness(request.max_staleness.as_ref())
                .map_err(status)?,
            consistency: convert::consistency(request.consistency).map_err(status)?,
            show_disabled: request.show_disabled,
            view: mask.view(),
        };
        let raw: Vec<_> =
            request.identifiers.iter().map(|message| raw_identifier(Some(message))).collect();
        let _permit = self.batch_permits.take(call).await?;
        let resolved = match as_of(call, request.as_of.as_ref())? {
            None => self.directory.batch_resolve(&tenant, &raw, options).await,
            Some(time) => {
                let context = self.directory.context(tenant, &call.name, call.method(), "");
                self.directory.batch_resolve_as_of(&context, &raw, time, options.view).await
            }
        };
        let (outcomes, reads) = resolved.map_err(status)?;
        count_misses(call, &outcomes);
        count_resolves(call, raw.iter().zip(&outcomes));
        let masked =
            outcomes.into_iter().map(|outcome| outcome.map(|found| mask.apply_to_found(found)));
        Ok(with_reads(raw_response::BatchResolved { results: fill(masked.collect()) }, reads))
    }

    pub async fn get_user(
        &self,
        call: &Call,
        request: v1::GetUserRequest,
    ) -> Result<Response<raw_response::Got>, Status> {
        let context = self.look_up(call, &request.tenant)?;
        let mask = ReadMask::parse(request.read_mask.as_ref()).map_err(status)?;
        let got = self.directory.get(&context, &request.user_id, mask.view()).await;
        count_misses(call, [&got]);
        Ok(Response::new(mask.apply_to_got(got.map_err(status)?).into()))
    }

    pub async fn batch_get_users(
        &self,
        call: &Call,
        request: v1::BatchGetUsersRequest,
    ) -> Result<Response<raw_response::BatchGot>, Status> {
        let context = self.look_up(call, &request.tenant)?;
        let _permit = self.batch_permits.take(call).await?;
        let mask = ReadMask::parse(request.read_mask.as_ref()).map_err(status)?;
        let got = self.directory.batch_get(&context, &request.user_ids, mask.view()).await;
        let outcomes = got.map_err(status)?;
        count_misses(call, &outcomes);
        let masked = outcomes.into_iter().map(|outcome| outcome.map(|got| mask.apply_to_got(got)));
        Ok(Response::new(raw_response::BatchGot { results: fill(masked.collect()) }))
    }

    pub async fn normalize_identity(
        &self,
        call: &Call,
        request: v1::NormalizeIdentityRequest,
    ) -> Result<Response<v1::NormalizeIdentityResponse>, Status> {
        let context = self.context(call, &request.tenant, "")?;
        let raw = raw_identifier(request.identifier.as_ref());
        let (normalization, rules_version, key) =
            self.directory.normalize(&context, raw).await.map_err(status)?;
        Ok(Response::new(convert::normalization(normalization, rules_version, key)))
    }

    pub async fn check_identity(
        &self,
        call: &Call,
        request: v1::CheckIdentityRequest,
    ) -> Result<Response<v1::CheckIdentityResponse>, Status> {
        let context = self.look_up(call, &request.tenant)?;
        let raw = raw_identifier(request.identifier.as_ref());
        // Either answer reveals whether the identifier is taken.
        call.record_misses(1);
        let (identifier, refusal) =
            self.directory.check_identity(&context, &request.user_id, raw).await.map_err(status)?;
        let held_until = match &refusal {
            // Its time reveals when the identifier was released.
            Some(Error::IdentityHeld { until, .. }) if call.role > Role::Resolver => {
                Some(convert::time_message(*until))
            }
            _ => None,
        };

        Ok(Response::new(v1::CheckIdentityResponse {
            available: refusal.is_none(),
            reason: refusal.as_ref().map_or("", Error::reason).to_owned(),
            identifier: Some(identifier_message(&identifier)),
            held_until,
        }))
    }

    pub async fn search_users(
        &self,
        call: &Call,
        request: v1::SearchUsersRequest,
    ) -> Result<Response<raw_response::Searched>, Status> {
        let context = self.context(call, &request.tenant, "")?;
        if request.explain && call.role < Role::Admin {
            return Err(protocol::role_too_low("explain", Role::Admin));
        }
        let mask = ReadMask::parse(request.read_mask.as_ref()).map_err(status)?;
        let _permit = self.batch_permits.take(call).await?;
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
            hint: page.hint,
            unreadable_user_ids: page.unreadable.iter().map(ToString::to_string).collect(),
        }))
    }

    pub async fn list_history(
        &self,
        call: &Call,
        request: v1::ListHistoryRequest,
    ) -> Result<Response<v1::ListHistoryResponse>, Status> {
        let context = self.context(call, &request.tenant, "")?;
        let history = convert::history(&request).map_err(status)?;
        let _permit = self.batch_permits.take(call).await?;
        let page = self.directory.history(&context, history).await.map_err(status)?;
        Ok(Response::new(v1::ListHistoryResponse {
            events: page.events.iter().map(event_message).collect(),
            next_page_token: page.next_page_token,
        }))
    }

    pub async fn list_owners(
        &self,
        call: &Call,
        request: v1::ListOwnersRequest,
    ) -> Result<Response<v1::ListOwnersResponse>, Status> {
        let context = self.context(call, &request.tenant, "")?;
        let raw = raw_identifier(request.identifier.as_ref());
        let owners = self.directory.list_owners(&context, raw).await.map_err(status)?;
        Ok(Response::new(convert::owners(owners)))
    }

    pub async fn list_events(
        &self,
        call: &Call,
        request: v1::ListEventsRequest,
    ) -> Result<Response<v1::ListEventsResponse>, Status> {
        let context = self.context(call, &request.tenant, "")?;
        let events = convert::events(&request).map_err(status)?;
        let _permit = self.batch_permits.take(call).await?;
        let page = self.directory.events(&context, events).await.map_err(status)?;
        Ok(Response::new(v1::ListEventsResponse {
            events: page.events.iter().map(event_message).collect(),
            next_page_token: page.next_page_token,
            users_read: page.users_read as i64,
            unreadable_user_ids: page.unreadable.iter().map(ToString::to_string).collect(),
        }))
    }

    pub async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<watch::Responses>, Status> {
        let (call, request) = authorized(request)?;
        let context = self.context(&call, &request.tenant, "")?;
        let watch_request = convert::watch(&request).map_err(status)?;
        let watch = self.directory.watch(&context, watch_request).await.map_err(status)?;
        Ok(Response::new(watch::responses(watch, self.stopping.clone())))
    }
}

/// The time at which a look-up reads. Resolvers may read the present only.
fn as_of(call: &Call, time: Option<&ProtoTimestamp>) -> Result<Option<Timestamp>, Status> {
    if time.is_some() && call.role < Role::Viewer {
        return Err(protocol::role_too_low("as_of", Role::Viewer));
    }
    convert::optional_timestamp("as_of", time).map_err(status)
}

/// The histogram of reads.
pub const RESOLVE_READS: (&str, &str) =
    ("polynym_resolve_reads", "Sequential reads of one ResolveIdentity");

fn resolve_reads() -> &'static Histogram {
    static HISTOGRAM: OnceLock<Histogram> = OnceLock::new();
    HISTOGRAM.get_or_init(|| histogram!(RESOLVE_READS.0))
}

/// Counts look-ups by kind of identifier.
fn count_resolves<'a, T: 'a>(
    call: &Call,
    look_ups: impl IntoIterator<Item = (&'a Option<RawIdentifier<'a>>, &'a Result<T, Error>)>,
) {
    for (raw, outcome) in look_ups {
        let found = match outcome {
            Ok(_) => true,
            Err(Error::IdentityNotFound) => false,
            Err(_) => continue,
        };
        if let Some(raw) = raw {
            call.count(Metric::Resolve { kind: raw.kind().as_str(), found }, 1);
        }
    }
}

/// Adds the number of reads that a call sent to its response.
fn with_reads<T>(message: T, reads: u32) -> Response<T> {
    let mut response = Response::new(message);
    response.metadata_mut().insert("polynym-reads", reads.into());
    response
}
