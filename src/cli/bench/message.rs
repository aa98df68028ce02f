//! Answers of which only what is checked is decoded; the rest is skipped. Field numbers are those
//! of `polynym.v1`.

use bytes::Bytes;
use prost::{Message, Oneof};

use crate::proto::google::rpc::Status;
use crate::proto::v1::{Identifier, Identity};

/// A `ResolveIdentityResponse`, and a `Found` of a batch.
#[derive(Clone, PartialEq, Message)]
pub struct Found {
    #[prost(message, optional, tag = "1")]
    pub user: Option<Named>,
    #[prost(message, optional, tag = "2")]
    pub identity: Option<Known>,
}

/// A `User` of which the name counts.
#[derive(Clone, PartialEq, Message)]
pub struct Named {
    #[prost(bytes = "bytes", tag = "4")]
    pub display_name: Bytes,
}

/// An `Identity` of which the identifier counts.
#[derive(Clone, PartialEq, Message)]
pub struct Known {
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

/// A `BatchResolveIdentitiesResponse` whose users are read with their identities.
#[derive(Clone, PartialEq, Message)]
pub struct ChangedBatch {
    #[prost(message, repeated, tag = "1")]
    pub results: Vec<ChangedItem>,
}

/// A `BatchResolveIdentitiesResponse.Result`.
#[derive(Clone, PartialEq, Message)]
pub struct ChangedItem {
    #[prost(oneof = "ChangedOutcome", tags = "1, 2")]
    pub outcome: Option<ChangedOutcome>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum ChangedOutcome {
    #[prost(message, tag = "1")]
    Found(Changed),
    #[prost(message, tag = "2")]
    Error(Status),
}

/// The answer to a mutation, and again a `Found` of a batch.
#[derive(Clone, PartialEq, Message)]
pub struct Changed {
    #[prost(message, optional, tag = "1")]
    pub user: Option<Listed>,
}

/// A `User` of which the identities count, too.
#[derive(Clone, PartialEq, Message)]
pub struct Listed {
    #[prost(string, tag = "1")]
    pub user_id: String,
    #[prost(bytes = "bytes", tag = "4")]
    pub display_name: Bytes,
    #[prost(message, repeated, tag = "5")]
    pub identities: Vec<Identity>,
}

impl Listed {
    pub fn has(&self, identifier: &Identifier) -> bool {
        self.identities.iter().any(|identity| identity.identifier.as_ref() == Some(identifier))
    }
}
