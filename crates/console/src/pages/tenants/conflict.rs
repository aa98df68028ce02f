//! A change of a tenant, and what else changed since somebody saw it.

use polynym_client::{Client, Error, Kind};
use polynym_proto::v1;
use prost_types::Timestamp;
use v1::{GetTenantRequest, ListTenantHistoryRequest, Tenant, UpdateTenantRequest};

use crate::failure::Failure;
use crate::form::Form;
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
    /// An id for the change that the form makes.
    pub request_id: String,
}

impl Seen {
    /// The version that a page shows.
    pub fn of(tenant: &Tenant) -> Self {
        let time = tenant.update_time.as_ref().or(tenant.create_time.as_ref());
        Self {
            etag: tenant.etag.clone(),
            time: time
                .map(|time| format!("{}.{:09}", time.seconds, time.nanos))
                .unwrap_or_default(),
            request_id: uuid::Uuid::new_v4().to_string(),
        }
    }

    /// The version in a form.
    pub fn in_form(form: &Form) -> Self {
        let [etag, time, request_id] =
            ["etag", "seen", "request_id"].map(|name| form.get(name).to_owned());
        Self { etag, time, request_id }
    }

    fn timestamp(&self) -> Option<Timestamp> {
        let (seconds, nanos) = self.time.split_once('.')?;
        Some(Timestamp { seconds: seconds.parse().ok()?, nanos: nanos.parse().ok()? })
    }

    /// What changed since.
    pub async fn conflict(&self, client: &Client) -> Result<Conflict, Failure> {
        let seen = self.timestamp();
        let request =
            ListTenantHistoryRequest { from: seen, page_size: MAX_EVENTS, ..Default::default() };
        let answer = client.admin().list_tenant_history(request).await?;
        let position = |time: &Option<Timestamp>| time.map(|time| (time.seconds, time.nanos));
        let is_later = |event: &&v1::TenantEvent| position(&event.time) > position(&seen);
        let events = answer.events.iter().filter(is_later).map(TenantEventView::of).collect();
        Ok(Conflict { events })
    }
}

/// Why a change was not made.
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
            Kind::InvalidArgument | Kind::FailedPrecondition => Self::Invalid(
                error.message().to_owned(),
                error.field().unwrap_or_default().to_owned(),
            ),
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
