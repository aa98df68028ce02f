//! The look-up cache over a store that records its reads.

mod bounds;
mod layer;
mod scene;
mod sharing;
mod writes;

use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
