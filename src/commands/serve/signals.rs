//! The signals that stop a server.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use polynym_cli::Failure;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The signals that stop the server. A separate thread waits for them, so that the second one ends
/// the program even if it hangs.
pub struct Stop {
    requested: watch::Receiver<bool>,
    /// A folder that must not outlive the program.
    temporary: Arc<OnceLock<PathBuf>>,
}

impl Stop {
    pub fn new() -> Result<Self, Failure> {
        let failure = |error| Failure::Other(format!("cannot wait for signals: {error}"));
        let (request, requested) = watch::channel(false);
        let temporary = Arc::new(OnceLock::new());
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failure)?;
        let mut signals = Signals::new(&runtime).map_err(failure)?;
        let folder = temporary.clone();
        let wait = async move {
            signals.next().await;
            tracing::info!("stopping: calls under way may finish; a second signal stops at once");
            request.send_replace(true);
            signals.next().await;
            if let Some(folder) = folder.get() {
                let _ = std::fs::remove_dir_all(folder);
            }
            std::process::exit(130);
        };
        let thread = std::thread::Builder::new().name("polynym-signals".to_owned());
        thread.spawn(move || runtime.block_on(wait)).map_err(failure)?;

        Ok(Self { requested, temporary })
    }

    /// Sets the folder to remove when a second signal ends the program.
    pub fn remove_at_once(&self, folder: Option<&Path>) {
        if let Some(folder) = folder {
            let _ = self.temporary.set(folder.to_owned());
        }
    }

    /// Returns at the first signal.
    pub async fn signalled(&self) {
        // The sending thread never ends.
        let _ = self.requested.clone().wait_for(|requested| *requested).await;
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new(runtime: &Runtime) -> std::io::Result<Self> {
        let _runtime = runtime.enter();
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
