//! A request of somebody who is signed in.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use http::Response;
use http::request::Parts;
use polynym_access::{Caller, Role};
use polynym_client::Client;

pub use crate::context::Context;
use crate::failure::Failure;
use crate::frame::Frame;
use crate::render::redirect;
use crate::session::{Message, Session};

/// The maximum bytes of a tenant's name.
const MAX_TENANT_BYTES: usize = 63;

/// A request of somebody who is signed in.
#[derive(Clone)]
pub struct Visit {
    pub context: Context,
    pub session: Arc<Session>,
    pub caller: Arc<Caller>,
}

impl Visit {
    /// A client of the API for a tenant.
    pub fn client(&self, tenant: &str) -> Client {
        self.session.client().with_tenant(tenant)
    }

    /// Leads to a page, which says what was done.
    pub fn done(&self, address: &str, message: Message) -> Response<Body> {
        self.session.messages.add(address, message);
        redirect(address)
    }

    /// What was done before this page was opened, for a page that shows more beside it.
    pub fn message(&self) -> Option<Message> {
        self.session.messages.take(&self.context.path)
    }

    /// The name of the file that an operation imported in this session; empty for other operations.
    pub fn import_name(&self, tenant: &str, operation: &str) -> String {
        self.session.uploads.import_name(tenant, operation).unwrap_or_default()
    }

    /// The frame of a page of a tenant.
    pub fn frame(&self, tenant: &str) -> Frame {
        let frame = Frame::new(self.context.clone(), Some(&self.caller), tenant);
        frame.in_session(&self.session)
    }

    /// The frame of a page of the server, with the tenant of the page before.
    pub fn server_frame(&self, tenant: &str) -> Frame {
        self.frame(if is_tenant(tenant) { tenant } else { "" })
    }

    /// Checks that the caller has rights in the tenant of the page, if it has one. Some pages show
    /// what the session kept, without a call of the API.
    fn check_tenant(&self) -> Result<(), Failure> {
        let tenant = self.context.tenant();
        if !is_tenant(&tenant) {
            Err(Failure::NoTenant)
        } else if tenant.is_empty() || self.caller.tenants.contains(&tenant) {
            Ok(())
        } else {
            Err(Failure::TenantDenied)
        }
    }

    /// Checks that the caller may open a page that shows something of all tenants.
    ///
    /// # Errors
    /// The caller has some tenants only.
    pub fn require_all_tenants(&self) -> Result<(), Failure> {
        if self.caller.tenants.are_all() { Ok(()) } else { Err(Failure::TenantsTooFew) }
    }

    /// Checks that the caller may open a page. The API checks each call again.
    ///
    /// # Errors
    /// The role is lower than `role`.
    pub fn require(&self, role: Role) -> Result<(), Failure> {
        if self.caller.role >= role { Ok(()) } else { Err(Failure::RoleTooLow(role)) }
    }
}

/// Whether a text has the form of a tenant's name.
fn is_tenant(text: &str) -> bool {
    let is_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.len() <= MAX_TENANT_BYTES && text.bytes().all(is_name)
}

impl<S: Sync> FromRequestParts<S> for Visit {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let visit = parts.extensions.get::<Self>().cloned().ok_or(Failure::SignedOut)?;
        visit.check_tenant()?;
        Ok(visit)
    }
}
