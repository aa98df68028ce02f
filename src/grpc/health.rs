//! Health: SERVING while the store answers, and not while the server drains.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_check_response};
use tonic_health::server::{HealthReporter, HealthService, WatchStream};

use crate::directory::service::Directory;
use crate::proto::services::admin_service_server::SERVICE_NAME as ADMIN;
use crate::proto::services::directory_service_server::SERVICE_NAME as DIRECTORY;
use crate::proto::services::inbox_service_server::SERVICE_NAME as INBOX;
use crate::proto::services::registry_service_server::SERVICE_NAME as REGISTRY;
use crate::transport::protocol;

/// The services whose health is reported; the empty name is the server as a whole.
const SERVICES: [&str; 5] = ["", DIRECTORY, REGISTRY, INBOX, ADMIN];

/// The pause between two checks of the store.
const PERIOD: Duration = Duration::from_millis(500);

/// Starts to report health. A store that answers within a [`PERIOD`] is SERVING from the first call
/// on.
pub async fn reporter(directory: &Directory) -> HealthReporter {
    let reporter = HealthReporter::new();
    let status = timeout(PERIOD, ask(directory)).await.unwrap_or(ServingStatus::NotServing);
    set_status(&reporter, status).await;
    reporter
}

/// Polls the store's health and reports it.
pub async fn watch(reporter: &HealthReporter, directory: &Directory) {
    let mut before = None;
    loop {
        let status = ask(directory).await;
        if before.replace(status) != Some(status) {
            tracing::info!(?status, "health");
            set_status(reporter, status).await;
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Reports that the server is about to stop, and ends the streams that watch.
pub async fn drain(mut reporter: HealthReporter) {
    set_status(&reporter, ServingStatus::NotServing).await;
    tokio::task::yield_now().await;
    for service in SERVICES {
        reporter.clear_service_status(service).await;
    }
}

async fn ask(directory: &Directory) -> ServingStatus {
    match directory.check().await {
        Ok(()) => ServingStatus::Serving,
        Err(_) => ServingStatus::NotServing,
    }
}

async fn set_status(reporter: &HealthReporter, status: ServingStatus) {
    for service in SERVICES {
        reporter.set_service_status(service, status).await;
    }
}

/// `grpc.health.v1.Health`, with the behaviour for unknown services that its definition asks for.
pub struct HealthApi(HealthService);

impl HealthApi {
    pub fn new(reporter: &HealthReporter) -> Self {
        Self(HealthService::from_health_reporter(reporter.clone()))
    }
}

/// The one answer to who watches a service that is not served: it may be served some day.
fn unknown() -> HealthCheckResponse {
    HealthCheckResponse { status: health_check_response::ServingStatus::ServiceUnknown.into() }
}

#[tonic::async_trait]
impl Health for HealthApi {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        self.0.check(request).await.map_err(|_| protocol::unknown_health())
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let known: Result<Response<WatchStream>, Status> = self.0.watch(request).await;
        Ok(Response::new(match known {
            Ok(stream) => Box::pin(stream.into_inner()),
            Err(_) => Box::pin(tokio_stream::once(Ok(unknown())).chain(tokio_stream::pending())),
        }))
    }
}
