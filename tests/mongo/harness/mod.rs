//! Tests of the test servers: they behave like MongoDB and leave nothing behind.

mod cluster;
mod faults;
mod hashed;
mod moving;
mod routing;

use tokio::sync::OnceCell;

use crate::servers::{Layout, Sharded};

/// Returns the cluster of these tests alone, because they move chunks.
async fn cluster() -> &'static Sharded {
    static CLUSTER: OnceCell<Sharded> = OnceCell::const_new();
    CLUSTER.get_or_init(|| Sharded::start(3, Layout::default())).await
}
