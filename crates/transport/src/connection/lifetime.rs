//! The end of a connection: its client leaves or does not read, it grows old, or the server stops.

use std::future::pending;
use std::pin::{Pin, pin};
use std::time::Duration;

use futures_util::FutureExt;
use hyper_util::server::graceful::GracefulConnection;
use tokio::sync::watch;
use tokio::time::sleep;

use super::task::ConnectionTask;
use crate::budgets::state::ConnectionState;
use crate::budgets::streams::Ending;
use crate::options::Options;
use crate::peer::Peer;

/// The part of the time of a stop in which streams end with a status: one in this many.
const LAST_PART_OF_DRAIN: u32 = 5;

/// Runs a connection until it ends, grows old, or the server drains. Returns whether calls were cut
/// off.
pub async fn run<C: GracefulConnection>(
    mut task: ConnectionTask<C>,
    connection: &ConnectionState,
    peer: &Peer,
    certificate_revoked: impl Future<Output = ()>,
    options: Options,
    mut draining: watch::Receiver<bool>,
) -> bool {
    let mut distrusted = pin!(distrusted(peer, certificate_revoked));
    tokio::select! {
        _ = &mut task => return false,
        () = connection.activity.wait_stuck(call_age_limit(options.call_timeout)) => {
            tracing::info!("closed a connection: its client does not read its answers");
            return false;
        }
        () = drain_started(&mut draining) => {}
        () = close_due(connection, distrusted.as_mut(), options) => {
            task.connection.as_mut().graceful_shutdown();
            tokio::select! {
                _ = &mut task => return false,
                () = connection.activity.wait_stuck(call_age_limit(options.call_timeout)) => {
                    return false;
                }
                () = finish_overdue(connection, peer, distrusted.as_mut(), options.drain) => {
                    return false;
                }
                () = drain_started(&mut draining) => {}
            }
        }
    }
    let distrusted = end_distrusted(connection, peer, distrusted);
    finish(task, connection, distrusted, options.drain).await
}

/// Waits until calls have had the time to finish. Then ends the streams that have no end, and waits
/// for what takes longer: requests of the site, such as uploads, and finite streams. Their clients
/// must read and send in time, as always. No stream outlives the trust in its client's certificate.
async fn finish_overdue(
    connection: &ConnectionState,
    peer: &Peer,
    distrusted: Pin<&mut impl Future<Output = ()>>,
    drain: Duration,
) {
    let overdue = async {
        sleep(drain).await;
        connection.end_streams(Ending::Endless);
        connection.activity.wait_without_long_calls().await;
    };
    tokio::select! {
        () = overdue => return,
        () = end_distrusted(connection, peer, distrusted) => {}
    }
    tokio::select! {
        () = connection.activity.wait_idle() => {}
        () = sleep(drain) => connection.activity.wait_without_long_calls().await,
    }
}

/// Waits until the client is no longer trusted, and ends its streams.
async fn end_distrusted(
    connection: &ConnectionState,
    peer: &Peer,
    distrusted: Pin<&mut impl Future<Output = ()>>,
) {
    if peer.is_trusted() {
        distrusted.await;
    }
    connection.end_streams(Ending::Distrusted);
}

/// Runs a connection until its calls and streams have finished, for the time of a stop. In the last
/// part of that time, streams end with a status; before that, `distrusted` may end them. Returns
/// whether calls or streams were cut off.
async fn finish<C: GracefulConnection>(
    mut task: ConnectionTask<C>,
    connection: &ConnectionState,
    distrusted: impl Future<Output = ()>,
    drain: Duration,
) -> bool {
    task.connection.as_mut().graceful_shutdown();
    let last_part = drain / LAST_PART_OF_DRAIN;
    tokio::select! {
        _ = &mut task => return false,
        () = connection.activity.wait_idle() => return false,
        () = distrusted.then(|()| pending()) => {}
        () = sleep(drain - last_part) => {}
    }
    let cuts_streams = connection.activity.has_finite_streams();
    connection.end_streams(Ending::Stopping);
    tokio::select! {
        _ = &mut task => cuts_streams,
        () = connection.activity.wait_idle() => cuts_streams,
        () = sleep(last_part) => cuts_streams || connection.activity.has_calls(),
    }
}

/// Waits until the client's certificate is no longer valid, and ends its use.
async fn distrusted(peer: &Peer, certificate_revoked: impl Future<Output = ()>) {
    tokio::select! {
        () = peer.expired() => {}
        () = certificate_revoked => peer.distrust(),
    }
}

/// Waits until the connection is too old, was idle too long, or its client is no longer trusted.
async fn close_due(
    connection: &ConnectionState,
    distrusted: Pin<&mut impl Future<Output = ()>>,
    options: Options,
) {
    tokio::select! {
        () = distrusted => {}
        () = sleep(options.connection_age) => {}
        () = connection.activity.wait_unused(options.connection_idle) => {}
    }
}

/// Waits until the server drains.
pub async fn drain_started(draining: &mut watch::Receiver<bool>) {
    let _ = draining.wait_for(|is_draining| *is_draining).await;
}

/// The age limit of a call: its timeout, and half of that for its client to read the answer.
fn call_age_limit(timeout: Duration) -> Duration {
    timeout + timeout / 2
}
