//! The schema versions that this program supports.

/// The present version, which [`super::schema`] describes.
pub const VERSION: u64 = 8;
/// The first version with inboxes.
pub const INBOXED: u64 = 8;
/// The first version with a journal.
pub const JOURNALED: u64 = 7;
/// The first version with [`ATTRIBUTES`](super::schema::ATTRIBUTES): in earlier ones a user's
/// attributes stand in the user.
pub const INDEXED: u64 = 6;
/// The first version with [`TENANT_USERS`](super::schema::TENANT_USERS).
pub const LISTED: u64 = 5;
/// The oldest version that this program supports. It has no version of the rules, and no claim has
/// fields after its own.
pub const OLDEST: u64 = 4;
