//! The servers that other tests run on: they are what they should be, and nothing of them is left
//! behind.

mod cluster;
mod faults;
mod hashed;
mod moving;

use tokio::sync::OnceCell;

use crate::servers::{Layout, Sharded};

/// A cluster of these tests alone: they move what others may not.
async fn cluster() -> &'static Sharded {
    static CLUSTER: OnceCell<Sharded> = OnceCell::const_new();
    CLUSTER.get_or_init(|| Sharded::start(3, Layout::default())).await
}
