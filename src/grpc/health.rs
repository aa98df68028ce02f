//! Health: SERVING while the server is ready.

use std::convert::Infallible;
use std::future::pending;
use std::iter;
use std::pin::Pin;

use tokio::sync::watch;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_check_response};
use tonic_health::server::{HealthReporter, HealthService, WatchStream};

use super::methods::SERVICES;
use crate::readiness::State;
use polynym_transport::protocol;

/// The name of the whole server.
const SERVER: &str = "";

/// Starts to report health, from this state.
pub async fn reporter(state: State) -> HealthReporter {
    let reporter = HealthReporter::new();
    set_status(&reporter, status(state)).await;
    reporter
}

/// Reports the changes of the state in a loop.
pub async fn watch(reporter: &HealthReporter, mut states: watch::Receiver<State>) -> Infallible {
    while states.changed().await.is_ok() {
        let state = *states.borrow_and_update();
        set_status(reporter, status(state)).await;
    }
    pending().await
}

/// Reports that the server is stopping, and ends the watches of its health.
pub async fn drain(mut reporter: HealthReporter) {
    set_status(&reporter, ServingStatus::NotServing).await;
    tokio::task::yield_now().await;
    for service in iter::once(SERVER).chain(SERVICES) {
        reporter.clear_service_status(service).await;
    }
}

fn status(state: State) -> ServingStatus {
    match state {
        State::Ready => ServingStatus::Serving,
        State::Opening | State::StoreUnavailable | State::Stopping => ServingStatus::NotServing,
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
