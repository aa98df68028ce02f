//! A connection that is replaced while the store is open, as when its password changes.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

/// The present one of several values in a row.
pub struct Current<T>(Arc<ArcSwap<T>>);

impl<T> Clone for Current<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Current<T> {
    /// Begins with this value.
    pub fn new(value: T) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(value)))
    }

    /// The present value. Its user keeps it, even if it is replaced.
    pub fn get(&self) -> Arc<T> {
        self.0.load_full()
    }

    /// The present value for a moment, at less cost.
    pub fn peek(&self) -> Guard<Arc<T>> {
        self.0.load()
    }

    /// The present value alone, whatever replaces it here.
    pub fn pinned(&self) -> Self {
        Self(Arc::new(ArcSwap::new(self.get())))
    }

    /// Replaces the value.
    pub fn replace(&self, value: T) {
        self.0.store(Arc::new(value));
    }
}
