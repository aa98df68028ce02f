//! A request to stop, for tasks and threads.

use tokio::sync::watch;

/// A request to stop. Clones share it.
#[derive(Clone)]
pub struct Stop(watch::Sender<bool>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Stop {
    /// Requests to stop.
    pub fn set(&self) {
        self.0.send_replace(true);
    }

    /// Whether it was requested.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is requested.
    pub async fn wait(&self) {
        // It never ends otherwise: this has a sender.
        let _ = self.0.subscribe().wait_for(|is_set| *is_set).await;
    }
}
