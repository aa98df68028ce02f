//! The store of a server under test: with the embedded store each call has its own task, with
//! MongoDB calls run on the task of their connection.

use tempfile::{NamedTempFile, TempDir};

use super::block_on;
use crate::server::{Server, polynym};
use crate::servers::{self, Databases};

/// An empty store.
pub struct Place {
    store: String,
    _folder: Option<TempDir>,
}

impl Place {
    pub fn embedded() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("embedded:{}", folder.path().join("store").display());
        Self { store, _folder: Some(folder) }
    }

    pub fn mongo() -> Self {
        let store = block_on(async {
            let databases = Databases::of_set(servers::one_member().await, "");
            databases.uri(databases.place().name().await)
        });
        Self { store, _folder: None }
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

/// Generates two tests of each function of a [`Place`], one per kind of store.
macro_rules! in_each_place {
    ($($test:ident)*) => {
        mod embedded {
            $(#[test] fn $test() { super::$test(&crate::http2::place::Place::embedded()); })*
        }
        mod mongo {
            $(#[test] fn $test() { super::$test(&crate::http2::place::Place::mongo()); })*
        }
    };
}
pub(crate) use in_each_place;
