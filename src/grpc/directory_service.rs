//! DirectoryService: look-ups.

use std::sync::OnceLock;

use metrics::{Histogram, histogram};
use prost_types::Timestamp as ProtoTimestamp;
use tonic::{Request, Response};

use super::api::{Api, count_misses, look_up_tenant};
use super::authorization::authorized;
use super::handlers::{Answer, Message};
use super::read_log::{ids, log_read, log_read_of_all, users_of};
use super::status::Refusal;
use super::{convert, raw_response, watch};
use polynym_access::{Call, Metric, Role};
use polynym_directory::{
    Error, FindRequest, ResolveOptions, SearchRequest, Timestamp, encoded::event::event_message,
    identifier_message,
};
use polynym_identifier::RawIdentifier;
use polynym_lines::raw_identifier;
use polynym_proto::v1;
use polynym_transport::protocol;

mod batch;
mod found;
mod read_mask;

use batch::fill;
use read_mask::ReadMask;

impl Api {
    pub async fn resolve_identity(
        &self,
        call: &Call,
        request: v1::ResolveIdentityRequest,
    ) -> Result<WithReads<raw_response::Resolved>, Refusal> {
        let tenant = look_up_tenant(call, &request.tenant)?;
        let mask = ReadMask::parse(request.read_mask.as_ref())?;
        let options = ResolveOptions {
            max_staleness: convert::max_staleness(request.max_staleness.as_ref())?,
            consistency: convert::consistency(request.consistency)?,
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
        let (found, reads) = resolved?;
        resolve_reads().record(reads);
        log_read(call, ids([&found.user]));
        Ok(WithReads { message: mask.apply_to_found(found).into(), reads })
    }

    pub async fn batch_resolve_identities(
        &self,
        call: &Call,
        request: v1::BatchResolveIdentitiesRequest,
    ) -> Result<WithReads<raw_response::BatchResolved>, Refusal> {
        let tenant = look_up_tenant(call, &request.tenant)?;
        let mask = ReadMask::parse(request.read_mask.as_ref())?;
        let options = ResolveOptions {
            max_staleness: convert::max_staleness(request.max_staleness.as_ref())?,
            consistency: convert::consistency(request.consistency)?,
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
        let (outcomes, reads) = resolved?;
        count_misses(call, &outcomes);
        count_resolves(call, raw.iter().zip(&outcomes));
        log_read(call, ids(outcomes.iter().flatten().map(|found| &found.user)));
        let masked =
            outcomes.into_iter().map(|outcome| outcome.map(|found| mask.apply_to_found(found)));
        let message = raw_response::BatchResolved { results: fill(masked.collect()) };
        Ok(WithReads { message, reads })
    }

    pub async fn get_user(
        &self,
        call: &Call,
        request: v1::GetUserRequest,
    ) -> Result<raw_response::Got, Refusal> {
        let context = self.look_up(call, &request.tenant)?;
        let mask = ReadMask::parse(request.read_mask.as_ref())?;
        let got = self.directory.get(&context, &request.user_id, mask.view()).await;
        count_misses(call, [&got]);
        let got = got?;
        log_read(call, ids([&got.user]));
        Ok(mask.apply_to_got(got).into())
    }

    pub async fn batch_get_users(
        &self,
        call: &Call,
        request: v1::BatchGetUsersRequest,
    ) -> Result<raw_response::BatchGot, Refusal> {
        let context = self.look_up(call, &request.tenant)?;
        let _permit = self.batch_permits.take(call).await?;
        let mask = ReadMask::parse(request.read_mask.as_ref())?;
        let got = self.directory.batch_get(&context, &request.user_ids, mask.view()).await;
        let outcomes = got?;
        count_misses(call, &outcomes);
        log_read(call, ids(outcomes.iter().flatten().map(|got| &got.user)));
        let masked = outcomes.into_iter().map(|outcome| outcome.map(|got| mask.apply_to_got(got)));
        Ok(raw_response::BatchGot { results: fill(masked.collect()) })
    }

    pub async fn normalize_identity(
        &self,
        call: &Call,
        request: v1::NormalizeIdentityRequest,
    ) -> Result<v1::NormalizeIdentityResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let raw = raw_identifier(request.identifier.as_ref());
        let (normalization, rules_version, key) = self.directory.normalize(&context, raw).await?;
        Ok(convert::normalization(normalization, rules_version, key))
    }

    pub async fn check_identity(
        &self,
        call: &Call,
        request: v1::CheckIdentityRequest,
    ) -> Result<v1::CheckIdentityResponse, Refusal> {
        let context = self.look_up(call, &request.tenant)?;
        let raw = raw_identifier(request.identifier.as_ref());
        // Either answer reveals whether the identifier is taken.
        call.record_misses(1);
        let (identifier, refusal) =
            self.directory.check_identity(&context, &request.user_id, raw).await?;
        let held_until = match &refusal {
            // Its time reveals when the identifier was released.
            Some(Error::IdentityHeld { until, .. }) if call.role > Role::Resolver => {
                Some((*until).into())
            }
            _ => None,
        };

        Ok(v1::CheckIdentityResponse {
            available: refusal.is_none(),
            reason: refusal.as_ref().map_or("", Error::reason).to_owned(),
            identifier: Some(identifier_message(&identifier)),
            held_until,
        })
    }

    pub async fn search_users(
        &self,
        call: &Call,
        request: v1::SearchUsersRequest,
    ) -> Result<raw_response::Searched, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        if request.explain && call.role < Role::Admin {
            return Err(protocol::role_too_low("explain", Role::Admin).into());
        }
        let mask = ReadMask::parse(request.read_mask.as_ref())?;
        let _permit = self.batch_permits.take(call).await?;
        let search = SearchRequest {
            filter: &request.filter,
            order_by: &request.order_by,
            page_size: request.page_size,
            page_token: &request.page_token,
            explain: request.explain,
            count: request.count,
            view: mask.view(),
        };
        let page = self.directory.search(&context, search).await?;
        log_read(call, ids(&page.users));
        let plan = request.explain.then(|| convert::plan(&page.plan));
        let users = page.users.into_iter().map(|user| mask.encode(user)).collect();
        Ok(raw_response::Searched {
            users,
            next_page_token: page.next_page_token,
            plan,
            hint: page.hint,
            unreadable_user_ids: page.unreadable.iter().map(ToString::to_string).collect(),
            user_count: page.count.map(convert::user_count),
        })
    }

