//! The cores that serve connections. Each is a runtime with one thread, on which a connection stays
//! with its calls and with what they wait for: none of it wakes another thread.

use std::sync::Arc;

use polynym_access::{ActiveCount, Permit};
use tokio::runtime::Handle;

/// The cores that serve the connections of a server. Without any, they are served by the runtime
/// that accepts them.
#[derive(Default)]
pub struct Cores(Vec<Core>);

struct Core {
    runtime: Handle,
    connections: Arc<ActiveCount>,
}

impl FromIterator<Handle> for Cores {
    /// A core on each of these runtimes, which should have one thread.
    fn from_iter<I: IntoIterator<Item = Handle>>(runtimes: I) -> Self {
        let core = |runtime| Core { runtime, connections: Arc::default() };
        Self(runtimes.into_iter().map(core).collect())
    }
}

impl Cores {
    /// The runtime for the next connection: that of the core with the fewest connections. It counts
    /// until the permit is dropped.
    pub(crate) fn seat(&self) -> (Handle, Option<Permit<1>>) {
        match self.0.iter().min_by_key(|core| core.connections.get()) {
            Some(core) => {
                let seat = Permit::take([(&core.connections, usize::MAX)]);
                (core.runtime.clone(), seat.ok())
            }
            None => (Handle::current(), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_goes_to_the_core_with_the_fewest() {
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let runtimes = [runtime(), runtime(), runtime()];
        let cores: Cores = runtimes.iter().map(|runtime| runtime.handle().clone()).collect();
        let counts = || cores.0.iter().map(|core| core.connections.get()).collect::<Vec<_>>();
        let seats: Vec<_> = (0..7).map(|_| cores.seat()).collect();
        assert_eq!(counts(), [3, 2, 2]);
        let (left, first) = seats
            .into_iter()
            .partition::<Vec<_>, _>(|(runtime, _)| runtime.id() == runtimes[1].handle().id());
        drop(left);
        assert_eq!(cores.seat().0.id(), runtimes[1].handle().id());
        drop(first);
        assert_eq!(counts(), [0, 0, 0]);
        runtimes.into_iter().for_each(tokio::runtime::Runtime::shutdown_background);
    }

    #[tokio::test]
    async fn without_cores_connections_stay_where_they_are_accepted() {
        let (runtime, seat) = Cores::default().seat();
        assert_eq!(runtime.id(), Handle::current().id());
        assert!(seat.is_none());
    }
}
