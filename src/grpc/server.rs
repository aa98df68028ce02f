//! The server of the API.

use std::io;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::health;
use super::router::Router;
use crate::directory::service::Directory;
use crate::transport;
use crate::transport::Options;

/// Serves the API on `listener` until `shutdown` completes. Then health reports NOT_SERVING, new
/// calls are refused, and calls under way may finish within [`Options::drain`].
///
/// # Errors
/// The service descriptors cannot be read.
pub async fn serve(
    listener: TcpListener,
    directory: Arc<Directory>,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let reporter = health::reporter(&directory).await;
    let router = Router::new(&directory, &reporter).map_err(io::Error::other)?;
    let stop = async {
        tokio::select! {
            () = health::watch(&reporter, &directory) => {}
            () = shutdown => {}
        }
        health::drain(reporter.clone()).await;
    };
    transport::serve(listener, router, options, stop).await;
    Ok(())
}
