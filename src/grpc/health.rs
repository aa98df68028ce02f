//! Health: SERVING while the store answers, and not while the server drains.

use std::sync::Arc;
use std::time::Duration;

use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::router::SERVICES;
use crate::directory::Directory;

/// How often the store is asked.
const PERIOD: Duration = Duration::from_millis(500);

/// Tells health from now on; a server that does not know its store yet serves nothing.
pub async fn reporter() -> HealthReporter {
    let reporter = HealthReporter::new();
    tell(&reporter, ServingStatus::NotServing).await;
    reporter
}

/// Asks the store, again and again, and tells what it says.
pub async fn watch(reporter: &HealthReporter, directory: &Arc<Directory>) {
    let mut before = None;
    loop {
        let status = match directory.check().await {
            Ok(()) => ServingStatus::Serving,
            Err(_) => ServingStatus::NotServing,
        };
        if before.replace(status) != Some(status) {
            tracing::info!(?status, "health");
            tell(reporter, status).await;
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Tells that the server is about to stop, and ends the streams that watch.
pub async fn drain(mut reporter: HealthReporter) {
    tell(&reporter, ServingStatus::NotServing).await;
    tokio::task::yield_now().await;
    for service in SERVICES {
        reporter.clear_service_status(service).await;
    }
}

async fn tell(reporter: &HealthReporter, status: ServingStatus) {
    for service in SERVICES {
        reporter.set_service_status(service, status).await;
    }
}
