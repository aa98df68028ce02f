//! Responses that carry users as their stored bytes. On the wire a message field and a bytes field
//! are the same, so these have the form of the API's messages.

use bytes::Bytes;
use prost::Message;
use tonic::Status;

use polynym_directory::{ExportedUser, Found, UserById};
use polynym_proto::google::rpc;
use polynym_proto::v1::export_users_response::{End, Start};
use polynym_proto::v1::{FindReading, OwnerlessHold, SearchPlan, Tenant, UserCount};

/// `polynym.v1.ResolveIdentityResponse`, and `BatchResolveIdentitiesResponse.Found`.
#[derive(Clone, PartialEq, Message)]
pub struct Resolved {
    /// A `polynym.v1.User`.
    #[prost(bytes = "bytes", tag = "1")]
    user: Bytes,
    /// A `polynym.v1.Identity`.
    #[prost(bytes = "bytes", tag = "2")]
    identity: Bytes,
}

/// `polynym.v1.BatchResolveIdentitiesResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct BatchResolved {
    #[prost(message, repeated, tag = "1")]
    pub results: Vec<ResolvedItem>,
}

/// `polynym.v1.BatchResolveIdentitiesResponse.Result`: exactly one field is set.
#[derive(Clone, PartialEq, Message)]
pub struct ResolvedItem {
    #[prost(message, optional, tag = "1")]
    found: Option<Resolved>,
    #[prost(message, optional, tag = "2")]
    error: Option<rpc::Status>,
}

/// `polynym.v1.GetUserResponse`, and `BatchGetUsersResponse.Found`.
#[derive(Clone, PartialEq, Message)]
pub struct Got {
    /// A `polynym.v1.User`.
    #[prost(bytes = "bytes", tag = "1")]
    user: Bytes,
    #[prost(string, tag = "2")]
    merged_from: String,
}

/// `polynym.v1.BatchGetUsersResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct BatchGot {
    #[prost(message, repeated, tag = "1")]
    pub results: Vec<GotItem>,
}

/// `polynym.v1.BatchGetUsersResponse.Result`: exactly one field is set.
#[derive(Clone, PartialEq, Message)]
pub struct GotItem {
    #[prost(message, optional, tag = "1")]
    found: Option<Got>,
    #[prost(message, optional, tag = "2")]
    error: Option<rpc::Status>,
}

/// `polynym.v1.SearchUsersResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct Searched {
    /// Each a `polynym.v1.User`.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub users: Vec<Bytes>,
    #[prost(string, tag = "2")]
    pub next_page_token: String,
    #[prost(message, optional, tag = "3")]
    pub plan: Option<SearchPlan>,
    #[prost(string, tag = "4")]
    pub hint: String,
    #[prost(string, repeated, tag = "5")]
    pub unreadable_user_ids: Vec<String>,
    #[prost(message, optional, tag = "6")]
    pub user_count: Option<UserCount>,
}

/// `polynym.v1.FindUsersResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct FoundUsers {
    #[prost(message, repeated, tag = "1")]
    pub matches: Vec<FoundUser>,
    #[prost(message, repeated, tag = "2")]
    pub tried: Vec<FindReading>,
    #[prost(string, repeated, tag = "3")]
    pub suggestions: Vec<String>,
    #[prost(string, tag = "4")]
    pub next_page_token: String,
    #[prost(string, repeated, tag = "5")]
    pub unreadable_user_ids: Vec<String>,
}

/// `polynym.v1.FoundUser`.
#[derive(Clone, PartialEq, Message)]
pub struct FoundUser {
    /// A `polynym.v1.User`.
    #[prost(bytes = "bytes", tag = "1")]
    pub user: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub reasons: Vec<FindReading>,
    #[prost(string, tag = "3")]
    pub merged_from: String,
}

/// `polynym.v1.ExportUsersResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct Exported {
    #[prost(message, optional, tag = "1")]
    pub start: Option<Start>,
    /// A `polynym.v1.User`.
    #[prost(bytes = "bytes", tag = "2")]
    pub user: Bytes,
    /// A `polynym.v1.UserInternals`.
    #[prost(bytes = "bytes", tag = "3")]
    pub internals: Bytes,
    #[prost(message, optional, tag = "4")]
    pub tenant_record: Option<Tenant>,
    #[prost(message, repeated, tag = "5")]
    pub users: Vec<ExportedItem>,
    #[prost(message, optional, tag = "6")]
    pub ownerless_hold: Option<OwnerlessHold>,
    #[prost(message, optional, tag = "7")]
    pub end: Option<End>,
    #[prost(string, repeated, tag = "8")]
    pub unreadable_user_ids: Vec<String>,
    #[prost(string, tag = "9")]
    pub page_token: String,
}

/// `polynym.v1.ExportedUser`.
#[derive(Clone, PartialEq, Message)]
pub struct ExportedItem {
    /// A `polynym.v1.User`.
    #[prost(bytes = "bytes", tag = "1")]
    user: Bytes,
    /// A `polynym.v1.UserInternals`.
    #[prost(bytes = "bytes", tag = "2")]
    internals: Bytes,
}

impl From<ExportedUser> for ExportedItem {
    fn from(exported: ExportedUser) -> Self {
        Self { user: exported.user.into_bytes(), internals: exported.internals }
    }
}

impl From<Found> for Resolved {
    fn from(found: Found) -> Self {
        Self { user: found.user.into_bytes(), identity: found.identity }
    }
}

impl From<UserById> for Got {
    fn from(got: UserById) -> Self {
        let merged_from = got.merged_from.map(|id| id.to_string()).unwrap_or_default();
        Self { user: got.user.into_bytes(), merged_from }
    }
}

impl From<Result<Found, Status>> for ResolvedItem {
    fn from(outcome: Result<Found, Status>) -> Self {
        match outcome {
            Ok(found) => Self { found: Some(found.into()), error: None },
            Err(status) => Self { found: None, error: Some(status_message(&status)) },
        }
    }
}

impl From<Result<UserById, Status>> for GotItem {
    fn from(outcome: Result<UserById, Status>) -> Self {
        match outcome {
            Ok(user) => Self { found: Some(user.into()), error: None },
            Err(status) => Self { found: None, error: Some(status_message(&status)) },
        }
    }
}

/// The message for a status, for the answer to a batch.
pub fn status_message(status: &Status) -> rpc::Status {
    let bare = || rpc::Status {
        code: status.code().into(),
        message: status.message().to_owned(),
        details: Vec::new(),
    };
    rpc::Status::decode(status.details()).unwrap_or_else(|_| bare())
}
