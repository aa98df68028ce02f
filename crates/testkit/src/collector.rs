//! A collector of traces.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

/// Starts a collector that records its messages.
pub async fn collector() -> (String, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let messages: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let recorded = messages.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let recorded = recorded.clone();
            let record = service_fn(move |request: hyper::Request<Incoming>| {
                let recorded = recorded.clone();
                async move {
                    let body = request.into_body().collect().await.unwrap();
                    recorded.lock().unwrap().push(body.to_bytes().to_vec());
                    let response = hyper::Response::builder()
                        .header("content-type", "application/grpc")
                        .header("grpc-status", "0");
                    Ok::<_, Infallible>(response.body(String::new()).unwrap())
                }
            });
            let serve = http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), record);
            tokio::spawn(serve);
        }
    });
    (url, messages)
}
