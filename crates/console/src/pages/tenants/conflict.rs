//! A change of a tenant, and what else changed since somebody saw it.

use std::hash::{DefaultHasher, Hash, Hasher};

use polynym_client::{Client, Error, Kind};
use polynym_presentation::time::text;
use polynym_proto::time::parse;
use prost_types::Timestamp;
use uuid::Uuid;
use v1::{GetTenantRequest, ListTenantHistoryRequest, Tenant, UpdateTenantRequest};

use crate::change::problem::sentence;
use crate::prelude::*;
use crate::views::tenant::TenantEventView;

/// The maximum number of events that are shown.
const MAX_EVENTS: i32 = 10;

/// What changed since somebody saw the tenant.
pub struct Conflict {
    /// The changes, newest first.
    pub events: Vec<TenantEventView>,
}

/// The version of a tenant that somebody saw, as hidden fields of forms.
pub struct Seen {
    /// The etag.
    pub etag: String,
    /// The time of its last change.
    pub time: String,
    /// The id of the change that the form makes; empty for a page.
    pub request_id: String,
}

impl Seen {
    /// The version that a page shows.
    pub fn of(tenant: &Tenant) -> Self {
        let time = tenant.update_time.as_ref().or(tenant.create_time.as_ref());
        Self { etag: tenant.etag.clone(), time: text(time), request_id: String::new() }
    }

    /// An id for a form of the page: each has its own.
    pub fn form_id(&self) -> String {
        Uuid::new_v4().to_string()
    }

    /// The version in a form. The request id is that of its content: the same form sent twice makes
    /// one change, and one that was corrected after a step back is another.
    pub fn in_form(form: &Form) -> Self {
        let [etag, time] = ["etag", "seen"].map(|name| form.get(name).to_owned());
        Self { etag, time, request_id: content_id(form) }
    }

    /// What changed since.
    pub async fn conflict(&self, client: &Client) -> Result<Conflict, Failure> {
        let seen = parse(&self.time);
        let request =
            ListTenantHistoryRequest { from: seen, page_size: MAX_EVENTS, ..Default::default() };
        let answer = client.admin().list_tenant_history(request).await?;
        let position = |time: &Option<Timestamp>| time.map(|time| (time.seconds, time.nanos));
        let is_later = |event: &&v1::TenantEvent| position(&event.time) > position(&seen);
        let events = answer.events.iter().filter(is_later).map(TenantEventView::of).collect();
        Ok(Conflict { events })
    }
}

/// An id of all fields of a form, one of which is random.
fn content_id(form: &Form) -> String {
    let half = |n: u8| {
        let mut hasher = DefaultHasher::new();
        (n, form.fields()).hash(&mut hasher);
        hasher.finish().to_be_bytes()
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&half(0));
    bytes[8..].copy_from_slice(&half(1));
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

/// The reason why a change was not made.
pub enum Refusal {
    /// The tenant changed since it was seen.
    Conflict,
    /// A rule forbids it: a sentence, and the field of the request; may be empty.
    Invalid(String, String),
    /// Another failure.
    Other(Failure),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error.kind() {
            Kind::Aborted if error.reason() == "ETAG_MISMATCH" => Self::Conflict,
            Kind::InvalidArgument | Kind::FailedPrecondition => {
                Self::Invalid(sentence(&error), error.field().unwrap_or_default().to_owned())
            }
            _ => Self::Other(error.into()),
        }
    }
}

/// The tenant of a client.
pub async fn tenant(client: &Client) -> Result<Tenant, Failure> {
    let answer = client.admin().get_tenant(GetTenantRequest::default()).await?;
    answer.tenant.ok_or(Failure::NotFound)
}

/// Changes a tenant.
pub async fn update(client: &Client, request: UpdateTenantRequest) -> Result<Tenant, Refusal> {
    let answer = client.admin().update_tenant(request).await?;
    answer.tenant.ok_or(Refusal::Other(Failure::NotFound))
}
