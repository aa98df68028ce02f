//! The store of a server under test: the tests of the transport run on the embedded store, those
//! of MongoDB run the same there.

use tempfile::{NamedTempFile, TempDir};

use crate::server::{Server, polynym};

/// An empty store.
pub struct TestStore {
    store: String,
    folder: Option<TempDir>,
}

impl TestStore {
    /// A store, and its folder if it is in one.
    pub fn new(store: String, folder: Option<TempDir>) -> Self {
        Self { store, folder }
    }

    /// Whether it is in a folder, and not on MongoDB.
    pub fn is_embedded(&self) -> bool {
        self.folder.is_some()
    }

    /// Starts a server on this store.
    pub fn serve(&self, arguments: &[&str]) -> Server {
        Server::start(&[&["--store", &self.store], arguments].concat())
    }

    /// Starts a server with the default log level. Returns it with its log.
    pub fn serve_logged(&self, arguments: &[&str]) -> (Server, NamedTempFile) {
        let log = NamedTempFile::new().unwrap();
        let mut command = polynym(&["serve", "--listen", "127.0.0.1:0", "--store", &self.store]);
        (Server::start_with(command.stderr(log.reopen().unwrap()), arguments), log)
    }
}

/// Generates a test of each function of a [`TestStore`], on the store of this program's tests.
macro_rules! tests_on_store {
    ($($test:ident)*) => {
        mod tests {
            $(#[test] fn $test() { super::$test(&crate::test_store()); })*
        }
    };
}
pub(crate) use tests_on_store;
