//! Authorization of calls by their headers: the credential and the role, before the body is read.

use std::sync::Arc;

use http::{HeaderMap, Request};
use tonic::Status;

use crate::log_throttle::LogThrottle;
use crate::method::{Method, Requirement};
use crate::protocol;
use polynym_access::{Access, Call, CallPurpose, Caller};

/// Throttles the log while callers use expired tokens.
static EXPIRED_TOKENS: LogThrottle = LogThrottle::new();

/// Reads and checks the headers that say why a call is made.
pub type ReadPurpose = fn(&HeaderMap) -> Result<CallPurpose, Status>;

/// The callers of a server.
pub struct Authorization {
    access: Arc<Access>,
    read_purpose: ReadPurpose,
}

/// The refusal of a call by its headers.
pub struct Refusal {
    /// The call, if its caller is known.
    pub call: Option<Arc<Call>>,
    /// The status of the refusal.
    pub status: Status,
}

impl Authorization {
    /// The callers of `access`.
    pub const fn new(access: Arc<Access>, read_purpose: ReadPurpose) -> Self {
        Self { access, read_purpose }
    }

    /// Whether callers need credentials.
    pub fn needs_credentials(&self) -> bool {
        self.access.requires_credentials()
    }

    /// The caller with a client certificate of these names, without a token.
    pub fn certified_caller(&self, names: &[String]) -> Option<Arc<Caller>> {
        self.access.caller(&HeaderMap::new(), names)
    }

    /// Checks the credential and the role, and adds the call to the request's extensions. `names`
    /// are those of the client's certificate. A call that needs no credential is of nobody.
    ///
    /// # Errors
    /// The call is refused.
    pub fn authorize<B>(
        &self,
        method: &Method,
        request: &mut Request<B>,
        names: &[String],
    ) -> Result<Option<Arc<Call>>, Refusal> {
        if method.requirement == Requirement::Nothing {
            return Ok(None);
        }
        let caller = self.access.caller(request.headers(), names).ok_or_else(|| {
            self.log_expired(request.headers(), names);
            Refusal { call: None, status: protocol::credential_invalid() }
        })?;
        let (purpose, rejection) = match (self.read_purpose)(request.headers()) {
            Ok(purpose) => (purpose, None),
            Err(status) => (CallPurpose::default(), Some(status)),
        };
        let call = Arc::new(Call::new(caller, method.name, purpose));
        if let Requirement::Role(required) = method.requirement
            && call.role < required
        {
            let status = protocol::role_too_low("this method", required);
            return Err(Refusal { call: Some(call), status });
        }
        if let Some(status) = rejection {
            return Err(Refusal { call: Some(call), status });
        }
        request.extensions_mut().insert(call.clone());
        Ok(Some(call))
    }

    /// Logs the id of a token that was refused because it has expired. Strangers, whose tokens the
    /// file does not have, write nothing.
    fn log_expired(&self, headers: &HeaderMap, names: &[String]) {
        let Some((token, caller)) = self.access.expired_token(headers, names) else { return };
        if let Some(suppressed) = EXPIRED_TOKENS.step() {
            tracing::warn!(
                token,
                caller,
                suppressed,
                "refused an expired token: make another with `polynym token create`"
            );
        }
    }
}
