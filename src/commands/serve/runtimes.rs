//! The threads of a server.

use std::time::{Duration, Instant};

use polynym_cli::Failure;
use tokio::runtime::{Builder, Handle, Runtime};

/// The time for tasks to end once the server has stopped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The runtimes of a server.
pub struct Runtimes {
    /// Accepts connections and runs background jobs.
    pub main: Runtime,
    /// Serve the connections, on one thread each. Before a read of the disk, that thread hands its
    /// work to another one.
    cores: Vec<Runtime>,
}

impl Runtimes {
    /// Starts this number of threads that serve connections, and as many for the rest.
    pub fn start(threads: usize) -> Result<Self, Failure> {
        let start = |name: &str, threads| {
            Builder::new_multi_thread()
                .worker_threads(threads)
                .thread_name(name)
                .enable_all()
                .build()
                .map_err(|error| Failure::Other(format!("cannot start the threads: {error}")))
        };
        let cores = (0..threads).map(|_| start("polynym-core", 1)).collect::<Result<_, _>>()?;
        Ok(Self { main: start("polynym", threads)?, cores })
    }

    /// The runtimes that serve connections.
    pub fn cores(&self) -> impl Iterator<Item = &Handle> + Clone {
        self.cores.iter().map(Runtime::handle)
    }

    /// Ends all tasks, and waits a second for those that cannot be interrupted.
    pub fn shut_down(self) {
        let deadline = Instant::now() + SHUTDOWN_TIMEOUT;
        for runtime in self.cores.into_iter().chain([self.main]) {
            runtime.shutdown_timeout(deadline.saturating_duration_since(Instant::now()));
        }
    }

    /// Ends all tasks without waiting for any.
    pub fn abandon(self) {
        self.cores.into_iter().chain([self.main]).for_each(Runtime::shutdown_background);
    }
}