    pub async fn find_users(
        &self,
        call: &Call,
        request: v1::FindUsersRequest,
    ) -> Result<raw_response::FoundUsers, Refusal> {
        let context = self.look_up(call, &request.tenant)?;
        let mask = ReadMask::parse(request.read_mask.as_ref())?;
        let _permit = self.batch_permits.take(call).await?;
        let identifiers_only = call.role < Role::Viewer;
        let find = FindRequest {
            text: &request.text,
            region: &request.region,
            page_size: request.page_size,
            page_token: &request.page_token,
            view: mask.view(),
            identifiers_only,
        };
        let page = self.directory.find_users(&context, find).await?;
        if identifiers_only {
            call.record_misses(page.misses);
        }
        if identifiers_only && page.tried.is_empty() && request.page_token.is_empty() {
            let what = "the text names no identifier, and finding users by anything else";
            return Err(protocol::role_too_low(what, Role::Viewer).into());
        }
        log_read(call, ids(page.matches.iter().map(|found| &found.user)));
        Ok(found::message(page, mask))
    }

    pub async fn list_history(
        &self,
        call: &Call,
        request: v1::ListHistoryRequest,
    ) -> Result<v1::ListHistoryResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let history = convert::history(&request)?;
        let _permit = self.batch_permits.take(call).await?;
        let page = self.directory.history(&context, history).await?;
        log_read(call, users_of(&page.events));
        Ok(v1::ListHistoryResponse {
            events: page.events.iter().map(event_message).collect(),
            next_page_token: page.next_page_token,
        })
    }

    pub async fn list_owners(
        &self,
        call: &Call,
        request: v1::ListOwnersRequest,
    ) -> Result<v1::ListOwnersResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let raw = raw_identifier(request.identifier.as_ref());
        let owners = self.directory.list_owners(&context, raw).await?;
        log_read(call, owners.periods.iter().filter_map(|period| period.user));
        Ok(convert::owners(owners))
    }

    pub async fn list_events(
        &self,
        call: &Call,
        request: v1::ListEventsRequest,
    ) -> Result<v1::ListEventsResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let events = convert::events(&request)?;
        let _permit = self.batch_permits.take(call).await?;
        let page = self.directory.events(&context, events).await?;
        log_read(call, users_of(&page.events));
        Ok(v1::ListEventsResponse {
            events: page.events.iter().map(event_message).collect(),
            next_page_token: page.next_page_token,
            display_names: page
                .names
                .iter()
                .map(|(id, name)| (id.to_string(), name.clone()))
                .collect(),
            events_read: page.events_read as i64,
            unreadable_user_ids: page.unreadable.iter().map(ToString::to_string).collect(),
        })
    }

    pub async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<watch::Responses, Refusal> {
        let (call, request) = authorized(request)?;
        let context = self.context(&call, &request.tenant, "")?;
        let watch_request = convert::watch(&request)?;
        let watch = self.directory.watch(&context, watch_request).await?;
        match request.user_ids.is_empty() {
            true => log_read_of_all(&call),
            false => log_read(&call, request.user_ids.iter().filter_map(|id| id.parse().ok())),
        }
        Ok(watch::responses(watch, self.stopping.clone()))
    }
}

/// The time at which a look-up reads. Resolvers may read the present only.
fn as_of(call: &Call, time: Option<&ProtoTimestamp>) -> Result<Option<Timestamp>, Refusal> {
    if time.is_some() && call.role < Role::Viewer {
        return Err(protocol::role_too_low("as_of", Role::Viewer).into());
    }
    Ok(convert::optional_timestamp("as_of", time)?)
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

/// A message with the number of reads that its call took, which stands in the response's metadata.
pub struct WithReads<M> {
    message: M,
    reads: u32,
}

impl<M: Message> Answer for WithReads<M> {
    type Message = M;

    fn into_response(self) -> Response<M> {
        let mut response = Response::new(self.message);
        response.metadata_mut().insert("polynym-reads", self.reads.into());
        response
    }
}
