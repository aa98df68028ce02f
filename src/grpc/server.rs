//! The server of the API.

use std::io;
use std::sync::Arc;

use locality_uuid::LocalityId;
use tokio::sync::watch;

use super::health;
use super::router::Router;
use super::status::reason;
use super::usage_writer::UsageWriter;
use super::watch::show_metrics;
use polynym_access::{Access, Role};
use polynym_directory::error::Error;
use polynym_directory::model::tenant::Tenant;
use polynym_directory::service::Directory;
use polynym_directory::service::bulk::run::BulkHost;
use polynym_transport as transport;
use polynym_transport::{Listeners, Options};

/// Serves the API on `listeners` to the callers of `access` until `shutdown` completes. Then health
/// reports NOT_SERVING, new calls are refused, and calls in flight may finish within
/// [`Options::drain`]. Runs the bulk changes of all tenants meanwhile.
///
/// # Errors
/// The service descriptors cannot be read.
pub async fn serve(
    listeners: impl Into<Listeners>,
    directory: Arc<Directory>,
    access: Arc<Access>,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut usage = UsageWriter::new(access.clone(), directory.clone(), run_id()?);
    let reporter = health::reporter(&directory).await;
    show_metrics();
    let (stop_watches, stopping) = watch::channel(false);
    let router =
        Router::new(&directory, access.clone(), &reporter, stopping).map_err(io::Error::other)?;
    let stop = async {
        tokio::select! {
            () = health::watch(&reporter, &directory) => {}
            never = access.reload() => match never {},
            () = shutdown => {}
        }
        stop_watches.send_replace(true);
        health::drain(reporter.clone()).await;
    };
    let host = Arc::new(ServerHost(access.clone()));
    tokio::select! {
        () = transport::serve(listeners.into(), router, options, stop) => {}
        never = usage.run() => match never {},
        never = directory.run_bulk_changes(host) => match never {},
    }
    usage.finish().await;
    Ok(())
}

/// The rights of callers while their bulk changes run, and the reasons of errors.
struct ServerHost(Arc<Access>);

impl BulkHost for ServerHost {
    fn may_change_users(&self, caller: &str, tenant: &Tenant) -> bool {
        let caller = self.0.caller_named(caller);
        caller.is_some_and(|caller| {
            caller.role >= Role::Registrar && caller.tenants.contains(tenant.as_str())
        })
    }

    fn error_reason(&self, error: &Error) -> &'static str {
        reason(error)
    }
}

/// The random id of a run of the server.
fn run_id() -> io::Result<LocalityId> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(LocalityId::from(bytes))
}

#[cfg(test)]
mod tests {
    use polynym_access::RateLimits;

    use super::*;

    #[test]
    fn a_caller_changes_users_as_long_as_it_has_the_role_and_the_tenant() {
        let entry = |name: &str, role: &str, tenants: &str, expires: &str| {
            let token = format!("sha256:{name}:{}", "0".repeat(64));
            format!(
                "[[caller]]\nname = \"{name}\"\nrole = \"{role}\"\ntenants = [\"{tenants}\"]\n\
                 token = \"{token}\"\nexpires = {expires}-01-01T00:00:00Z\n"
            )
        };
        let file = [
            entry("web", "registrar", "eu-*", "9999"),
            entry("reader", "viewer", "*", "9999"),
            entry("former", "admin", "*", "2001"),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("callers.toml");
        std::fs::write(&path, file.concat()).unwrap();
        let access = Access::from_file(path, RateLimits::default()).unwrap();
        let host = ServerHost(Arc::new(access));
        let may = |caller, tenant| host.may_change_users(caller, &Tenant::parse(tenant).unwrap());
        assert!(may("web", "eu-1"));
        for (caller, tenant) in
            [("web", "us-1"), ("reader", "eu-1"), ("former", "eu-1"), ("anonymous", "eu-1")]
        {
            assert!(!may(caller, tenant), "{caller}");
        }
        let open = ServerHost(Arc::new(Access::open()));
        assert!(open.may_change_users("web", &Tenant::DEFAULT));
    }
}
