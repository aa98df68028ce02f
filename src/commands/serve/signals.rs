//! The signals that stop a server.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use polynym_cli::Failure;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::parent::Parent;

/// The signals that stop the server. A separate thread waits for them, so that the second one ends
/// the program even if it hangs.
pub struct Stop {
    requested: watch::Receiver<bool>,
    /// A folder that must not outlive the program.
    temporary: Arc<OnceLock<PathBuf>>,
}

impl Stop {
    /// Waits for signals, and in a server for tests also for the end of the program that started
    /// it.
    pub fn new(is_ephemeral: bool) -> Result<Self, Failure> {
        let failure = |error| Failure::Other(format!("cannot wait for signals: {error}"));
        let (request, requested) = watch::channel(false);
        let temporary = Arc::new(OnceLock::new());
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failure)?;
        let mut signals = Signals::new(&runtime).map_err(failure)?;
        let folder = temporary.clone();
        let parent = is_ephemeral.then(Parent::new).transpose().map_err(failure)?;
        let wait = async move {
            first_of(&mut signals, parent, &request).await;
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

/// Requests the stop at the first signal, or once the parent has left, and returns at the first
/// signal.
async fn first_of(signals: &mut Signals, parent: Option<Parent>, request: &watch::Sender<bool>) {
    let left = async {
        match parent {
            Some(parent) => parent.left().await,
            None => pending().await,
        }
    };
    tokio::select! {
        () = signals.next() => {}
        () = left => {
            tracing::warn!("stopping: standard input was closed; `</dev/null` prevents this");
            request.send_replace(true);
            signals.next().await;
        }
    }
    tracing::info!("stopping: calls under way may finish; a second signal stops at once");
    request.send_replace(true);
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
