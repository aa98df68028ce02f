//! Responses with only the fields that the benchmark checks. Field numbers are those of
//! `polynym.v1`.

use bytes::Bytes;
use prost::{Message, Oneof};

use polynym_proto::google::rpc::Status;
use polynym_proto::v1::{Identifier, Identity, ResolveIdentityResponse, User};

/// A `ResolveIdentityResponse`, and a `Found` of a batch.
#[derive(Clone, PartialEq, Message)]
pub struct Found {
    #[prost(message, optional, tag = "1")]
    pub user: Option<UserName>,
    #[prost(message, optional, tag = "2")]
    pub identity: Option<ResolvedIdentity>,
}

impl From<ResolveIdentityResponse> for Found {
    fn from(answer: ResolveIdentityResponse) -> Self {
        let name = |user: User| UserName { display_name: user.display_name.into() };
        let resolved = |identity: Identity| ResolvedIdentity { identifier: identity.identifier };
        Self { user: answer.user.map(name), identity: answer.identity.map(resolved) }
    }
}

/// A `User` with its name alone.
#[derive(Clone, PartialEq, Message)]
pub struct UserName {
    #[prost(bytes = "bytes", tag = "4")]
    pub display_name: Bytes,
}

/// A `FindUsersResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct FoundUsers {
    #[prost(message, repeated, tag = "1")]
    pub matches: Vec<FoundUser>,
}

/// A `FoundUser` with its user alone.
#[derive(Clone, PartialEq, Message)]
pub struct FoundUser {
    #[prost(message, optional, tag = "1")]
    pub user: Option<UserName>,
}

/// An `Identity` with its identifier alone.
#[derive(Clone, PartialEq, Message)]
pub struct ResolvedIdentity {
    #[prost(message, optional, tag = "1")]
    pub identifier: Option<Identifier>,
}

/// A `BatchResolveIdentitiesResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct Batch {
    #[prost(message, repeated, tag = "1")]
    pub results: Vec<Item>,
}

/// A `BatchResolveIdentitiesResponse.Result`.
#[derive(Clone, PartialEq, Message)]
pub struct Item {
    #[prost(oneof = "Outcome", tags = "1, 2")]
    pub outcome: Option<Outcome>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Outcome {
    #[prost(message, tag = "1")]
    Found(Found),
    #[prost(message, tag = "2")]
    Error(Status),
}

/// A `BatchResolveIdentitiesResponse`, with the identities of users.
#[derive(Clone, PartialEq, Message)]
pub struct UserBatch {
    #[prost(message, repeated, tag = "1")]
    pub results: Vec<UserItem>,
}

/// A `BatchResolveIdentitiesResponse.Result`.
#[derive(Clone, PartialEq, Message)]
pub struct UserItem {
    #[prost(oneof = "UserOutcome", tags = "1, 2")]
    pub outcome: Option<UserOutcome>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum UserOutcome {
    #[prost(message, tag = "1")]
    Found(UserResponse),
    #[prost(message, tag = "2")]
    Error(Status),
}

/// The response to a mutation, and a `Found` of a batch.
#[derive(Clone, PartialEq, Message)]
pub struct UserResponse {
    #[prost(message, optional, tag = "1")]
    pub user: Option<UserIdentities>,
}

/// A `User` with its id, name and identities.
#[derive(Clone, PartialEq, Message)]
pub struct UserIdentities {
    #[prost(string, tag = "1")]
    pub user_id: String,
    #[prost(bytes = "bytes", tag = "4")]
    pub display_name: Bytes,
    #[prost(message, repeated, tag = "5")]
    pub identities: Vec<Identity>,
}

impl UserIdentities {
    pub fn has(&self, identifier: &Identifier) -> bool {
        self.identities.iter().any(|identity| identity.identifier.as_ref() == Some(identifier))
    }
}
