//! The callers: roles, tenants, rates, credentials, and their calls of today.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::{StreamExt, TryStreamExt, stream};
use polynym_access::{Access, Caller, Credential, TokenHash};
use polynym_proto::v1::{GetUsageRequest, ListTenantsRequest, UsageResolution};
use prost_types::Timestamp;
use serde::Deserialize;

use super::access::{require_admin, require_change};
use crate::console::Shared;
use crate::prelude::*;

/// The callers of a page.
const PAGE_SIZE: usize = 25;
/// The credentials of a caller, and its patterns of tenants, that are shown.
const MAX_CREDENTIALS: usize = 8;
const MAX_TENANTS: usize = 12;
/// The tenants whose usage is read.
const MAX_USAGE_TENANTS: i32 = 25;
/// The reads of usage at once.
const CONCURRENT_READS: usize = 4;
/// How long credentials are valid: what forms offer, and what it is called.
pub const VALIDITIES: [(&str, &str); 5] = [
    ("7d", "7 days"),
    ("30d", "30 days"),
    ("90d", "90 days"),
    ("365d", "a year"),
    ("never", "ever: it does not expire"),
];
const DAY: u64 = 24 * 60 * 60;

#[derive(Template)]
#[template(path = "pages/server/callers.html")]
struct CallersPage {
    frame: Frame,
    requires_credentials: bool,
    /// Whether the reader can change credentials here.
    may_change: bool,
    /// Why nobody can change them here; empty if somebody can.
    fixed: String,
    is_broken: bool,
    callers: Vec<CallerView>,
    pager: Pager,
    /// The tenants whose usage is shown, if there are more.
    usage_tenants: usize,
    has_more_tenants: bool,
}

/// A caller.
struct CallerView {
    name: String,
    role: String,
    tenants: Vec<String>,
    more_tenants: usize,
    calls: Option<u32>,
    misses: Option<u32>,
    credentials: Vec<CredentialView>,
    more_credentials: usize,
    connections: usize,
    under_way: usize,
    today: i64,
    failed: i64,
    /// The pages of its forms; empty if there are none.
    new_path: String,
    revoke_path: String,
}

