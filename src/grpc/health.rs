//! Health: SERVING while the store answers, NOT_SERVING while the server drains.

use std::iter;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_check_response};
use tonic_health::server::{HealthReporter, HealthService, WatchStream};

use super::methods::SERVICES;
use polynym_directory::Directory;
use polynym_transport::protocol;

/// The name of the whole server.
const SERVER: &str = "";

/// The interval between two checks of the store.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Starts to report health. A store that answers within [`CHECK_INTERVAL`] is SERVING from the
/// first call on.
pub async fn reporter(directory: &Directory) -> HealthReporter {
    let reporter = HealthReporter::new();
    let status =
        timeout(CHECK_INTERVAL, check(directory)).await.unwrap_or(ServingStatus::NotServing);
    set_status(&reporter, status).await;
    reporter
}

/// Polls and reports the store's health.
pub async fn watch(reporter: &HealthReporter, directory: &Directory) {
    let mut previous = None;
    loop {
        let status = check(directory).await;
        if previous.replace(status) != Some(status) {
            tracing::info!(?status, "health");
            set_status(reporter, status).await;
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// Reports that the server is stopping, and ends the watches of its health.
pub async fn drain(mut reporter: HealthReporter) {
    set_status(&reporter, ServingStatus::NotServing).await;
    tokio::task::yield_now().await;
    for service in iter::once(SERVER).chain(SERVICES) {
        reporter.clear_service_status(service).await;
    }
}

async fn check(directory: &Directory) -> ServingStatus {
    match directory.check().await {
        Ok(()) => ServingStatus::Serving,
        Err(_) => ServingStatus::NotServing,
    }
}

async fn set_status(reporter: &HealthReporter, status: ServingStatus) {
    for service in iter::once(SERVER).chain(SERVICES) {
        reporter.set_service_status(service, status).await;
    }
}

/// `grpc.health.v1.Health`, with the specified answers for unknown services.
pub struct HealthApi(HealthService);

impl HealthApi {
    pub fn new(reporter: &HealthReporter) -> Self {
        Self(HealthService::from_health_reporter(reporter.clone()))
    }
}

/// The only answer of a watch of an unknown service, which might be served one day.
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
