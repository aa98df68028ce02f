//! The API: one type implements all services.

use std::sync::Arc;

use tokio::sync::watch;
use tonic::Status;

use super::authorization::permitted_tenant;
use super::batches::BatchPermits;
use super::purpose;
use polynym_access::Call;
use polynym_deliver::Deliverer;
use polynym_directory::{Directory, Error, MutationCall, RequestContext, Tenant};
use polynym_transport::protocol;

pub struct Api {
    pub directory: Arc<Directory>,
    pub deliverer: Arc<Deliverer>,
    pub batch_permits: BatchPermits,
    /// Whether the server is stopping.
    pub stopping: watch::Receiver<bool>,
}

impl Api {
    pub fn new(
        directory: Arc<Directory>,
        deliverer: Arc<Deliverer>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self { directory, deliverer, batch_permits: BatchPermits::default(), stopping }
    }

    /// The context of a call in a tenant that its caller may work in.
    pub fn context<'a>(
        &self,
        call: &'a Call,
        tenant: &str,
        request_id: &'a str,
    ) -> Result<RequestContext<'a>, Status> {
        let permitted = permitted_tenant(call, tenant)?;
        let context = self.directory.context(permitted, &call.name, call.method(), request_id);
        Ok(RequestContext { purpose: purpose::of(call.purpose()), ..context })
    }

    /// The context of a look-up. See [`look_up_tenant`].
    pub fn look_up<'a>(&self, call: &'a Call, tenant: &str) -> Result<RequestContext<'a>, Status> {
        let permitted = look_up_tenant(call, tenant)?;
        Ok(self.directory.context(permitted, &call.name, call.method(), ""))
    }

    /// A mutation in a tenant that its caller may work in.
    pub fn mutation<'a>(
        &self,
        call: &'a Call,
        tenant: &str,
        etag: &'a str,
        request_id: &'a str,
    ) -> Result<MutationCall<'a>, Status> {
        let context = self.context(call, tenant, request_id)?;
        Ok(MutationCall { etag, ..context.into() })
    }
}

/// The tenant of a look-up. A caller with too many misses is refused, whatever it looks up.
pub fn look_up_tenant(call: &Call, tenant: &str) -> Result<Tenant, Status> {
    let permitted = permitted_tenant(call, tenant)?;
    call.check_miss_limit().map_err(protocol::misses_limited)?;
    Ok(permitted)
}

/// Counts the look-ups that found no user.
pub fn count_misses<'a, T: 'a>(
    call: &Call,
    outcomes: impl IntoIterator<Item = &'a Result<T, Error>>,
) {
    let is_miss = |outcome: &&Result<T, Error>| {
        matches!(outcome, Err(Error::IdentityNotFound | Error::UserNotFound))
    };
    call.record_misses(outcomes.into_iter().filter(is_miss).count());
}