/// A credential, without what proves it.
pub struct CredentialView {
    /// Such as `token 7hf2k0qh2vma`.
    pub text: String,
    pub expires: Option<Time>,
    pub has_expired: bool,
    /// The fields that choose it among those of a caller.
    fields: [(&'static str, String); 2],
    /// The pages of its forms; empty if there are none.
    extend_path: String,
    revoke_path: String,
}

impl CallerView {
    /// Adds the links to the forms.
    fn link(&mut self, frame: &Frame) {
        let name = ("name", &*self.name);
        self.new_path = frame.server_page("callers/new", &[name]);
        self.revoke_path = frame.server_page("callers/revoke", &[name]);
        for own in &mut self.credentials {
            let [token, certificate] = own.fields.each_ref().map(|(key, value)| (*key, &**value));
            let fields = [name, token, certificate];
            own.extend_path = frame.server_page("callers/extend", &fields);
            own.revoke_path = frame.server_page("callers/revoke", &fields);
        }
    }
}

/// The query of a page with a list.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Parameters {
    /// The page. Its token is the name or the number in the last row of the page before.
    pub after: Trail,
    /// The tenant of the page before.
    pub t: String,
}

/// The callers.
pub async fn page(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    Query(Parameters { after, t }): Query<Parameters>,
) -> Page {
    require_admin(&visit)?;
    let (may_change, fixed) = match require_change(&shared, &visit).await {
        Ok(()) => (true, String::new()),
        Err(Failure::CredentialsFixed(reason)) => (false, reason),
        Err(_) => (false, String::new()),
    };
    let (mut callers, has_more) = callers(&shared.access, &visit.caller, after.token());
    let (usage, usage_tenants, has_more_tenants) = usage(&visit, &callers).await?;
    for caller in &mut callers {
        (caller.today, caller.failed) = usage.get(&caller.name).copied().unwrap_or_default();
    }
    let last = callers.last().filter(|_| has_more);
    let frame = visit.server_frame(&t);
    let next = last.map_or("", |last| &last.name).to_owned();
    callers.iter_mut().for_each(|caller| caller.link(&frame));
    Ok(render(&CallersPage {
        pager: after.pager(&frame.server_page("callers", &[]), callers.len(), &next),
        frame,
        may_change,
        fixed,
        requires_credentials: shared.access.requires_credentials(),
        is_broken: shared.access.is_broken(),
        callers,
        usage_tenants,
        has_more_tenants,
    }))
}

/// The callers after a name, and whether there are more.
fn callers(access: &Access, own: &Caller, after: &str) -> (Vec<CallerView>, bool) {
    let Some(credentials) = access.credentials() else {
        return (vec![view(own, &[])], false);
    };
    let mut by_caller: Vec<Vec<&Credential>> = Vec::new();
    for credential in credentials.list() {
        if credential.caller.name.as_str() <= after {
            continue;
        }
        let count = by_caller.len();
        match by_caller.last_mut() {
            Some(own) if own[0].caller.name == credential.caller.name => own.push(credential),
            _ if count > PAGE_SIZE => break,
            _ => by_caller.push(vec![credential]),
        }
    }
    let has_more = by_caller.len() > PAGE_SIZE;
    by_caller.truncate(PAGE_SIZE);
    (by_caller.iter().map(|own| view(&own[0].caller, own)).collect(), has_more)
}

fn view(caller: &Caller, credentials: &[&Credential]) -> CallerView {
    let patterns = caller.tenants.patterns();
    CallerView {
        name: caller.name.clone(),
        role: caller.role.to_string(),
        tenants: patterns.iter().take(MAX_TENANTS).cloned().collect(),
        more_tenants: patterns.len().saturating_sub(MAX_TENANTS),
        calls: caller.limits.calls.map(Into::into),
        misses: caller.limits.misses.map(Into::into),
        credentials: credentials.iter().take(MAX_CREDENTIALS).map(|own| credential(own)).collect(),
        more_credentials: credentials.len().saturating_sub(MAX_CREDENTIALS),
        connections: caller.state.connections.get(),
        under_way: caller.state.reads.get() + caller.state.mutations.get(),
        today: 0,
        failed: 0,
        new_path: String::new(),
        revoke_path: String::new(),
    }
}

/// The view of a credential.
pub fn credential(credential: &Credential) -> CredentialView {
    let id = credential.token.as_ref().map(TokenHash::id);
    let token = id.map(|id| format!("token {id}"));
    let certificate = credential.certificate.as_ref().map(|name| format!("certificate {name}"));
    let parts: Vec<_> = token.into_iter().chain(certificate).collect();
    CredentialView {
        text: parts.join(" with "),
        fields: [
            ("token", id.unwrap_or_default().to_owned()),
            ("certificate", credential.certificate.clone().unwrap_or_default()),
        ],
        extend_path: String::new(),
        revoke_path: String::new(),
        expires: Time::of(credential.expires.map(Timestamp::from).as_ref()),
        has_expired: credential.has_expired(SystemTime::now()),
    }
}

/// The calls of a caller, and how many of them failed.
type Calls = (i64, i64);

/// The calls of today by caller in the first tenants, how many these are, and whether there are
/// more.
async fn usage(
    visit: &Visit,
    callers: &[CallerView],
) -> Result<(HashMap<String, Calls>, usize, bool), Failure> {
    let request = ListTenantsRequest { page_size: MAX_USAGE_TENANTS, ..Default::default() };
    let listed = visit.client("").admin().list_tenants(request).await?;
    let names: Vec<_> = callers.iter().map(|caller| caller.name.clone()).collect();
    let mut calls: HashMap<String, Calls> = HashMap::new();
    if names.is_empty() {
        return Ok((calls, 0, false));
    }
    let today = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() / DAY);
    let from = Timestamp { seconds: i64::try_from(today * DAY).unwrap_or_default(), nanos: 0 };
    let count = listed.tenants.len();
    let answers = listed.tenants.into_iter().map(|tenant| {
        let request = GetUsageRequest {
            tenant: tenant.tenant,
            metrics: vec!["calls.*".to_owned()],
            callers: names.clone(),
            from: Some(from),
            to: None,
            resolution: UsageResolution::Day.into(),
        };
        let client = visit.client("");
        async move { client.admin().get_usage(request).await }
    });
    let answers: Vec<_> =
        stream::iter(answers).buffer_unordered(CONCURRENT_READS).try_collect().await?;
    for series in answers.iter().flat_map(|answer| &answer.series) {
        let total: i64 = series.points.iter().map(|point| point.count).sum();
        let (all, failed) = calls.entry(series.caller.clone()).or_default();
        *all += total;
        *failed += if series.metric.ends_with(".OK") { 0 } else { total };
    }
    Ok((calls, count, !listed.next_page_token.is_empty()))
}
