//! The schema versions that this program supports.

/// The present version, which [`super::schema`] describes.
pub const VERSION: u64 = 5;
/// The oldest version that this program supports. It has no version of the rules, no claim has
/// fields after its own, and there is no [`TENANT_USERS`](super::schema::TENANT_USERS).
pub const OLDEST: u64 = 4;
