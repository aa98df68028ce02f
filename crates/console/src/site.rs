//! The console as a site of the HTTP listener.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Request, Response, Uri};
use hyper::body::Incoming;
use polynym_access::Caller;
use polynym_transport::http::Site;
use tower::ServiceExt;
use tower_http::csrf::CsrfLayer;

use crate::console::{Options, Shared};
use crate::context::ClientAddress;
use crate::form::MAX_FORM_BYTES;
use crate::{middleware, pages, security};

/// The path of the console below the prefix of the listener.
const PATH: &str = "/console";

/// The console.
pub struct Console {
    shared: Arc<Shared>,
    router: Router,
}

impl Console {
    /// The console with these settings.
    pub fn new(options: Options) -> Self {
        let shared = Arc::new(Shared::new(options));
        let pages = pages::router()
            .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
            .layer(from_fn_with_state(shared.clone(), middleware::with_session))
            .layer(CsrfLayer::new())
            .layer(from_fn_with_state(shared.clone(), security::protect));
        Self { router: pages.with_state(shared.clone()), shared }
    }
}

/// The address of a page without the path of the console.
fn inner(uri: &Uri) -> Uri {
    let path = uri.path().strip_prefix(PATH).filter(|path| !path.is_empty()).unwrap_or("/");
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = format!("{path}{query}").parse().ok();
    Uri::from_parts(parts).unwrap_or_default()
}

impl Site for Console {
    fn path(&self) -> &'static str {
        PATH
    }

    fn caller(&self, headers: &HeaderMap) -> Option<Arc<Caller>> {
        self.shared.signed_in(headers).map(|(_, caller)| caller)
    }

    fn respond(
        &self,
        request: Request<Incoming>,
        address: Option<SocketAddr>,
    ) -> BoxFuture<'_, Response<tonic::body::Body>> {
        let mut request = request.map(Body::new);
        *request.uri_mut() = inner(request.uri());
        request.extensions_mut().insert(ClientAddress(address));
        let answer = self.router.clone().oneshot(request);
        async move {
            let Ok(response) = answer.await;
            response.map(tonic::body::Body::new)
        }
        .boxed()
    }
}
