//! Limits on requests, users and purges.

/// Limits on requests, users and purges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Items in one batch request.
    pub batch: usize,
    /// Identities of one user.
    pub identities: usize,
    /// Attributes of one user.
    pub attributes: usize,
    /// Searchable values of one user; each item of a list counts.
    pub elements: usize,
    /// Identifiers that are held for one user.
    pub holds: usize,
    /// Users that were merged into one.
    pub merged: usize,
    /// Bytes of one user in total.
    pub bytes: usize,
    /// Events that one transaction of a purge reads, and may rewrite or remove.
    pub purge_events: usize,
    /// Users of an operation whose ids its undoing has in memory.
    pub undone_users: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch: 1_000,
            identities: 100,
            attributes: 200,
            elements: 1_000,
            holds: 100,
            merged: 100,
            bytes: 512 << 10,
            purge_events: 1_000,
            undone_users: 1 << 18,
        }
    }
}
