//! Requests that fail: each has a page with its reason and what to do.

use std::sync::Arc;

use axum::body::Body;
use axum::response::IntoResponse;
use http::{Response, StatusCode};
use polynym_access::Role;
use polynym_client::{Error, Kind};

/// The reason why a request fails.
#[derive(Clone, Debug)]
pub enum Failure {
    /// A call of the API failed.
    Call(Error),
    /// The page needs a higher role.
    RoleTooLow(Role),
    /// The page shows something of all tenants, and the caller has some only.
    TenantsTooFew,
    /// The caller has no right in the tenant of the page.
    TenantDenied,
    /// The session follows events in as many places as it may.
    TooManyStreams,
    /// Nobody is signed in.
    SignedOut,
    /// A person who signed in by a provider may not change credentials.
    PersonDenied,
    /// The credentials cannot be changed here, in a sentence.
    CredentialsFixed(String),
    /// There is no such page.
    NotFound,
    /// The query of the address does not fit the page.
    WrongAddress,
    /// There is no such tenant.
    NoTenant,
    /// A form has an error, in a sentence.
    Form(String),
    /// The server failed, in a sentence.
    Internal(String),
    /// A search that the server does not remember.
    SearchGone,
    /// Too many requests are in flight.
    Busy,
    /// A file that the session does not have.
    FileGone,
}

/// A failure that is still to be shown.
#[derive(Clone, Debug)]
pub struct Shown(pub Arc<Failure>);

impl IntoResponse for Failure {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(Shown(Arc::new(self)));
        response
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.kind() {
            Kind::Unauthenticated => Self::SignedOut,
            _ if error.reason() == "TENANT_NOT_FOUND" => Self::NoTenant,
            _ => Self::Call(error),
        }
    }
}

impl Failure {
    /// Whether nobody is signed in.
    pub fn is_signed_out(&self) -> bool {
        matches!(self, Self::SignedOut)
    }

    /// Whether its page belongs to no tenant.
    pub const fn is_without_tenant(&self) -> bool {
        matches!(self, Self::NoTenant)
    }

    /// The status of the page.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::RoleTooLow(_) | Self::TenantsTooFew | Self::TenantDenied | Self::PersonDenied => {
                StatusCode::FORBIDDEN
            }
            Self::CredentialsFixed(_) => StatusCode::CONFLICT,
            Self::TooManyStreams => StatusCode::TOO_MANY_REQUESTS,
            Self::SignedOut => StatusCode::UNAUTHORIZED,
            Self::NotFound | Self::NoTenant | Self::SearchGone | Self::FileGone => {
                StatusCode::NOT_FOUND
            }
            Self::WrongAddress => StatusCode::BAD_REQUEST,
            Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::Form(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Call(error) => match error.kind() {
                Kind::InvalidArgument | Kind::OutOfRange => StatusCode::UNPROCESSABLE_ENTITY,
                Kind::NotFound => StatusCode::NOT_FOUND,
                Kind::AlreadyExists | Kind::Aborted | Kind::FailedPrecondition => {
                    StatusCode::CONFLICT
                }
                Kind::PermissionDenied => StatusCode::FORBIDDEN,
                Kind::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
                Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
                Kind::DeadlineExceeded | Kind::OutcomeUnknown => StatusCode::GATEWAY_TIMEOUT,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            },
        }
    }
}
