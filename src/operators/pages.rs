//! The pages for operators: `/metrics`, `/healthz` and `/readyz`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::readiness::Readiness;
use crate::telemetry::Metrics;
use polynym_access::Access;

/// The text format of Prometheus.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The pages, and the sources of their content.
#[derive(Clone)]
pub struct Pages {
    /// The metrics.
    pub metrics: Metrics,
    /// Whether the server is ready.
    pub readiness: Arc<Readiness>,
    /// The callers. Only monitors and admins may see the metrics.
    pub access: Arc<Access>,
    /// Whether the metrics need a credential.
    pub is_protected: bool,
}

/// A client of the pages.
#[derive(Clone)]
struct Client {
    pages: Pages,
    /// The names in its certificate.
    names: Vec<String>,
}

impl Pages {
    /// The pages for a client whose certificate has these names.
    pub fn router(self, names: &[String]) -> Router {
        let client = Client { pages: self, names: names.to_vec() };
        let protection = middleware::from_fn_with_state(client.clone(), protect_metrics);
        Router::new()
            .route("/metrics", get(metrics))
            .route_layer(protection)
            .route("/healthz", get("ok\n"))
            .route("/readyz", get(ready))
            .with_state(client)
    }
}

async fn protect_metrics(
    State(client): State<Client>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    if !client.pages.is_protected {
        return next.run(request).await;
    }
    match client.pages.access.caller(&headers, &client.names) {
        None => {
            let message = "no valid credential: send `authorization: Bearer TOKEN`\n";
            (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], message).into_response()
        }
        Some(caller) if caller.role.reads_metrics() => next.run(request).await,
        Some(_) => {
            let message = "this page is for callers with the role monitor or admin\n";
            (StatusCode::FORBIDDEN, message).into_response()
        }
    }
}

async fn metrics(State(client): State<Client>) -> Response {
    ([(CONTENT_TYPE, TEXT_FORMAT)], client.pages.metrics.render()).into_response()
}

/// Answers at once, even while the store does not. Also reports a broken credentials file, whose
/// previous version stays in use.
async fn ready(State(client): State<Client>) -> Response {
    match client.pages.readiness.state().obstacle() {
        Some(obstacle) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("{obstacle}\n")).into_response()
        }
        None if client.pages.access.is_broken() => {
            "ready; the credentials file cannot be used, those of before count\n".into_response()
        }
        None => "ready\n".into_response(),
    }
}
