//! Look-ups: of one identifier, or of many.

use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use prost_types::FieldMask;

use crate::client::Client;
use crate::error::Error;
use crate::v1::batch_resolve_identities_response::Found;
use crate::v1::{Consistency, Identifier, ResolveIdentityRequest, ResolveIdentityResponse};

mod many;
mod shared;

/// A look-up of `T`: an identifier, or a list of them. It begins when it is awaited.
#[must_use = "a look-up begins when it is awaited"]
pub struct Resolve<T> {
    pub(crate) client: Client,
    pub(crate) target: T,
    /// The options; its identifier is not used.
    pub(crate) request: ResolveIdentityRequest,
}

impl Client {
    /// Finds the user who owns an identifier.
    pub fn resolve(&self, identifier: Identifier) -> Resolve<Identifier> {
        self.resolve_as(identifier, ResolveIdentityRequest::default())
    }

    /// Finds the users who own identifiers, of any number and in their order.
    pub fn resolve_many(
        &self,
        identifiers: impl IntoIterator<Item = Identifier>,
    ) -> Resolve<Vec<Identifier>> {
        let identifiers = identifiers.into_iter().collect();
        self.resolve_as(identifiers, ResolveIdentityRequest::default())
    }

    fn resolve_as<T>(&self, target: T, request: ResolveIdentityRequest) -> Resolve<T> {
        Resolve { client: self.clone(), target, request }
    }
}

impl<T> Resolve<T> {
    /// Sets all options at once, except for the identifier.
    pub fn options(self, request: ResolveIdentityRequest) -> Self {
        Self { request, ..self }
    }

    /// The tenant.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.request.tenant = tenant.into();
        self
    }

    /// The freshness that is required.
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.request.consistency = consistency.into();
        self
    }

    /// The age that an answer may have.
    pub fn max_staleness(mut self, age: Duration) -> Self {
        self.request.max_staleness = age.try_into().ok();
        self
    }

    /// Finds disabled users, too.
    pub fn show_disabled(mut self) -> Self {
        self.request.show_disabled = true;
        self
    }

    /// The fields of the user to return, such as `user_id`.
    pub fn fields<F: Into<String>>(mut self, fields: impl IntoIterator<Item = F>) -> Self {
        let paths = fields.into_iter().map(Into::into).collect();
        self.request.read_mask = Some(FieldMask { paths });
        self
    }

    /// Finds the owner at a time in the past.
    pub fn as_of(mut self, time: SystemTime) -> Self {
        self.request.as_of = Some(time.into());
        self
    }

    /// The time of each call.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.client = self.client.with_timeout(timeout);
        self
    }
}

impl IntoFuture for Resolve<Identifier> {
    type Output = Result<ResolveIdentityResponse, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, target, mut request } = self;
        request.identifier = Some(target);
        async move {
            match client.batches() {
                Some(batches) if shared::may_share(&request) => {
                    shared::resolve(batches, &client, request).await
                }
                _ => client.directory().resolve_identity(request).await,
            }
        }
        .boxed()
    }
}

impl IntoFuture for Resolve<Vec<Identifier>> {
    type Output = Vec<Result<Found, Error>>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        many::resolve(self).boxed()
    }
}
