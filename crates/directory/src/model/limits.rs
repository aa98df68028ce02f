//! Bounds on what a caller may ask for, on the size of a user, and on that of a purge.

/// Limits on what a caller may request, on the size of a user, and on that of a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Items in one batch request.
    pub batch: usize,
    /// Identities of one user.
    pub identities: usize,
    /// Attributes of one user.
    pub attributes: usize,
    /// Values of attributes by which searches may find one user; each item of a list is one.
    pub elements: usize,
    /// Identifiers that are held for one user.
    pub holds: usize,
    /// Users that were merged into one.
    pub merged: usize,
    /// Bytes of one user, all in all.
    pub bytes: usize,
    /// Events of other users that one transaction of a purge rewrites.
    pub redactions: usize,
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
            redactions: 5_000,
        }
    }
}
