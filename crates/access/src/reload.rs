//! Reloads files when they change.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The interval between two reads.
const READ_INTERVAL: Duration = Duration::from_secs(2);

/// The content of a file, or why it could not be read.
pub type Content = Result<Vec<u8>, String>;

/// Reads a file, following links.
pub fn content(path: &Path) -> Content {
    std::fs::read(path).map_err(|error: io::Error| error.to_string())
}

/// Reads in a loop, and applies each content that differs from the last applied one, at first
/// `used`. Two reads must agree on it, so that a partly written file is not applied.
pub async fn watch<T: Clone + PartialEq + Send + 'static>(
    mut used: T,
    read: impl Fn() -> T + Clone + Send + 'static,
    apply: impl Fn(&T),
) -> Infallible {
    let mut previous = used.clone();
    loop {
        tokio::time::sleep(READ_INTERVAL).await;
        let Ok(current) = tokio::task::spawn_blocking(read.clone()).await else { continue };
        if current == previous && current != used {
            apply(&current);
            used = current.clone();
        }
        previous = current;
    }
}
