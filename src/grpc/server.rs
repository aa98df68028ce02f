//! The server of the API.

use std::io;
use std::sync::Arc;

use locality_uuid::LocalityId;
use tokio::sync::watch;

use super::api::Api;
use super::methods::methods;
use super::purpose;
use super::watch::show_metrics;
use super::{health, probes};
use crate::readiness::Readiness;
use polynym_access::{Access, Role};
use polynym_deliver::{AddressPolicy, Deliverer};
use polynym_directory::{BulkChange, Directory, Tenant, UsageCount, UsageFlusher};
use polynym_proto::DESCRIPTORS;
use polynym_transport as transport;
use polynym_transport::method::Methods;
use polynym_transport::{Authorization, Listeners, Options, Services};

/// Serves the API on `listeners` to the callers of `access` until `shutdown` completes. Then health
/// reports NOT_SERVING, new calls are refused, and calls in flight may finish within
/// [`Options::drain`]. Keeps `readiness` up to date, runs the bulk changes of all tenants, and
/// delivers their events to receivers at the addresses of `deliver_to` meanwhile.
///
/// # Errors
/// The service descriptors cannot be read.
pub async fn serve(
    listeners: impl Into<Listeners>,
    directory: Arc<Directory>,
    access: Arc<Access>,
    options: Options,
    deliver_to: AddressPolicy,
    readiness: Arc<Readiness>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut usage = UsageFlusher::new(directory.clone(), run_id()?, {
        let access = access.clone();
        move || take_counts(&access)
    });
    readiness.opened(&directory).await;
    let states = readiness.subscribe();
    let reporter = health::reporter(readiness.state()).await;
    show_metrics();
    let (stop_watches, stopping) = watch::channel(false);
    let deliverer = Arc::new(Deliverer::new(directory.clone(), deliver_to));
    let api = Api::new(directory.clone(), deliverer.clone(), stopping);
    let mut served = methods(&Arc::new(api));
    served.extend(probes::methods(&reporter)?);
    let services = Services {
        methods: Methods::new(served, DESCRIPTORS).map_err(io::Error::other)?,
        authorization: Authorization::new(access.clone(), purpose::read),
    };
    let stop = async {
        tokio::select! {
            never = health::watch(&reporter, states) => match never {},
            never = readiness.watch_store(&directory) => match never {},
            never = access.reload() => match never {},
            () = shutdown => {}
        }
        readiness.stopping();
        stop_watches.send_replace(true);
        health::drain(reporter.clone()).await;
    };
    let callers = access.clone();
    let may_change = move |change: &BulkChange| may_make(&callers, change);
    let serve = async {
        transport::serve(listeners.into(), services, options, stop).await;
        deliverer.stop().await;
    };
    tokio::select! {
        () = serve => {}
        never = usage.run() => match never {},
        never = directory.run_bulk_changes(Arc::new(may_change)) => match never {},
        never = deliverer.clone().run() => match never {},
    }
    usage.finish().await;
    Ok(())
}

/// Takes the counts of calls and look-ups of all callers.
fn take_counts(access: &Access) -> Vec<UsageCount> {
    let mut counts = Vec::new();
    for (caller, tenants) in access.take_counts() {
        for (tenant, metrics) in tenants {
            let Ok(tenant) = Tenant::parse(&tenant) else { continue };
            counts.extend(metrics.into_iter().map(|(metric, count)| UsageCount {
                tenant: tenant.clone(),
                caller: caller.clone(),
                metric: metric.to_string(),
                count,
            }));
        }
    }
    counts
}

/// Whether the caller of a bulk change may make it at present.
fn may_make(access: &Access, change: &BulkChange) -> bool {
    let role = match change.action.undone() {
        Some(_) => Role::Admin,
        None => Role::Registrar,
    };
    access.may(&change.caller, role, change.tenant.as_str())
}

/// The random id of a run of the server.
fn run_id() -> io::Result<LocalityId> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(LocalityId::from(bytes))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use polynym_access::{Person, RateLimits, Source};
    use polynym_directory::{BulkAction, Timestamp};

    use super::*;

    fn change(caller: &str, tenant: &str, action: BulkAction) -> BulkChange {
        let tenant = Tenant::parse(tenant).unwrap();
        let caller = caller.to_owned();
        BulkChange { caller, ..BulkChange::new(tenant, "bulk-1", action, Timestamp::default()) }
    }

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
            entry("chief", "admin", "eu-*", "9999"),
            entry("former", "admin", "*", "2001"),
        ];
        let provider = "[oidc]\nissuer = \"https://sso.example\"\nclient_id = \"polynym\"\n\
            [[oidc.grant]]\ngroup = \"a\"\nrole = \"viewer\"\ntenants = [\"*\"]\n\
            [[oidc.grant]]\ngroup = \"b\"\nrole = \"registrar\"\ntenants = [\"us-*\"]\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("callers.toml");
        std::fs::write(&path, format!("{}{provider}", file.concat())).unwrap();
        let access = Access::from_file(path, RateLimits::default()).unwrap();
        let may = |caller, tenant| may_make(&access, &change(caller, tenant, BulkAction::Disable));
        assert!(may("web", "eu-1"));
        let undo = |caller| change(caller, "eu-1", BulkAction::Undo("import-1".to_owned()));
        assert!(may_make(&access, &undo("chief")) && !may_make(&access, &undo("web")));
        // What a person began goes on while a grant allows somebody to begin it.
        assert!(may("oidc:ann@example.org", "us-1") && !may("oidc:ann@example.org", "eu-1"));
        let sign_in = |group: &str, lifetime| {
            let provider = access.provider().unwrap();
            access.sign_in(Person {
                name: "oidc:ann@example.org".to_owned(),
                groups: provider.known([group]),
                expires: SystemTime::now() + lifetime,
                source: Source::of(&provider),
            })
        };
        let reader = sign_in("a", Duration::from_secs(60)).unwrap();
        assert_eq!(access.caller_of(&reader).unwrap().role, Role::Viewer);
        assert!(!may("oidc:ann@example.org", "us-1"), "she is known to have a lower role");
        let over = sign_in("b", Duration::ZERO).unwrap();
        assert!(access.caller_of(&over).is_none() && !may("oidc:ann@example.org", "us-1"));
        let registrar = sign_in("b", Duration::from_secs(60)).unwrap();
        assert!(may("oidc:ann@example.org", "us-1") && !may("oidc:ann@example.org", "eu-1"));
        drop((reader, over, registrar));
        assert!(may("oidc:ann@example.org", "us-1"));
        for (caller, tenant) in
            [("web", "us-1"), ("reader", "eu-1"), ("former", "eu-1"), ("anonymous", "eu-1")]
        {
            assert!(!may(caller, tenant), "{caller}");
        }
        assert!(may_make(&Access::open(), &change("web", "default", BulkAction::Disable)));
    }
}
