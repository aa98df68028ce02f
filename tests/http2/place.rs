//! Where a server keeps its users: the calls of a connection have tasks of their own with the embedded store, and stay on
//! the connection's with MongoDB.

use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::server::Server;
use crate::{block_on, servers};

/// An empty store.
pub struct Place {
    pub store: String,
    _folder: Option<TempDir>,
}

impl Place {
    pub fn embedded() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("embedded:{}", folder.path().join("store").display());
        Self { store, _folder: Some(folder) }
    }

    pub fn mongo() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let database = format!("http2_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let store = block_on(async {
            let store = servers::one_member().await.uri(&database, "");
            servers::make(store.clone()).await;
            store
        });
        Self { store, _folder: None }
    }

    /// A server there.
    pub fn serve(&self, arguments: &[&str]) -> Server {
        Server::start(&[&["--store", &self.store], arguments].concat())
    }
}

/// Makes tests of functions of a [`Place`]: one for each kind of store.
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
